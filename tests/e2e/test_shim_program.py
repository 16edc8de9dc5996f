"""muster-shim stays the small thing that it is: libc and nothing else."""

import subprocess


def test_the_shim_links_only_libc(programs):
    listed = subprocess.run(["ldd", programs / "muster-shim"], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0].rsplit("/", 1)[-1].split(".so")[0] for line in listed.splitlines()}
    assert names <= {"linux-vdso", "libc", "ld-linux-x86-64", "ld-linux-aarch64", "ld-linux"}, listed


def test_the_shim_started_by_hand_says_so(programs):
    done = subprocess.run([programs / "muster-shim"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "muster run" in done.stderr
