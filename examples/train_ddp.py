"""An ordinary PyTorch script: nothing in it knows of Muster. It learns to add numbers modulo 16 with DDP.

    muster run --nproc-per-node 2 examples/train_ddp.py --checkpoint sums.pt

What makes it survive a restart is what any such script should do: save now and then, atomically, and load at the start.
"""

import argparse
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MODULUS = 16


def batch_of(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The same numbers for the same step and rank, in any generation."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    pairs = torch.randint(MODULUS, (256, 2), generator=generator)
    inputs = nn.functional.one_hot(pairs, MODULUS).flatten(1).float()
    return inputs, pairs.sum(1) % MODULUS


def save(path: pathlib.Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    part = path.with_suffix(".part")
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, part)
    os.replace(part, path)


def load(path: pathlib.Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--every", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--checkpoint", type=pathlib.Path, default=pathlib.Path("sums.pt"))
    arguments = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(1)
    rank = dist.get_rank()
    model = nn.Sequential(nn.Linear(2 * MODULUS, 128), nn.ReLU(), nn.Linear(128, MODULUS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    start = load(arguments.checkpoint, model, optimizer)
    parallel = DistributedDataParallel(model)
    if start:
        print(f"resumed at step {start}", flush=True)
    for step in range(start + 1, arguments.steps + 1):
        inputs, targets = batch_of(step, rank)
        loss = nn.functional.cross_entropy(parallel(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % arguments.every == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
            if rank == 0:
                save(arguments.checkpoint, step, model, optimizer)
    # The other way round, the last one to hold the group is the model, which waits under the interpreter's lock for Gloo's
    # threads while one of those waits for that lock: now and then such a script never ends.
    del parallel
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
