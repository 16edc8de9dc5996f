"""A job on several nodes: `muster run --nnodes` and one `muster agent` a node, here all on this host."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess

import pytest

SCRIPT = """
import os, pathlib, sys, time
folder, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
names = ["RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE",
         "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR"]
print(" ".join(os.environ[name] for name in names), flush=True)
(folder / f"rank-{os.environ['RANK']}.{os.environ['TORCHELASTIC_RESTART_COUNT']}").touch()
end = time.monotonic() + seconds
while time.monotonic() < end and not (folder / "enough").exists():
    time.sleep(0.01)
"""


@pytest.fixture
def agent(bin_with_stepper, tmp_path, wait_until):
    """agent(run, NAME) starts a `muster agent` that joins the run. What is alive at the end is killed."""
    agents = []

    def begin(run, name, token=None, url=None, flags=(), **environment):
        wait_until((run.folder / "join-url").exists, "where to join")
        wait_until((run.folder / "run.json").exists, "the run")
        url = url or (run.folder / "join-url").read_text().strip()
        token = token or run.folder / "join-token"
        words = ["agent", "--join", url, "--token-file", token, "--name", name, *flags]
        process = subprocess.Popen(
            [str(bin_with_stepper / "muster"), *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            env=os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")} | environment,
        )
        agents.append(process)
        return process

    yield begin
    for process in agents:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def nodes(start, agent, script, python, tmp_path):
    """nodes(*NAMES, seconds=…) → a run of two ranks a node on this host and the named agents, and those agents."""

    def begin(*names, seconds=60.0, count=None, flags=()):
        count = count or 1 + len(names)
        flags = ["--nnodes", count, "--listen", "127.0.0.1:0", *flags]
        run = start(python, script(SCRIPT), tmp_path, seconds, flags=flags)
        agents = []
        for name in names:  # one behind the other: who comes last is the spare
            agents.append(agent(run, name))
            run.wait_event("node_joined", node=name)
        return run, agents

    return begin


def agents_of(run) -> list[int]:
    """Every `muster agent` of the run that somebody started; not the child that each supervises."""
    url = (run.folder / "join-url").read_text().strip().encode()
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if b"agent" in words and url in words:
                found[int(entry.name)] = parent
    return [pid for pid, parent in found.items() if parent not in found]


def leader_of(agent: subprocess.Popen) -> int | None:
    """The process that leads the node: a child of `muster agent`, as orphans of an earlier one may be."""
    children = pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    named = [pid for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text() == "muster\n"]
    return int(named[0]) if named else None


def enough(tmp_path: pathlib.Path):
    (tmp_path / "enough").touch()


def test_the_ranks_of_two_nodes_find_each_other_and_end_well(nodes, tmp_path):
    run, (other,) = nodes("other")
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.0").exists, f"rank {rank}")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert other.wait(timeout=30) == 0
    lines = [run.log(rank).decode().split() for rank in range(4)]
    assert [line[:6] for line in lines] == [
        ["0", "0", "0", "4", "2", "2"],
        ["1", "1", "0", "4", "2", "2"],
        ["2", "0", "1", "4", "2", "2"],
        ["3", "1", "1", "4", "2", "2"],
    ]
    assert not (run.folder / "join-token").exists()
    run.assert_nothing_left()


def test_a_folder_that_was_there_keeps_its_mode_when_an_agent_shares_it(nodes, tmp_path):
    folder = tmp_path / "run-0"
    folder.mkdir()
    folder.chmod(0o750)
    run, (other,) = nodes("other")
    run.wait_event("worker_started", rank=3)
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert other.wait(timeout=30) == 0
    assert run.folder == folder and folder.stat().st_mode & 0o777 == 0o750
    assert (folder / "logs" / "rank-3").is_dir(), "the agent took a folder of its own"


def test_a_rank_that_dies_on_another_node_is_recovered_from(nodes, tmp_path):
    run, (other,) = nodes("other")
    run.kill(3)
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert other.wait(timeout=30) == 0
    assert "rank 3 killed by SIGKILL" in run.err
    assert run.result()["restarts"] == 1
    assert {e["rank"] for e in run.events("worker_exited") if e["cause"] == "fault"} == {3}
    run.assert_nothing_left()


def test_the_ranks_of_an_agent_that_is_killed_go_on(nodes, tmp_path):
    run, (other,) = nodes("other", count=2)
    run.wait_event("worker_started", rank=3)
    for _ in range(2):
        leader = leader_of(other)
        os.kill(leader, signal.SIGKILL)
        run.wait(lambda leader=leader: leader_of(other) not in (leader, None), "another one")
    enough(tmp_path)
    assert run.end() == 0, run.err
    out, _ = other.communicate(timeout=30)
    assert other.returncode == 0 and out.count("died (killed by SIGKILL); another one took its place") >= 1, out
    assert len(run.events("worker_started")) == 4 and not run.events("node_lost") and not run.events("fault")
    run.assert_nothing_left()


def test_the_ranks_of_all_nodes_go_on_when_the_coordinator_is_killed(nodes, agent, tmp_path):
    run, (other, spare) = nodes("other", "spare", count=2)
    run.wait_event("worker_started", rank=3)
    for count in (1, 2):
        os.kill(run.coordinator(), signal.SIGKILL)
        run.wait_event("coordinator_back", count=count)
    assert not run.events("node_lost") and not run.events("fault")
    # What came afterwards is led as ever: a death, a node that joins, a node that leaves.
    run.kill(3)
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    late = agent(run, "late")
    run.wait_event("node_joined", node="late")
    other.kill()
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.2").exists, f"rank {rank} again")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert spare.wait(timeout=30) == late.wait(timeout=30) == 0
    assert run.result()["restarts"] == 2
    assert [e["node"] for e in run.events("node_lost")] == ["other"]
    run.assert_nothing_left()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_death_is_recovered_from_that_nobody_heard_of(nodes, tmp_path, how):
    """On another node, while the coordinator was stopped and then killed."""
    run, (other,) = nodes("other")
    run.wait_event("worker_started", rank=3)
    os.kill(run.coordinator(), signal.SIGSTOP)
    run.kill(3, number=how)
    os.kill(run.coordinator(), signal.SIGKILL)
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert other.wait(timeout=30) == 0
    (fault,) = run.events("fault")
    assert fault["rank"] == 3
    run.assert_nothing_left()


@pytest.mark.parametrize("moment", ["fault", "workers_stopped", "generation_started"])
def test_a_restart_of_several_nodes_is_finished_by_another_coordinator(nodes, tmp_path, moment):
    run, (other,) = nodes("other")
    run.kill(0)
    run.wait_event(moment, count=2 if moment == "generation_started" else 1)
    os.kill(run.coordinator(), signal.SIGKILL)
    run.wait_event("coordinator_back")
    back = [f"rank-{rank}.1" for rank in range(4)]
    run.wait(lambda: all((tmp_path / name).exists() for name in back), "all of them again")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert other.wait(timeout=30) == 0
    assert not run.events("node_lost")
    assert run.result()["restarts"] == 1, run.err
    run.assert_nothing_left()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_spare_takes_the_place_of_a_node_that_is_lost(nodes, agent, tmp_path, how):
    run, (other, spare) = nodes("other", "spare", count=2)
    run.wait_event("worker_started", rank=3)
    other.send_signal(how)
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert spare.wait(timeout=30) == 0
    assert other.wait(timeout=30) == (-how if how == signal.SIGKILL else 128 + how)
    lost = run.events("node_lost")
    assert [(e["node"], e["first_rank"], e["ranks"]) for e in lost] == [("other", 2, 2)], run.err
    assert "lost with node other" in run.err
    assert [e["node"] for e in run.events("node_joined")] == ["other", "spare"]
    run.assert_nothing_left()


def test_without_a_spare_the_run_waits_for_another_node(nodes, agent, tmp_path):
    run, (other,) = nodes("other")
    run.wait_event("worker_started", rank=3)
    other.kill()
    run.wait_event("node_lost")
    run.wait_event("workers_stopped")
    again = agent(run, "other")
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert again.wait(timeout=30) == 0
    run.assert_nothing_left()


def test_a_job_that_may_do_with_fewer_nodes_goes_on_with_those_that_are_left(nodes, agent, tmp_path):
    run, (first, second) = nodes("first", "second", count="2:3")
    run.wait_event("worker_started", rank=5)
    first.kill()
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    again = agent(run, "third")
    run.wait_event("node_joined", node="third")
    run.kill(3, generation=2)
    for rank in range(6):
        run.wait((tmp_path / f"rank-{rank}.2").exists, f"rank {rank}, with the one that came")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert [process.wait(timeout=30) for process in (second, again)] == [0, 0]
    assert [e["ranks"] for e in run.events("resized")] == [4, 6]
    log = (tmp_path / "run-0" / "logs" / "rank-2" / "gen-2.stdout.log").read_text().split()
    assert log[:6] == ["2", "0", "1", "4", "2", "2"]
    run.assert_nothing_left()


def test_a_node_that_stands_still_when_another_rank_dies_is_replaced(nodes, tmp_path):
    """It has its lease, but the others do not wait so long for it to stop."""
    run, (other, spare) = nodes("other", "spare", count=2)
    run.wait_event("worker_started", rank=3)
    leader = leader_of(other)
    os.kill(leader, signal.SIGSTOP)
    run.kill(0)
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again", 60)
    os.kill(leader, signal.SIGCONT)
    run.wait_event("node_joined", node="other", count=2)
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert [process.wait(timeout=30) for process in (other, spare)] == [0, 0]
    run.assert_nothing_left()


def test_a_job_that_is_stopped_stops_on_every_node(nodes, tmp_path):
    run, (other,) = nodes("other")
    run.wait_event("worker_started", rank=3)
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 128 + signal.SIGTERM, run.err
    assert other.wait(timeout=30) == 0
    run.assert_nothing_left()


def test_the_workers_of_a_node_end_when_the_coordinator_is_gone_for_good(nodes, agent, tmp_path):
    run, _ = nodes(count=2)
    other = agent(run, "other", flags=["--patience", 1])
    run.wait_event("worker_started", rank=3)
    run.kill_all()
    out, _ = other.communicate(timeout=60)
    assert other.returncode == 6, out
    run.assert_nothing_left()


def test_a_node_with_another_token_is_refused_and_changes_nothing(nodes, agent, tmp_path):
    run, _ = nodes(count=2)
    wrong = tmp_path / "wrong"
    wrong.write_text("A" * 43 + "\n")
    wrong.chmod(0o600)
    stranger = agent(run, "stranger", token=wrong)
    out, _ = stranger.communicate(timeout=30)
    assert stranger.returncode == 4, out
    other = agent(run, "other")
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.0").exists, f"rank {rank}")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert other.wait(timeout=30) == 0
    assert [e["node"] for e in run.events("node_joined")] == ["other"]


def test_a_node_whose_folder_lacks_the_jobs_says_so(start, agent, script, python, tmp_path):
    """The coordinator works in a folder that is gone when the agent looks for it."""
    folder = tmp_path / "work"
    folder.mkdir()
    flags = ["--nnodes", 2, "--listen", "127.0.0.1:0"]
    run = start(
        python, script(SCRIPT), tmp_path, 60, flags=flags, prepare=lambda: os.chdir(folder), folder=tmp_path / "run"
    )
    run.wait((run.folder / "run.json").exists, "the run")
    folder.rename(tmp_path / "moved")
    other = agent(run, "other")
    out, _ = other.communicate(timeout=30)
    assert run.end() != 0
    assert "node other: cd " in run.err, run.err
    assert other.returncode != 0
    run.assert_nothing_left()


def shim_of(leader: int) -> int:
    """Of the node that this process leads."""
    for child in pathlib.Path(f"/proc/{leader}/task/{leader}/children").read_text().split():
        if pathlib.Path(f"/proc/{child}/comm").read_text() == "muster-shim\n":
            return int(child)
    raise AssertionError("no shim")


@pytest.mark.parametrize("whose", ["the coordinator's", "the agent's", "both"])
def test_a_shim_that_is_killed_is_replaced_on_its_node(nodes, tmp_path, whose):
    run, (other,) = nodes("other")
    run.wait_event("worker_started", rank=3)
    before = len(run.events("node_joined"))
    pids = {"the coordinator's": run.shim(), "the agent's": shim_of(leader_of(other))}
    for name, pid in pids.items():
        if whose in (name, "both"):
            os.kill(pid, signal.SIGKILL)
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    assert shim_of(leader_of(other)) == pids["the agent's"] or whose != "the coordinator's"
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert other.wait(timeout=30) == 0
    assert not run.events("node_lost") and len(run.events("node_joined")) == before
    names = {"the coordinator's": [socket.gethostname()], "the agent's": ["other"]}
    struck = names.get(whose) or names["the coordinator's"] + names["the agent's"]
    assert sorted(e["node"] for e in run.events("shim_lost")) == sorted(struck)
    assert run.result()["restarts"] <= len(struck)
    assert f"the shim of node {run.events('shim_lost')[0]['node']}, killed by SIGKILL" in run.fault()["cause"] + run.err
    run.assert_nothing_left()


@pytest.mark.parametrize("together", [True, False])
def test_a_shim_is_killed_with_the_coordinator_of_several_nodes(nodes, tmp_path, together):
    run, (other,) = nodes("other")
    run.wait_event("worker_started", rank=3)
    shim, theirs = run.shim(), shim_of(leader_of(other))
    os.kill(run.coordinator(), signal.SIGKILL)
    if not together:
        run.wait_event("coordinator_back")
    os.kill(shim, signal.SIGKILL)
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    assert shim_of(leader_of(other)) == theirs
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert other.wait(timeout=30) == 0
    assert not run.events("node_lost") and len(run.events("fault")) == 1
    run.assert_nothing_left()


def test_a_job_of_two_nodes_ends_without_the_shim_of_one(nodes, tmp_path):
    """It dies as all are told to stop."""
    run, (other,) = nodes("other")
    run.wait_event("worker_started", rank=3)
    run.freeze()
    run.process.send_signal(signal.SIGTERM)
    run.wait_pending(signal.SIGTERM)
    run.kill_shim()
    run.thaw()
    assert run.end() == 128 + signal.SIGTERM, run.err
    other.wait(timeout=30)
    run.assert_nothing_left()


@pytest.fixture
def fake_ssh(tmp_path) -> pathlib.Path:
    """Runs the command for HOST on this one, with a poor environment, as a login by ssh has it."""
    path = tmp_path / "ssh"
    path.write_text(
        "#!/bin/sh\n"
        '[ "$1" = nowhere ] && exit 255\n'
        'exec env -i HOME="$HOME" PATH=/usr/bin:/bin SSH_CONNECTION="127.0.0.1 1 127.0.0.1 22" sh -c "cd /; $2"\n'
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("here", [True, False])
def test_hosts_are_reached_by_ssh(start, script, python, tmp_path, fake_ssh, here):
    text = SCRIPT + "\nprint(os.environ.get('PYTHON_COLORS'), os.environ.get('OF_THIS_HOST'), os.environ['HOME'])\n"
    hosts = ",".join((["localhost"] if here else ["first"]) + ["second", "me@spare"])
    flags = ["--nodes", hosts, "--ssh", fake_ssh, "--nnodes", 2]
    run = start(python, script(text), tmp_path, 60, flags=flags, PYTHON_COLORS="0", OF_THIS_HOST="1")
    for name in ["second", "spare"]:
        run.wait_event("node_joined", node=name)
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.0").exists, f"rank {rank}")
    enough(tmp_path)
    assert run.end() == 0, run.err
    joined = {e["node"] for e in run.events("node_joined")}
    assert joined == ({"second", "spare"} if here else {"first", "second", "spare"})
    shown = [line for line in run.out.splitlines() if line.startswith("[2 1] ") or line.startswith("[3 1] ")]
    shown += [line for line in run.out.splitlines() if line.startswith("[0 1] ") or line.startswith("[1 1] ")]
    assert len([line for line in shown if line[6:].startswith("0 ")]) >= 4, run.out
    run.assert_nothing_left()


def test_sessions_of_ssh_are_taken_over_by_another_coordinator(start, script, python, tmp_path, fake_ssh):
    flags = ["--nodes", "localhost,second", "--ssh", fake_ssh]
    run = start(python, script(SCRIPT), tmp_path, 60, flags=flags)
    run.wait_event("worker_started", rank=3)
    os.kill(run.coordinator(), signal.SIGKILL)
    run.wait_event("coordinator_back")
    (agent,) = agents_of(run)
    assert not run.events("node_lost")
    os.kill(agent, signal.SIGKILL)  # the ssh ends with it, and another one starts an agent there
    run.wait_event("node_joined", node="second", count=2)
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    enough(tmp_path)
    assert run.end() == 0, run.err
    assert "the agent on second ended" in run.err
    run.assert_nothing_left()


@pytest.mark.parametrize("followed", [True, False])
def test_sessions_of_ssh_outlive_the_shim_of_the_host_that_opened_them(
    start, script, python, tmp_path, fake_ssh, followed
):
    run = start(python, script(SCRIPT), tmp_path, 60, flags=["--nodes", "localhost,second", "--ssh", fake_ssh])
    run.wait_event("worker_started", rank=3)
    agents = agents_of(run)
    if followed:
        os.kill(run.coordinator(), signal.SIGKILL)
        run.wait_event("coordinator_back")
    run.kill_shim()
    for rank in range(4):
        run.wait((tmp_path / f"rank-{rank}.1").exists, f"rank {rank} again")
    assert agents_of(run) == agents and not run.events("node_lost")
    enough(tmp_path)
    assert run.end() == 0, run.err
    run.assert_nothing_left()


def test_the_agents_go_when_muster_run_is_killed(start, script, python, tmp_path, fake_ssh):
    run = start(
        python,
        script(SCRIPT),
        tmp_path,
        60,
        flags=["--nodes", "first,second", "--ssh", fake_ssh, "--listen", "0.0.0.0:0"],
    )
    run.wait_event("worker_started", rank=3)
    run.process.kill()
    run.assert_nothing_left()


def test_a_host_that_ssh_does_not_reach_is_named(start, script, python, tmp_path, fake_ssh):
    run = start(python, script(SCRIPT), tmp_path, 60, flags=["--nodes", "localhost,nowhere", "--ssh", fake_ssh])
    assert run.end() != 0
    assert "nowhere" in run.err and "exit code 255" in run.err
    run.assert_nothing_left()
