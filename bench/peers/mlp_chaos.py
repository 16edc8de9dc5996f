"""The script of bar A11: an MLP whose gradients are one flat buffer that gloo adds up, AdamW, a checkpoint every EVERY
steps by rank 0, loaded at the start. Nothing in it knows of Muster. The buffer's layout is the same after every start, so a
run that was hurt ends with the bits of one that was not. (DDP orders its buckets anew after a first step, and with them
the order of the additions.)

Every rank appends "attempt step time" to DIR/rank-R.steps after each step, the time being CLOCK_MONOTONIC. A file
DIR/hang-R is taken by rank R, which then waits for a lock for ever. At the end rank 0 leaves DIR/weights.

    torchrun --standalone --nproc-per-node 8 mlp_chaos.py DIR STEPS EVERY
"""

import contextlib
import pathlib
import sys
import threading

import mlp
import restartable
import torch
import torch.distributed as dist
from torch import nn


def flat_gradients(model: nn.Module) -> torch.Tensor:
    """One buffer; every parameter's gradient is a part of it."""
    parameters = list(model.parameters())
    buffer = torch.zeros(sum(p.numel() for p in parameters))
    at = 0
    for parameter in parameters:
        parameter.grad = buffer[at : at + parameter.numel()].view_as(parameter)
        at += parameter.numel()
    return buffer


def hang_if_asked(folder: pathlib.Path, rank: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        (folder / f"hang-{rank}").unlink()
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()


def main():
    folder, steps, every = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    log = restartable.StepLog(folder, rank)
    model = mlp.make_model()
    gradients = flat_gradients(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpoint = folder / "checkpoint.pt"
    step = restartable.load(checkpoint, model, optimizer)
    while step < steps:
        inputs, labels = mlp.make_batch(step, rank, world)
        gradients.zero_()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        dist.all_reduce(gradients)
        gradients /= world
        optimizer.step()
        step += 1
        log.write(step)
        if rank == 0 and step % every == 0:
            restartable.save(checkpoint, model, optimizer, step)
        hang_if_asked(folder, rank)
    if rank == 0:
        flat = torch.cat([p.detach().flatten() for p in model.parameters()])
        (folder / "weights").write_bytes(flat.numpy().tobytes())


main()
