#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A parameter server: member 0 holds the two parameters of a line, each other member some points.

In each step the server broadcasts the parameters, gathers all gradients, and updates the
parameters. On softnic: weir run -- python3 parameter_server.py
"""
from __future__ import annotations

import multiprocessing

import numpy
import numpy.typing
import weir

Array = numpy.typing.NDArray[numpy.float64]
WORKERS = 3
TURNS = 200


def gradient(parameters: Array, x: Array, y: Array) -> Array:
    error = parameters[0] * x + parameters[1] - y
    return numpy.array([(error * x).mean(), error.mean()])


def work(address: str, number: int) -> None:
    random = numpy.random.default_rng(number)
    x = random.uniform(-1, 1, 100)
    y = 3 * x - 2 + random.normal(0, 0.1, 100)
    parameters = numpy.zeros(2)
    with weir.join(address, number, WORKERS + 1) as group:
        for _ in range(TURNS):
            group.broadcast(parameters)
            group.gather(gradient(parameters, x, y))


def serve(listener: weir.Listener) -> None:
    parameters, gradients = numpy.zeros(2), numpy.zeros((WORKERS + 1, 2))
    with weir.lead(listener, WORKERS + 1) as group:
        for _ in range(TURNS):
            group.broadcast(parameters)
            group.gather(numpy.zeros(2), gradients)
            parameters -= 0.3 * gradients[1:].mean(axis=0)
    print(f"y = {parameters[0]:.1f} x {parameters[1]:+.1f}")


def main() -> None:
    spawn = multiprocessing.get_context("spawn")
    with weir.listen("127.0.0.1:0") as listener:
        workers = [
            spawn.Process(target=work, args=(listener.address, number))
            for number in range(1, WORKERS + 1)
        ]
        for worker in workers:
            worker.start()
        serve(listener)
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
