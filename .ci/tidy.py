#!/usr/bin/env python3
"""clang-tidy over the torch-free sources but their tests, those left out that passed before exactly as they are.

A file passed "as it is" when the file, every header of ours that it reaches, its compile command, .clang-tidy and the
version of clang-tidy are the same. What passed is remembered outside the clone, as ccache does, in
$XDG_CACHE_HOME/muster/tidy or ~/.cache/muster/tidy.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
TIDY = "clang-tidy-19"
MEMORY = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "muster" / "tidy"
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


def reached(path: pathlib.Path, seen: dict[pathlib.Path, bytes]) -> None:
    """Adds `path` and the headers of ours that it includes, and theirs."""
    if path in seen or not path.is_file():
        return
    seen[path] = path.read_bytes()
    for name in INCLUDE.findall(seen[path].decode(errors="replace")):
        for folder in [path.parent, *FOLDERS]:
            reached(folder / name, seen)


def key_of(path: pathlib.Path, command: str, fixed: bytes) -> str:
    seen: dict[pathlib.Path, bytes] = {}
    reached(path, seen)
    digest = hashlib.sha256(fixed + command.replace(str(ROOT), "").encode())
    for source in sorted(seen):
        digest.update(str(source.relative_to(ROOT)).encode() + b"\0" + seen[source] + b"\0")
    return digest.hexdigest()


def tidy(path: pathlib.Path) -> tuple[bool, str]:
    command = [TIDY, "--quiet", "-p", str(BUILD), str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode == 0, done.stdout


def main() -> int:
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    fixed = version + (ROOT / ".clang-tidy").read_bytes()
    todo = {path: key_of(path, command, fixed) for path, command in commands().items()}
    MEMORY.mkdir(parents=True, exist_ok=True)
    fresh = {path: key for path, key in todo.items() if not (MEMORY / key).exists()}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("MUSTER_JOBS") or os.cpu_count() or 1)) as pool:
        for (path, key), (passed, text) in zip(fresh.items(), pool.map(tidy, fresh), strict=True):
            if passed:
                (MEMORY / key).touch()
                continue
            failed += 1
            print(f"{path.relative_to(ROOT)}:\n{text}", flush=True)
    print(f"tidy: {len(todo)} files, {len(fresh)} of them new or changed, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
