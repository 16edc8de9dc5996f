"""One rank of the peer of S3: the vit recipe in PyTorch, DDP on gloo, AdamW(fused=True).

Reads "N" lines on stdin, trains N steps for each and answers with a line: CPU seconds, wall seconds, then the loss
of each step on this rank.
"""

import argparse
import resource
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MEAN, DEVIATION = 0.286, 0.353
SIDE = 28


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c)
        x = x + self.out(attended)
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class Vit(nn.Module):
    def __init__(self, patch, width, blocks, heads):
        super().__init__()
        self.patch, self.side = patch, SIDE // patch
        self.embed = nn.Linear(patch * patch, width)
        self.positions = nn.Parameter(torch.zeros(self.side**2, width))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(blocks)])
        self.norm = nn.LayerNorm(width)
        self.logits = nn.Linear(width, 10)

    def forward(self, pixels):
        n, p = self.side, self.patch
        patches = pixels.view(-1, n, p, n, p).permute(0, 1, 3, 2, 4).reshape(-1, n * n, p * p)
        x = self.embed(patches) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.logits(self.norm(x).mean(1))


def our_name(name):
    """PyTorch's name of a parameter → the recipe's."""
    if name.startswith("blocks."):
        name = "block." + name.removeprefix("blocks.")
    else:
        name = ("stem." if name.startswith(("embed", "positions")) else "head.") + name
    return name.replace("norm.weight", "norm.gain")


def load_initial(model, path):
    values, offset, found = np.fromfile(path, np.float32), 0, {}
    with open(path + ".index") as index:
        for line in index:
            name, length = line.split()
            found[name] = values[offset : offset + int(length)]
            offset += int(length)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(found.pop(our_name(name))).view_as(parameter))
    assert not found, found.keys()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    for name in ("rank", "world", "batch", "patch", "width", "blocks", "heads"):
        parser.add_argument("--" + name, type=int, required=True)
    for name in ("pixels", "labels", "initial", "store"):
        parser.add_argument("--" + name, required=True)
    o = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + o.store, rank=o.rank, world_size=o.world)
    pixels = np.fromfile(o.pixels, np.uint8).reshape(-1, SIDE * SIDE)
    labels = np.fromfile(o.labels, np.uint8)
    model = Vit(o.patch, o.width, o.blocks, o.heads)
    load_initial(model, o.initial)
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-3, weight_decay=0.05, fused=True)
    step = 0
    for line in sys.stdin:
        dist.barrier()
        cpu, wall, losses = cpu_seconds(), time.monotonic(), []
        for _ in range(int(line)):
            first = (step * o.world + o.rank) * o.batch
            rows = np.arange(first, first + o.batch) % len(labels)
            x = torch.from_numpy(pixels[rows]).float().div_(255).sub_(MEAN).div_(DEVIATION)
            y = torch.from_numpy(labels[rows].astype(np.int64))
            loss = F.cross_entropy(ddp(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            step += 1
        answer = [cpu_seconds() - cpu, time.monotonic() - wall, *losses]
        print(*(f"{value:.9g}" for value in answer), flush=True)
    # Else it is the last to hold the group, and may wait for Gloo's threads while they wait for the interpreter.
    del ddp
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
