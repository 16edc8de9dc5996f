"""An ordinary PyTorch script with torchrun's variables: gloo, DDP, a checkpoint; it loses a rank and comes back."""

import os
import signal

import pytest

SCRIPT = """
import os, pathlib, sys, time
import torch
import torch.distributed as dist

folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, checkpoint = dist.get_rank(), folder / "newest.pt"
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
step = 0
if checkpoint.exists():
    state = torch.load(checkpoint, weights_only=True)
    model.module.load_state_dict(state["model"])
    step = state["step"]
print("resumed", step, "attempt", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
while step < steps:
    model(torch.full((4, 8), float(rank))).sum().backward()
    step += 1
    if rank == 0:
        torch.save({"model": model.module.state_dict(), "step": step}, folder / "part")
        os.replace(folder / "part", checkpoint)
    print("step", step, flush=True)
    time.sleep(0.02)
print("done", dist.get_world_size(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_gloo_script_that_loses_a_rank_comes_back(start, script, torch_python, tmp_path, rank):
    run = start(torch_python, script(SCRIPT), tmp_path, 60)
    run.wait(lambda: (run.folder / "logs" / "rank-0" / "gen-1.stdout.log").exists(), "its log")
    run.wait(lambda: b"step 10\n" in run.log(0), "step 10", 120)
    run.kill(rank)
    assert run.end(limit=120) == 0, run.err
    assert run.result()["restarts"] == 1, run.err
    assert f"rank {rank} killed by SIGKILL; 2 ranks started again" in run.err
    for number in (0, 1):
        lines = run.log(number, 2).decode().splitlines()
        assert lines[0].startswith("resumed ") and lines[0].endswith("attempt 1")
        assert int(lines[0].split()[1]) >= 9
        assert lines[-1] == "done 2"
    run.assert_nothing_left()


@pytest.mark.slow
def test_torchruns_variables_are_all_there(start, python):
    names = [
        "LOCAL_RANK",
        "RANK",
        "GROUP_RANK",
        "ROLE_RANK",
        "ROLE_NAME",
        "LOCAL_WORLD_SIZE",
        "WORLD_SIZE",
        "GROUP_WORLD_SIZE",
        "ROLE_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_MAX_RESTARTS",
        "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_USE_AGENT_STORE",
        "TORCHELASTIC_ERROR_FILE",
        "OMP_NUM_THREADS",
    ]
    run = start(python, "-c", f"import os; print(*[os.environ[n] for n in {names!r}])", ranks=3)
    assert run.end() == 0, run.err
    values = dict(zip(names, run.log(2).decode().split(), strict=True))
    assert values["RANK"] == values["LOCAL_RANK"] == "2" and values["WORLD_SIZE"] == "3"
    assert values["MASTER_ADDR"] == "127.0.0.1" and int(values["MASTER_PORT"]) > 1023
    assert os.path.isabs(values["TORCHELASTIC_ERROR_FILE"])


def test_a_port_is_never_used_twice(start, python):
    code = "import os,sys,signal; print(os.environ['MASTER_PORT'], flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    run = start(python, "-c", code, ranks=1, flags=["--max-restarts", 3])
    assert run.end() == 93
    ports = [run.log(0, generation) for generation in range(1, 5)]
    assert len(set(ports)) == 4 and all(ports)
    assert {e["signal"] for e in run.events("worker_exited")} == {signal.SIGKILL.name}
