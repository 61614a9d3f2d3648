#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Two ranks train a network to tell two spirals apart, over weir and over gloo, and compare the
losses.

Each step's gradients are summed over the ranks. A sum of two numbers does not depend on their
order, so the two loss curves must agree to the bit; otherwise the program fails. Needs
python3-torch. On softnic: weir run -- python3 train.py
"""
from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from multiprocessing.queues import SimpleQueue

import torch
import torch.distributed as dist
import weir.distributed

RANKS = 2
EPOCHS = 20
POINTS = 256  # of each rank
BATCH = 32


def spirals(rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(rank)
    kind = torch.arange(POINTS) % 2
    turn = torch.rand(POINTS, generator=random).sqrt() * 6
    angle = turn + kind * torch.pi
    return torch.stack([turn * angle.cos(), turn * angle.sin()], 1) / 6, kind


def train(backend: str, rank: int, port: int, losses: SimpleQueue[float]) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    weir.distributed.register()
    torch.set_num_threads(1)
    dist.init_process_group(backend, rank=rank, world_size=RANKS)
    torch.manual_seed(7)
    layers = torch.nn.Sequential(
        torch.nn.Linear(2, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 2),
    )
    model = torch.nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    points, kinds = spirals(rank)
    for _ in range(EPOCHS):
        for first in range(0, POINTS, BATCH):
            optimizer.zero_grad()
            found = model(points[first:first + BATCH])
            torch.nn.functional.cross_entropy(found, kinds[first:first + BATCH]).backward()
            optimizer.step()
        with torch.no_grad():
            loss = torch.nn.functional.cross_entropy(layers(points), kinds)
        dist.all_reduce(loss)
        if rank == 0:
            losses.put(loss.item() / RANKS)
    dist.destroy_process_group()


def run(backend: str) -> list[float]:
    """Returns the loss after each epoch."""
    spawn = multiprocessing.get_context("spawn")
    losses: SimpleQueue[float] = spawn.SimpleQueue()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [
        spawn.Process(target=train, args=(backend, rank, port, losses)) for rank in range(RANKS)
    ]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    if any(rank.exitcode for rank in ranks):
        sys.exit(f"train: a rank over {backend} failed, and has said why")
    return [losses.get() for _ in range(EPOCHS)]


def main() -> None:
    ours, others = run("weir"), run("gloo")
    print("epoch      weir      gloo")
    for epoch, (one, other) in enumerate(zip(ours, others), 1):
        print(f"{epoch:5}  {one:.6f}  {other:.6f}")
    if ours != others:
        sys.exit("train: the losses differ")
    print("the same to the bit")


if __name__ == "__main__":
    main()
