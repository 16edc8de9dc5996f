"""What the scripts here do to be started again: a checkpoint of rank 0 that every start loads, and the times of steps."""

import os
import pathlib
import time

import torch


def load(checkpoint: pathlib.Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Steps that are done."""
    if not checkpoint.exists():
        return 0
    state = torch.load(checkpoint, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def save(checkpoint: pathlib.Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    part = checkpoint.with_suffix(".part")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, part)
    os.replace(part, checkpoint)


class StepLog:
    """DIR/rank-R.steps: a line "attempt step time" a step, the time being CLOCK_MONOTONIC at its end."""

    def __init__(self, folder: pathlib.Path, rank: int):
        self.file = os.open(folder / f"rank-{rank}.steps", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")

    def write(self, step: int) -> None:
        os.write(self.file, f"{self.attempt} {step} {time.monotonic_ns()}\n".encode())
