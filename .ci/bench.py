#!/usr/bin/env python3
"""bench.py BAR builds release and runs the one file bench/BAR_*; without BAR lists the bars.

Human text goes to stderr and the RESULT lines to stdout. They are kept in build/bench/BAR.txt, from where the list
takes the last figures of this machine; those on record are in bench/README.md.
"""

import ast
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "bench"


def bars() -> dict[str, pathlib.Path]:
    found = {path.name.split("_")[0]: path for path in sorted(ROOT.glob("bench/[A-Z]*[0-9]_*.py"))}
    return dict(sorted(found.items()))


def question(path: pathlib.Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text())) or "(no docstring)"
    return text.splitlines()[0]


def kept_figures(bar: str) -> list[str]:
    """'key value unit' of the last run here, else of the table in bench/README.md."""
    kept = KEPT / f"{bar}.txt"
    if kept.exists():
        return [line.removeprefix("RESULT ") + "  (last run here)" for line in kept.read_text().splitlines()]
    table = (ROOT / "bench" / "README.md").read_text()
    figures = []
    for keys, values, units in re.findall(rf"^\| {bar}\.([^|]+) \| ([^|]+) \| ([^|]+) \|", table, re.MULTILINE):
        # One row may hold several, as "A5.one / two | 1 / 2 | s, count".
        keys, values, units = keys.split(" / "), values.split(" / "), units.split(", ")
        units = units * len(keys) if len(units) == 1 else units
        figures += [
            f"{bar}.{key} {value} {unit}  (on record)" for key, value, unit in zip(keys, values, units, strict=True)
        ]
    return figures


def show_list() -> int:
    print("make bench BAR=… measures one of these:")
    for bar, path in bars().items():
        print(f"  {bar:5}{question(path)}")
        for figure in kept_figures(bar) or ["no figure yet"]:
            print(f"         {figure}")
    return 0


def measure(bar: str) -> int:
    path = bars().get(bar)
    if path is None:
        print(f"error: no bar named {bar}; 'make bench' lists them", file=sys.stderr)
        return 2
    subprocess.run([str(ROOT / ".ci" / "setup.sh"), "all"], cwd=ROOT, stdout=sys.stderr, check=True)
    if subprocess.run([str(ROOT / ".ci" / "build-all.sh")], cwd=ROOT, stdout=sys.stderr).returncode:
        return 1
    environment = os.environ | {"MUSTER_BUILD": str(ROOT / "build/release"), "MUSTER_VENV": str(ROOT / ".venv")}
    results = []
    with subprocess.Popen(
        [str(ROOT / ".venv/bin/python"), str(path)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith("RESULT "):
                results.append(line)
    if results:
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{bar}.txt").write_text("".join(results))
    return process.returncode


if __name__ == "__main__":
    sys.exit(measure(sys.argv[1]) if len(sys.argv) > 1 else show_list())
