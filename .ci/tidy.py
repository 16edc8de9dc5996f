#!/usr/bin/env python3
"""clang-tidy over the torch-free sources but their tests: those that differ from origin/main, or all with MUSTER_TIDY_ALL=1.

A file differs when it or a header of ours that it reaches does, committed or not; all do when .clang-tidy does, or when
there is no origin/main to compare with. A change of compile commands alone is seen only with MUSTER_TIDY_ALL=1.

What passed before exactly as it is gets left out: the file, every header of ours that it reaches, its compile command,
.clang-tidy and the version of clang-tidy are the same. What passed is remembered file by file, so an interrupted run is
continued by the next, and outside the clone, as ccache does, in $XDG_CACHE_HOME/muster/tidy or ~/.cache/muster/tidy.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
TIDY = "clang-tidy-19"
SETTINGS = ROOT / ".clang-tidy"
BASE = "origin/main"
MEMORY = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "muster" / "tidy"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
FOLDERS = [ROOT / "src", ROOT / "recipes", ROOT / "fuzz"]


def commands() -> dict[pathlib.Path, str]:
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    ours = {}
    for entry in entries:
        path = pathlib.Path(entry["file"])
        ours_to_read = path.is_relative_to(ROOT) and not path.is_relative_to(BUILD) and not path.stem.endswith("_test")
        if ours_to_read and "/torch/include" not in entry["command"]:
            ours.setdefault(path, entry["command"])
    return ours


def changed() -> set[pathlib.Path] | None:
    """What differs from where we left BASE, in commits, in the working tree or as new files; None without a BASE."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
        return [name for name in done.stdout.split("\0") if name]

    try:
        start = git("merge-base", BASE, "HEAD")[0].strip()
        names = git("diff", "--name-only", "-z", start) + git("ls-files", "--others", "--exclude-standard", "-z")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None
    return {ROOT / name for name in names}


def reached(path: pathlib.Path, seen: dict[pathlib.Path, bytes]) -> dict[pathlib.Path, bytes]:
    """Adds `path` and the headers of ours that it includes, and theirs."""
    path = pathlib.Path(os.path.normpath(path))
    if path not in seen and path.is_file():
        seen[path] = path.read_bytes()
        for name in INCLUDE.findall(seen[path].decode(errors="replace")):
            for folder in [path.parent, *FOLDERS]:
                reached(folder / name, seen)
    return seen


def key_of(seen: dict[pathlib.Path, bytes], command: str, fixed: bytes) -> str:
    digest = hashlib.sha256(fixed + command.replace(str(ROOT), "").encode())
    for source in sorted(seen):
        digest.update(str(source.relative_to(ROOT)).encode() + b"\0" + seen[source] + b"\0")
    return digest.hexdigest()


def choose() -> tuple[dict[pathlib.Path, str], str]:
    """The files to read, each with the key under which it is remembered once it passed; and how they were chosen."""
    fixed = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout + SETTINGS.read_bytes()
    sources = {path: (reached(path, {}), command) for path, command in sorted(commands().items())}
    differing = None if os.environ.get("MUSTER_TIDY_ALL") else changed()
    if differing is None or SETTINGS in differing:
        asked, scope = sources, f"all {len(sources)} files"
    else:
        asked = {path: source for path, source in sources.items() if differing & source[0].keys()}
        scope = f"{len(asked)} of {len(sources)} files differ from {BASE} (ALL=1 takes all)"
    keys = {path: key_of(seen, command, fixed) for path, (seen, command) in asked.items()}
    todo = {path: key for path, key in keys.items() if not (MEMORY / key).exists()}
    return todo, f"{scope}, {len(keys) - len(todo)} of them passed before as they are"


def tidy(path: pathlib.Path, key: str) -> tuple[float, str]:
    """How long it took, and the findings; none is remembered as passed."""
    begun = time.monotonic()
    done = subprocess.run([TIDY, "--quiet", "-p", str(BUILD), str(path)], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        (MEMORY / key).touch()
        return time.monotonic() - begun, ""
    return time.monotonic() - begun, done.stdout.strip() or done.stderr.strip() or f"exit status {done.returncode}"


def read_all(todo: dict[pathlib.Path, str], pool: concurrent.futures.Executor) -> int:
    """One line a file as it is done, findings after it; returns how many files had some."""
    begun = time.monotonic()
    running = {pool.submit(tidy, path, key): path for path, key in todo.items()}
    failed = 0
    for count, done in enumerate(concurrent.futures.as_completed(running), 1):
        seconds, findings = done.result()
        left = (time.monotonic() - begun) / count * (len(todo) - count)
        name = running[done].relative_to(ROOT)
        print(f"{count:4} of {len(todo)}  {seconds:3.0f} s  about {left / 60:.0f} min left  {name}", flush=True)
        if findings:
            failed += 1
            print(findings, flush=True)
    return failed


def main() -> int:
    todo, scope = choose()
    print(scope, flush=True)
    MEMORY.mkdir(parents=True, exist_ok=True)
    pool = concurrent.futures.ThreadPoolExecutor(int(os.environ.get("MUSTER_JOBS") or os.cpu_count() or 1))
    try:
        failed = read_all(todo, pool)
    except KeyboardInterrupt:
        print("tidy: stopped; what passed so far is remembered, and the next run goes on from there", file=sys.stderr)
        return 130
    finally:
        pool.shutdown(cancel_futures=True)
    print(f"tidy: {scope}, {len(todo)} read, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
