"""The model and the batches of mlp_ddp.py and mlp_chaos.py."""

import torch
from torch import nn

WIDTH, CLASSES, BATCH = 128, 10, 32


def make_model() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES))


def make_batch(step: int, rank: int, world: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step * world + rank)
    return torch.randn(BATCH, 64, generator=generator), torch.randint(CLASSES, (BATCH,), generator=generator)
