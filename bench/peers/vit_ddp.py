"""The peer of bar S1 under torchrun: a vision transformer of the vit recipe's size on 28 × 28 images, DDP on gloo,
AdamW, a checkpoint every EVERY steps by rank 0 and loaded at the start. After each optimizer step every rank appends
"attempt step time" to DIR/rank-R.steps, the time being CLOCK_MONOTONIC at the end of the step.

    torchrun --standalone --nproc-per-node 2 vit_ddp.py DIR STEPS EVERY
"""

import pathlib
import sys

import restartable
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PATCH, WIDTH, BLOCKS, HEADS, MLP_RATIO, CLASSES = 7, 64, 3, 4, 4, 10
BATCH = 128


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(1, WIDTH, PATCH, PATCH)
        self.position = nn.Parameter(torch.zeros(1, (28 // PATCH) ** 2 + 1, WIDTH))
        self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        block = nn.TransformerEncoderLayer(
            WIDTH, HEADS, MLP_RATIO * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, BLOCKS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images):
        tokens = self.embed(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(images), -1, -1), tokens], dim=1) + self.position
        return self.head(self.norm(self.blocks(tokens))[:, 0])


def main():
    folder, steps, every = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Vit()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    checkpoint = folder / "checkpoint.pt"
    step = restartable.load(checkpoint, model, optimizer)
    parallel = DistributedDataParallel(model)
    log = restartable.StepLog(folder, rank)
    while step < steps:
        generator = torch.Generator().manual_seed(step * world + rank)
        images = torch.randn(BATCH // world, 1, 28, 28, generator=generator)
        labels = torch.randint(CLASSES, (BATCH // world,), generator=generator)
        nn.functional.cross_entropy(parallel(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        log.write(step)
        if rank == 0 and step % every == 0:
            restartable.save(checkpoint, model, optimizer, step)


main()
