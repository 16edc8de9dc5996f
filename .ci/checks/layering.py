"""Holds includes and CMake link lists against the order of dependence of the folders in src/.

A folder may use folders of earlier tiers and itself. Beyond that: some folders use less than their tier allows,
nothing includes the server, torch stays in train and recipes, heavy headers stay out of our headers, and what a
folder includes must be reachable through the DEPS that its CMakeLists.txt declares.
"""

import pathlib
import re

from sources import Findings, blank, files, read

TIERS = [
    ["base"],
    ["os", "net", "spec"],
    ["store", "sched", "objstore", "coll"],
    ["backend", "data", "train", "profile"],
    ["agent", "control"],
    ["server", "cli", "python"],
]
TIER = {folder: tier for tier, folders in enumerate(TIERS) for folder in folders}
ONLY = {"sched": {"base", "spec"}, "coll": {"base", "os"}}  # less than the tier allows
# The training loop reads the loader's batches, servers and clients run in the event loop; nothing leads back.
MORE = {"train": {"data"}, "net": {"os"}}
ABOVE = {"apps", "recipes", "tests", "bench", "fuzz"}  # may use every folder

TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
HEAVY = re.compile(r"^(torch/(torch|extension)\.h|nlohmann/json\.hpp|yaml-cpp/|CLI/|curl/|microhttpd\.h)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"]+)[>"]', re.MULTILINE)
DECLARATION = re.compile(r"\bmuster_(library|shared_library)\(\s*(\w+)(.*?)\)", re.DOTALL)
GETENV = re.compile(r"\b(secure_)?getenv\s*\(|\bextern\s+char\s*\*\*\s*environ\b")


def folder_of(path: pathlib.Path) -> str:
    return path.parts[1] if path.parts[0] == "src" and len(path.parts) > 2 else path.parts[0]


def allowed(user: str, used: str) -> bool:
    if user == used:
        return True
    if used == "server":
        return user == "apps"
    if user in ABOVE:
        return True
    if user in ONLY:
        return used in ONLY[user]
    return TIER[used] < TIER[user] or used in MORE.get(user, ())


def may_use_torch(path: pathlib.Path) -> bool:
    if path.parts[:3] == ("src", "train", "checkpoint"):
        return False
    return path.parts[0] in ("recipes", "bench", "cmake") or folder_of(path) in ("train", "python")


def words_after(body: str, keyword: str) -> list[str]:
    """The words of one keyword's list in the arguments of a CMake call."""
    match = re.search(rf"\b{keyword}\b([^)]*?)(?=\b(?:SOURCES|DEPS|LIBS|TORCH|TIMEOUT|EXPORTS)\b|$)", body, re.DOTALL)
    return match[1].split() if match else []


def read_libraries() -> tuple[dict[str, str], dict[str, set[str]]]:
    """Library to the folder that declares it, and folder to the libraries that it links."""
    home, links = {}, {}
    for path in files("src/**/CMakeLists.txt", "src/*/CMakeLists.txt"):
        text = re.sub(r"#[^\n]*", "", read(path))
        for _, name, body in DECLARATION.findall(text):
            home[name] = folder_of(path)
            links.setdefault(folder_of(path), set()).update(words_after(body, "DEPS"))
    return home, links


def reach(folder: str, home: dict[str, str], links: dict[str, set[str]]) -> set[str]:
    """Folders whose libraries come along when `folder` is linked."""
    seen, todo = {folder}, [folder]
    while todo:
        for library in links.get(todo.pop(), ()):
            target = home.get(library)
            if target and target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def check_links(findings: Findings, home: dict[str, str], links: dict[str, set[str]]) -> None:
    for folder, libraries in sorted(links.items()):
        if folder not in TIER:
            findings.add(f"src/{folder}/CMakeLists.txt", 1, f"'{folder}' has no place in the order of dependence")
            continue
        for library in sorted(libraries):
            target = home.get(library)
            if target is None:
                findings.add(f"src/{folder}/CMakeLists.txt", 1, f"DEPS names '{library}', which no folder declares")
            elif target in TIER and not allowed(folder, target):
                findings.add(f"src/{folder}/CMakeLists.txt", 1, f"'{folder}' may not link '{library}' of '{target}'")


def check_file(path: pathlib.Path, findings: Findings, reachable: dict[str, set[str]]) -> None:
    text = blank(read(path), keep_strings=True)
    user = folder_of(path)
    for match in INCLUDE.finditer(text):
        header, line = match[1], text.count("\n", 0, match.start()) + 1
        used = header.split("/")[0]
        if TORCH.match(header) and not may_use_torch(path):
            findings.add(
                path, line, f"<{header}>: libtorch is used only in src/train, outside its checkpoint, and recipes"
            )
        if HEAVY.match(header) and path.suffix == ".h" and path.parts[0] != "cmake":
            findings.add(path, line, f"<{header}> does not belong in a header: include it in the .cc")
        if used not in TIER or "/" not in header:
            continue
        if user in TIER and not allowed(user, used):
            findings.add(path, line, f"'{user}' may not include '{used}'")
        elif user in TIER and used not in reachable.get(user, TIER) and not path.name.endswith("_test.cc"):
            findings.add(path, line, f"'{user}' includes '{used}', but its DEPS do not lead there")
        elif used == "server" and user not in ("server", "apps"):
            findings.add(path, line, "nothing includes the server")
    for match in GETENV.finditer(text):
        if path.as_posix() != "src/spec/env.cc":
            findings.add(
                path, text.count("\n", 0, match.start()) + 1, "the environment is read only in src/spec/env.cc"
            )


def main() -> int:
    findings = Findings("layering")
    home, links = read_libraries()
    check_links(findings, home, links)
    reachable = {folder: reach(folder, home, links) for folder in links}
    sources = [p for p in files("*.cc", "*.h", "*.c") if p.parts[0] in {"src", "cmake"} | ABOVE]
    for path in sources:
        if path.parts[0] == "src" and folder_of(path) not in TIER:
            findings.add(path, 1, f"src/{folder_of(path)} has no place in the order of dependence")
            continue
        check_file(path, findings, reachable)
    return findings.finish(f"{len(sources)} files, {len(home)} libraries")


if __name__ == "__main__":
    raise SystemExit(main())
