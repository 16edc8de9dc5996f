"""The script of bars A1 and A2: DDP of a 4-layer MLP on gloo, AdamW, a checkpoint every EVERY steps by rank 0, loaded at
the start. Nothing in it knows of Muster. After each optimizer step every rank appends "attempt step time" to
DIR/rank-R.steps, the time being CLOCK_MONOTONIC at the end of the step; before the first, after an all-reduce, "0".

    torchrun --standalone --nproc-per-node 8 mlp_ddp.py DIR STEPS EVERY
"""

import pathlib
import sys

import mlp
import restartable
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    folder, steps, every = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    log = restartable.StepLog(folder, rank)
    dist.all_reduce(torch.ones(1))
    log.write(0)
    model = mlp.make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    checkpoint = folder / "checkpoint.pt"
    step = restartable.load(checkpoint, model, optimizer)
    parallel = DistributedDataParallel(model)
    while step < steps:
        inputs, labels = mlp.make_batch(step, rank, dist.get_world_size())
        nn.functional.cross_entropy(parallel(inputs), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        log.write(step)
        if rank == 0 and step % every == 0:
            restartable.save(checkpoint, model, optimizer, step)


main()
