"""Fixtures for tests of whole programs. MUSTER_BUILD names the build to test; default build/release."""

import dataclasses
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    return ROOT


@pytest.fixture(scope="session")
def build() -> pathlib.Path:
    folder = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build" / "release")).resolve()
    if not (folder / "bin" / "muster").exists():
        pytest.fail(f"{folder}/bin/muster is not built: make build")
    return folder


@pytest.fixture(scope="session")
def programs(build) -> pathlib.Path:
    """The folder with muster, muster-shim and muster-train."""
    return build / "bin"


@dataclasses.dataclass(frozen=True)
class Done:
    """A program that has ended."""

    code: int
    out: str
    err: str

    def json(self):
        return json.loads(self.out)


@pytest.fixture
def muster(programs, tmp_path):
    """Runs `muster WORDS…` in the test's own folder and returns its exit code and output."""

    def run(*words, cwd=tmp_path, timeout=120, **environment) -> Done:
        done = subprocess.run(
            [str(programs / "muster"), *map(str, words)],
            cwd=cwd,
            timeout=timeout,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=os.environ | environment,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run
