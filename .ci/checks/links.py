"""Checks that relative links in Markdown lead somewhere, to a heading too where they name one, and that each page under
docs/ is linked from another: a page that nobody can find is not a document."""

import re
import urllib.parse

from sources import ROOT, Findings, files, read

LINK = re.compile(
    r"!?\[[^\]]*\]\(\s*<?([^)>\s]+)>?[^)]*\)|<img[^>]*\bsrc=\"([^\"]+)\"|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE
)
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def anchors(text: str) -> set[str]:
    """GitHub's ids of the headings of a page."""
    found = set()
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        number, unique = 0, slug
        while unique in found:
            number += 1
            unique = f"{slug}-{number}"
        found.add(unique)
    return found


def blanked(text: str) -> str:
    hide = lambda match: re.sub(r"[^\n]", " ", match[0])  # noqa: E731
    return CODE.sub(hide, FENCE.sub(hide, text))


def main() -> int:
    findings = Findings("links")
    pages = files("*.md")
    links = 0
    reached = set()
    for page in pages:
        text = blanked(read(page))
        for match in LINK.finditer(text):
            target = next(part for part in match.groups() if part)
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            links += 1
            line = text.count("\n", 0, match.start()) + 1
            path, _, anchor = urllib.parse.unquote(target).partition("#")
            place = (ROOT / page).parent / path if path else ROOT / page
            if place.resolve() != (ROOT / page).resolve():
                reached.add(place.resolve())
            if not place.exists() or not place.resolve().is_relative_to(ROOT):
                findings.add(page, line, f"the link to '{target}' leads nowhere")
            elif anchor and place.suffix == ".md" and anchor not in anchors(place.read_text()):
                findings.add(page, line, f"'{path or page}' has no heading '#{anchor}'")
    for page in pages:
        if page.parts[0] == "docs" and (ROOT / page).resolve() not in reached:
            findings.add(page, 1, "no other page links here")
    return findings.finish(f"{len(pages)} pages, {links} links")


if __name__ == "__main__":
    raise SystemExit(main())
