"""The report of a run that really happened, read by a parser that is not ours."""

import html.parser
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

VOID = {"meta", "br"}
SCRIPT = """
import os, signal, sys, time
print("hello from", os.environ["RANK"], flush=True)
if os.environ["RANK"] == "1" and os.environ["MUSTER_GENERATION"] == "1":
    print("\\x1b[31m<script>alert(1)</script>", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


class Page(html.parser.HTMLParser):
    """Holds that every tag is closed in order, and collects what could load something."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.tags = set()
        self.loads = []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.loads += [f"{tag} {name}={value}" for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()


def run_with_a_fault(muster, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = muster("run", "-n", "2", "--run-dir", tmp_path / "run", "--", sys.executable, script)
    assert done.code == 0, done.err
    return tmp_path / "run"


def run_without_a_fault(muster, tmp_path):
    assert muster("run", "-n", "1", "--run-dir", tmp_path / "run", "--", "true").code == 0
    return tmp_path / "run"


def test_the_page_is_well_formed_and_loads_nothing(muster, tmp_path):
    folder = run_with_a_fault(muster, tmp_path)
    assert muster("report", folder).code == 0
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == [] and page.loads == []
    assert {"svg", "table", "h1", "pre"} <= page.tags and "script" not in page.tags
    assert "default-src 'none'" in text and "url(" not in text and "&lt;script&gt;" in text
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        xml.etree.ElementTree.fromstring(drawing)
    assert (folder / "report.html").stat().st_mode & 0o777 == 0o600


def test_json_and_summary_tell_of_the_fault(muster, tmp_path):
    folder = run_with_a_fault(muster, tmp_path)
    report = muster("report", folder, "--json").json()
    assert report["format"] == "muster-report/1" and report["state"] == "SUCCEEDED"
    assert [(fault["rank"], fault["exit"]) for fault in report["faults"]] == [(1, "SIGKILL")]
    assert not (folder / "report.html").exists()
    shown = muster("show", folder).out
    assert "one fault survived, between " in shown and "steps       not reported" in shown


def test_nothing_is_claimed_of_a_script_that_reports_no_steps(muster, tmp_path):
    """It worked for a second and started from nothing again: that it lost milliseconds would be a lie."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, time\ntime.sleep(1)\n"
        "os.environ['MUSTER_GENERATION'] == '1' and os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = muster("run", "-n", "1", "--run-dir", tmp_path / "run", "--json", "--", sys.executable, script)
    report = muster("report", tmp_path / "run", "--json").json()
    for lost in (done.json()["lost"], report["lost"], report["faults"][0]["lost"]):
        assert lost["total_s"] is None and lost["replay_s"] is None and lost["at_most_s"] > 1
    assert done.json()["lost"] == pytest.approx(report["lost"], abs=1e-6)
    assert done.json()["wall_s"] == pytest.approx(report["wall_s"], abs=1e-6)
    assert done.json()["steps"] is None and report["steps"] is None
    assert report["faults"][0]["step"] is None and report["faults"][0]["recovery_s"] is None
    assert set(report["budget"].values()) == {None}
    words = r"lost (between [\d.]+ m?s and [\d.]+ s) to 1 fault: .*, and what of [\d.]+ s of work was not saved\n"
    bounds = re.search(words, done.err)[1]
    assert f"one fault survived, {bounds} lost" in report["verdict"]
    assert f"lost {bounds}" in muster("show", tmp_path / "run").out
    assert re.search(
        r"started again after [\d.]+ m?s; what of the [1-9][\d.]* s before was not saved is done again\n", done.err
    )
    assert "muster: steps not reported, 1 restart\n" in done.err and "0 steps" not in done.err


def test_a_fault_behind_the_last_step_is_recovered_from_and_says_so(start, muster):
    run = start("muster-train", "--steps", 40, "--every", 20, "--linger-ms", 20000)
    run.wait_step(40)
    run.kill(1)
    assert run.end() == 0, run.err
    report = muster("report", run.folder, "--json").json()
    (fault,) = report["faults"]
    assert fault["recovery_s"] is not None and fault["stepping_s"] is None
    assert fault["recovery_s"] == pytest.approx(fault["restarted_s"] - fault["died_s"], abs=1e-5)
    said = r"muster: rank 1 killed by SIGKILL at step 40; recovered in (.*): 2 ranks at work again, with no step left\n"
    took = re.search(said, run.err)
    assert took and took[1].endswith("s"), run.err
    assert "one fault survived" in report["verdict"]
    assert run.result()["lost"]["total_s"] == pytest.approx(report["lost"]["total_s"], abs=2e-3)
    assert report["notes"] == []


def test_the_run_and_its_report_give_a_fault_the_same_figures(start, muster):
    run = start("muster-train", "--steps", 500, "--step-ms", 4, "--every", 450)
    run.wait_step(90)
    run.kill(1)
    assert run.end() == 0, run.err
    report = muster("report", run.folder, "--json").json()
    fault = report["faults"][0]
    lost = fault["lost"]
    assert fault["recovery_s"] == pytest.approx(lost["detect_s"] + lost["stop_s"] + lost["start_s"], abs=2e-6)
    assert lost["total_s"] == pytest.approx(fault["recovery_s"] + lost["replay_s"], abs=2e-6)
    told = re.search(r"done again: .*; lost (.*): recovery (.*), replay (.*)\n", run.err).groups()
    assert re.search(r"; recovered in (.*): 2 ranks at work", run.err)[1] == told[1]
    shown = muster("show", run.folder).out
    assert f"one fault survived, {told[0]} lost" in shown
    assert re.search(r"lost (.*): recovery (.*) \(.*\), replay (.*)\n", shown).groups() == told
    assert re.search(r"lost (.*) to 1 fault: recovery (.*) \(.*\), replay (.*)\n", run.err).groups() == told


def test_the_report_of_a_run_that_broke_off_says_how_to_go_on(start, muster):
    run = start("muster-train", "--steps", 100000, "--step-ms", 2, "--every", 10)
    run.wait_step(30)
    run.kill_all()
    run.end()
    run.assert_nothing_left()
    again = f"cd {run.folder.parent} && muster run {run.folder}/job.yaml --checkpoint-dir {run.folder}/checkpoints"
    told = muster("report", run.folder.name, cwd=run.folder.parent)
    assert told.code == 0 and f"\nto go on: {again}\n" in told.err, told.err
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert page.index("<h1>") < page.index(f"<code>{html.escape(again)}</code>") < page.index("<section>")
    report = muster("report", run.folder, "--json").json()
    assert report["state"] == "UNFINISHED" and report["go_on"] == again
    assert f"to go on    {again}\n" in muster("show", run.folder).out


def test_a_folder_that_is_no_run_is_an_error_that_says_so(muster, tmp_path):
    for verb in ("report", "show"):
        done = muster(verb, tmp_path, "--json")
        assert done.code == 3
        assert done.json()["error"]["code"] == "not_found"
        assert f"{tmp_path} is no run folder" in done.err
    for junk in ("", "[]", '{"format": "muster-run/9"}', '{"format": "muster-run/1"}'):
        (tmp_path / "run.json").write_text(junk)
        for verb in ("report", "show"):
            done = muster(verb, tmp_path)
            assert done.code == 1 and "run.json" in done.err, (junk, done.err)


@pytest.mark.parametrize(
    ("inside", "hint"),
    [
        ("manifest.crc32c", "it is a checkpoint: muster ckpt show {}"),
        ("latest", "it holds checkpoints: muster ckpt ls {}"),
        ("dataset_dict.json", "it is a dataset: muster data ls {}"),
        ("dataset_info.json", "it is a dataset: muster data ls {}"),
        ("job.yaml", "it holds a job that did not begin: muster run {}/job.yaml"),
        ("train-1/run.json", "it holds runs, the newest is here: muster show {}/train-1"),
        ("else.txt", "give the folder that 'muster run' named"),
    ],
)
def test_a_folder_that_is_something_else_is_told_by_what_is_in_it(muster, tmp_path, inside, hint):
    path = tmp_path / "it" / inside
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    done = muster("show", tmp_path / "it")
    assert done.code == 3 and hint.format(tmp_path / "it") in done.err, done.err


def test_the_report_counts_the_time_lost_as_the_run_did(start, muster):
    """Their clocks and records are the same; the run polls heartbeats, so 50 ms and a tenth are granted."""
    run = start("muster-train", "--steps", 600, "--step-ms", 4, "--every", 50)
    run.wait_step(90)
    run.kill(1)
    run.wait_step(60, generation=2)  # amid the replay: the next fault cuts it short
    run.kill(0, generation=2)
    assert run.end() == 0, run.err
    assert run.result()["restarts"] == 2
    report = muster("report", run.folder, "--json").json()
    lost = run.result()["lost"]
    for stage in ("detect_s", "stop_s", "start_s", "replay_s"):
        assert abs(report["lost"][stage] - lost[stage]) <= 0.05 + 0.1 * lost[stage], (stage, report["lost"], lost)
    assert report["lost"]["replay_s"] > 0
    assert not [note for note in report["notes"] if "lost to faults" in note]
    assert [fault["what"] for fault in report["faults"]] == ["killed by SIGKILL"] * 2
    assert all(fault["decision"] for fault in report["faults"])


def test_the_page_replaces_an_earlier_page_and_nothing_else(muster, tmp_path):
    run = run_without_a_fault(muster, tmp_path)
    assert muster("report", run, "-o", "page.html").code == 0
    (tmp_path / "link").symlink_to("page.html")
    (tmp_path / "page.html.tmp").write_text("mine")
    assert muster("report", run, "-o", "link").code == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "page.html.tmp").read_text() == "mine"
    job = tmp_path / "job.yaml"
    job.write_text("kind: Job\n")
    refused = muster("report", run, "-o", job)
    assert refused.code == 5 and "is not a report; it was not changed" in refused.err
    assert job.read_text() == "kind: Job\n"


def test_the_page_can_go_through_a_pipe(muster, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        assert muster("report", run_without_a_fault(muster, tmp_path), "-o", fifo).code == 0
        assert b"<!DOCTYPE html>" in reader.communicate()[0]
    assert fifo.is_fifo()


def test_a_page_without_a_folder_to_go_to_names_what_was_typed(muster, tmp_path):
    run = run_without_a_fault(muster, tmp_path)
    done = muster("report", run, "--output", "nosuch/page.html")
    assert done.code == 3 and f"there is no folder at {tmp_path}/nosuch\n" in done.err and ".tmp" not in done.err
    (tmp_path / "file").touch()
    done = muster("report", run, "--output", "file/page.html")
    assert done.code != 0 and "file/page.html" in done.err and ".tmp" not in done.err
