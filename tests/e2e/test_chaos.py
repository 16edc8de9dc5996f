"""A job on four nodes that is hit all the time: ranks, agents, the coordinator, nodes, hangs (bench/A11_chaos.py)."""

import os
import shutil
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_minute_of_faults_costs_not_one_bit_of_the_weights(root, build):
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    done = subprocess.run(
        [sys.executable, root / "bench" / "A11_chaos.py"],
        capture_output=True,
        text=True,
        timeout=900,
        env=os.environ | {"MUSTER_BUILD": str(build), "A11_SECONDS": "60", "A11_APART": "6", "A11_PER_NODE": "2"},
    )
    print(done.stderr)  # the seed, and what was done to whom
    assert done.returncode == 0
    assert "RESULT A11.weights_equal.count 1 count" in done.stdout
