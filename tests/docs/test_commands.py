"""Runs what README and the guides tell a reader to type: the blocks marked `sh run` of a page, in order, in one shell.

They run from the repository's root, in a home folder of their own, so that nothing of the developer's is touched.
"""

import os
import pathlib
import re
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_S = 900


def commands_of(page: pathlib.Path) -> str:
    return "\n".join(BLOCK.findall(page.read_text(encoding="utf-8")))


PAGES = [page for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/guide/*.md"))] if commands_of(page)]


def test_there_are_commands_to_run():
    assert ROOT / "README.md" in PAGES
    assert ROOT / "docs" / "guide" / "quickstart.md" in PAGES


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_work_as_written(page, tmp_path):
    home = pathlib.Path.home()
    environment = os.environ | {
        "HOME": str(tmp_path),
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(home / ".cache" / "ccache")),
    }
    script = f"set -euo pipefail\ncd {ROOT}\nset -v\n{commands_of(page)}"
    with subprocess.Popen(
        ["bash", "-c", script],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as shell:
        try:
            output, _ = shell.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            output, _ = shell.communicate()
            pytest.fail(f"not done after {LIMIT_S} s:\n{output[-4000:]}")
    print(output)
    assert shell.returncode == 0, output[-4000:]
