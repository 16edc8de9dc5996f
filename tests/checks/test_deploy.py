"""The units in deploy/ say what the programs take, and systemd reads them."""

import configparser
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


def service_of(unit: pathlib.Path) -> configparser.SectionProxy:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str
    parsed.read_string(unit.read_text(encoding="utf-8"))
    return parsed["Service"]


def test_there_is_a_unit():
    assert [unit.name for unit in UNITS] == ["muster-agent@.service"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_its_commands_have_the_flags_that_the_program_takes(unit, programs):
    commands = [value for key, value in service_of(unit).items() if key.startswith("ExecStart")]
    assert len(commands) == 2
    for command in commands:
        program, verb, *words = command.split()
        assert pathlib.Path(program).name == "muster"
        usage = subprocess.run(
            [programs / "muster", "help", verb], capture_output=True, text=True, timeout=30, check=True
        ).stdout
        for flag in [word for word in words if word.startswith("--")]:
            assert re.search(rf"{flag}\b", usage), f"{verb} does not take {flag}"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_its_variables_are_in_the_example(unit):
    used = set(re.findall(r"\$\{(\w+)\}", unit.read_text(encoding="utf-8")))
    example = (unit.parent / "agent.conf.example").read_text(encoding="utf-8")
    assert used == set(re.findall(r"^(\w+)=", example, re.MULTILINE))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong(unit, programs, tmp_path):
    # The program is where make install puts it; here it is where it was built.
    text = unit.read_text(encoding="utf-8").replace("/usr/local/bin/muster", str(programs / "muster"))
    text = text.replace("User=muster\n", "")
    instance = tmp_path / unit.name.replace("@", "@job")
    instance.write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(instance)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if unit.stem.split("@")[0] in line]
    assert not said, done.stderr
    assert done.returncode == 0, done.stderr
