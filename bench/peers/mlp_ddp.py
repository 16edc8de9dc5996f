"""The script of bars A1 and A2: DDP of a 4-layer MLP on gloo, AdamW, a checkpoint every EVERY steps by rank 0, loaded at
the start. Nothing in it knows of Muster. After each optimizer step every rank appends "attempt step time" to
DIR/rank-R.steps, the time being CLOCK_MONOTONIC at the end of the step; before the first, after an all-reduce, "0".

    torchrun --standalone --nproc-per-node 8 mlp_ddp.py DIR STEPS EVERY
"""

import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, CLASSES, BATCH = 128, 10, 32


def main():
    folder, steps, every = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    log = os.open(folder / f"rank-{rank}.steps", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    dist.all_reduce(torch.ones(1))
    os.write(log, f"{attempt} 0 {time.monotonic_ns()}\n".encode())
    torch.manual_seed(0)
    layers = [nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpoint, step = folder / "checkpoint.pt", 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    parallel = DistributedDataParallel(model)
    while step < steps:
        generator = torch.Generator().manual_seed(step * dist.get_world_size() + rank)
        inputs = torch.randn(BATCH, 64, generator=generator)
        labels = torch.randint(CLASSES, (BATCH,), generator=generator)
        nn.functional.cross_entropy(parallel(inputs), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        os.write(log, f"{attempt} {step} {time.monotonic_ns()}\n".encode())
        if rank == 0 and step % every == 0:
            part = checkpoint.with_suffix(".part")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, part)
            os.replace(part, checkpoint)


main()
