#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A ring of three programs. Each passes messages on to the next, until all programs know all.

On softnic: weir run -- python3 ring.py
"""
from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Barrier

import weir

SIZE = 3
PATIENCE_S = 30


def member(number: int, addresses: list[str], everybody: Barrier) -> None:
    """Number 0 connects first and the others accept first, or all would wait for each other."""
    following = addresses[(number + 1) % SIZE]
    with weir.listen(addresses[number]) as listener:
        everybody.wait(PATIENCE_S)
        after = weir.connect(following) if number == 0 else None
        before = listener.accept(PATIENCE_S)
        after = after or weir.connect(following)
    with before, after:
        news = [f"news of {number}".encode()]
        for _ in range(SIZE - 1):
            after.put(news[-1])
            after.flush(PATIENCE_S)
            news.append(before.get(PATIENCE_S))
        # leaving discards messages that the next program has not found yet
        everybody.wait(PATIENCE_S)
    print(f"{number} has " + ", ".join(sorted(one.decode() for one in news)))


def free_address() -> str:
    with weir.listen("127.0.0.1:0") as listener:
        return listener.address


def main() -> None:
    spawn = multiprocessing.get_context("spawn")
    addresses, everybody = [free_address() for _ in range(SIZE)], spawn.Barrier(SIZE)
    members = [
        spawn.Process(target=member, args=(number, addresses, everybody)) for number in range(SIZE)
    ]
    for process in members:
        process.start()
    for process in members:
        process.join()


if __name__ == "__main__":
    main()
