"""Makes the virtual environments and keeps them at what the requirement files name.

    venvs.py build   .venv with torch, for building and the demo
    venvs.py all     also tests/requirements.txt in .venv, and .cache/venvs/NAME for each
                     tests/venvs/NAME.txt (peers that cannot live beside each other)

What is installed is read from the environments themselves, so there is no stamp that could lie; when
nothing is missing this takes a tenth of a second. MUSTER_PIP_ARGS is passed to every pip install.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.0"


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_requirements(path: pathlib.Path) -> list[str]:
    """The requirement lines of a file; '# pip: --no-deps' lines are options and are left out."""
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def pip_options(path: pathlib.Path) -> list[str]:
    """Options that a list asks for, in a comment line '# pip: OPTIONS'."""
    found = re.findall(r"^# pip: (.*)$", path.read_text(), re.MULTILINE)
    return shlex.split(" ".join(found))


def installed(venv: pathlib.Path) -> dict[str, str]:
    """Name to version, from the names of the dist-info folders."""
    packages = {}
    for info in venv.glob("lib/python3*/site-packages/*.dist-info"):
        name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
        packages[normal(name)] = version
    return packages


def missing(venv: pathlib.Path, requirements: list[str]) -> list[str]:
    have = installed(venv)
    lacking = []
    for line in requirements:
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(?:==([^\s;]+))?", line)
        version = have.get(normal(match[1])) if match else None
        # A local version such as 2.13.0+cpu satisfies ==2.13.0.
        exact = match and (match[2] is None or version in (match[2],) or (version or "").split("+")[0] == match[2])
        if version is None or not exact:
            lacking.append(line)
    return lacking


def ensure(venv: pathlib.Path, requirements: list[str], options: list[str], note: str) -> None:
    lacking = missing(venv, requirements) if (venv / "bin" / "python").exists() else requirements
    shown = venv.relative_to(ROOT)
    if not (venv / "bin" / "python").exists():
        python = os.environ.get("PYTHON", "python3")
        print(f"setup: making {shown}", file=sys.stderr)
        subprocess.run([python, "-m", "venv", str(venv)], check=True)
    if not lacking:
        return
    print(f"setup: installing into {shown}: {' '.join(lacking)} ({note})", file=sys.stderr)
    started = time.monotonic()
    command = [
        str(venv / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *shlex.split(os.environ.get("MUSTER_PIP_ARGS", "")),
        *options,
        *lacking,
    ]
    subprocess.run(command, check=True)
    still = missing(venv, requirements)
    if still:
        sys.exit(f"error: pip succeeded, but {shown} still lacks {' '.join(still)}")
    print(f"setup: {shown} took {time.monotonic() - started:.0f} s", file=sys.stderr)


def main() -> int:
    profile = sys.argv[1] if len(sys.argv) > 1 else "all"
    main_venv = ROOT / ".venv"
    size = "about 1 min for a CPU wheel of 190 MB, 5 to 10 min for a CUDA wheel of several GB"
    try:
        ensure(main_venv, [TORCH], [], size)
        if profile == "build":
            return 0
        ensure(main_venv, read_requirements(ROOT / "tests" / "requirements.txt"), [], "about half a minute")
        for path in sorted((ROOT / "tests" / "venvs").glob("*.txt")):
            ensure(
                ROOT / ".cache" / "venvs" / path.stem,
                read_requirements(path),
                pip_options(path),
                "for the tests, about a minute",
            )
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"error: '{' '.join(error.cmd[:6])} …' failed with {error.returncode}\n"
            "  pip's own message is above; MUSTER_PIP_ARGS passes options to it"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
