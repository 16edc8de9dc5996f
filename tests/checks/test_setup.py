"""What setup takes for installed, and what the test runner takes for a runner's last word."""

import importlib.util
import pathlib

import pytest

CI = pathlib.Path(__file__).resolve().parents[2] / ".ci"


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"ci_{name}", CI / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def venv(tmp_path):
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("torch-2.13.0+cpu", "typing_extensions-4.16.0", "numpy-2.4.6"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "is_missing"),
    [
        ("torch==2.13.0", False),
        ("torch==2.13.0+cpu", False),
        ("torch==2.13.1", True),
        ("numpy", False),
        ("numpy==2.4.5", True),
        ("typing-extensions==4.16.0", False),
        ("pyarrow", True),
        ("pyarrow==26.0.1", True),
    ],
)
def test_setup_sees_what_is_missing(venv, line, is_missing):
    assert load("venvs").missing(venv, [line]) == ([line] if is_missing else [])


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("checks: format, layering, sizes hold", 0),
        ("100% tests passed, 0 tests failed out of 412", 1),
        ("98% tests passed, 3 tests failed out of 412", 1),
        ("22 passed in 0.33s", 2),
        ("=== 1 failed, 21 passed, 2 skipped in 61.20s (0:01:01) ===", 2),
        ("passed", None),
        ("ok: tests passed", None),
    ],
)
def test_closing_lines_are_told_from_others(line, kind):
    matches = [index for index, pattern in enumerate(load("test").CLOSING) if pattern.fullmatch(line)]
    assert matches == ([] if kind is None else [kind])
