# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""weir as a backend of torch.distributed, for tensors in host memory.

    import weir.distributed
    weir.distributed.register()
    torch.distributed.init_process_group("weir", ...)

Supports broadcast, gather, all_gather, reduce, reduce_scatter, all_reduce and barrier, and thus
DistributedDataParallel. An operation is complete when its call returns, even with async_op=True.
Sums are made in the order of ranks, so each rank gets the same bits in each run.
"""
from __future__ import annotations

import os
import socket
import weakref
from typing import Any

import torch
import torch.distributed as dist

from weir.group import Group, join, lead
from weir.key import Key
from weir.listener import listen

_IN_PLACE = {
    "SUM": lambda into, other: into.add_(other),
    "PRODUCT": lambda into, other: into.mul_(other),
    "MIN": lambda into, other: torch.minimum(into, other, out=into),
    "MAX": lambda into, other: torch.maximum(into, other, out=into),
}
_LEAVE_S = 30
# PyTorch versions differ in the types that some of these names have.
_Base: Any = getattr(dist, "ProcessGroup")
_c10d: Any = getattr(torch._C, "_distributed_c10d")
_register: Any = dist.Backend.register_backend


def _operation(wanted: Any) -> Any:
    for name, function in _IN_PLACE.items():
        if wanted == getattr(dist.ReduceOp, name):
            return function
    raise ValueError(f"{wanted}: weir reduces by {', '.join(_IN_PLACE)}")


def _one(tensors: Any) -> torch.Tensor:
    if len(tensors) != 1:
        raise ValueError(f"{len(tensors)} tensors: weir takes one a rank")
    tensor: torch.Tensor = tensors[0]
    return tensor


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's memory as bytes; DLPack does not know every type."""
    return tensor.detach().reshape(-1).view(torch.uint8)


def _done(result: Any) -> Any:
    future: Any = torch.futures.Future()
    future.set_result(result)
    return _c10d._create_work_from_future(future)


def _leave(group: Group) -> None:
    """Finishes the group: the last operation may still be sending."""
    try:
        group.finish(_LEAVE_S)
    except OSError:
        pass
    group.close()


class ProcessGroup(_Base):  # type: ignore[misc]
    """The operations of torch.distributed, each made of one or two operations of weir.Group."""

    def __init__(self, group: Group, timeout: float) -> None:
        super().__init__(group.member, group.size)
        self._group, self._timeout = group, timeout
        weakref.finalize(self, _leave, group)

    def getBackendName(self) -> str:
        return "weir"

    def broadcast(self, tensors: Any, opts: Any) -> Any:
        tensor = _one(tensors)
        whole = tensor.detach().contiguous()
        self._group.broadcast(_bytes(whole), opts.rootRank, self._timeout)
        if whole.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(whole)
        return _done(tensors)

    def _sum_of_parts(self, tensor: torch.Tensor, wanted: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """This rank's part of the sum, and memory for all parts, padded to equal lengths."""
        size, operation = self._group.size, _operation(wanted)
        each = -(-tensor.numel() // size)
        whole = torch.zeros(each * size, dtype=tensor.dtype)
        whole[:tensor.numel()] = tensor.detach().reshape(-1)
        part = torch.empty(each, dtype=tensor.dtype)

        def add(into: memoryview, other: memoryview) -> None:
            operation(
                torch.frombuffer(into, dtype=tensor.dtype),
                torch.frombuffer(other, dtype=tensor.dtype),
            )

        self._group.reduce_scatter(_bytes(whole), _bytes(part), add, self._timeout)
        return part, whole

    def allreduce(self, tensors: Any, opts: Any) -> Any:
        tensor = _one(tensors)
        part, whole = self._sum_of_parts(tensor, opts.reduceOp)
        self._group.all_gather(_bytes(part), _bytes(whole), self._timeout)
        tensor.detach().copy_(whole[:tensor.numel()].view(tensor.shape))
        return _done(tensors)

    def reduce(self, tensors: Any, opts: Any) -> Any:
        tensor = _one(tensors)
        part, whole = self._sum_of_parts(tensor, opts.reduceOp)
        mine = opts.rootRank == self._group.member
        self._group.gather(
            _bytes(part), _bytes(whole) if mine else None, opts.rootRank, self._timeout
        )
        if mine:
            tensor.detach().copy_(whole[:tensor.numel()].view(tensor.shape))
        return _done(tensors)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any) -> Any:
        output = _one(outputs)
        whole = torch.cat([one.detach().reshape(-1) for one in _one(inputs)])
        if whole.numel() != output.numel() * self._group.size:
            raise ValueError(
                f"{whole.numel()} elements do not make {self._group.size} parts of {output.numel()}"
            )
        part, _ = self._sum_of_parts(whole, opts.reduceOp)
        output.detach().copy_(part.view(output.shape))
        return _done(outputs)

    def _gathered(self, tensor: torch.Tensor) -> torch.Tensor:
        whole = torch.empty((self._group.size, *tensor.shape), dtype=tensor.dtype)
        self._group.all_gather(_bytes(tensor.contiguous()), _bytes(whole), self._timeout)
        return whole

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        for output, one in zip(_one(outputs), self._gathered(_one(inputs))):
            output.detach().copy_(one.view(output.shape))
        return _done(outputs)

    def _allgather_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        output.detach().copy_(self._gathered(tensor).view(output.shape))
        return _done(output)

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> Any:
        tensor = _one(inputs)
        mine = opts.rootRank == self._group.member
        whole = torch.empty((self._group.size, *tensor.shape), dtype=tensor.dtype) if mine else None
        self._group.gather(
            _bytes(tensor.contiguous()),
            None if whole is None else _bytes(whole),
            opts.rootRank,
            self._timeout,
        )
        if whole is not None:
            for output, one in zip(_one(outputs), whole):
                output.detach().copy_(one.view(output.shape))
        return _done(outputs)

    def barrier(self, opts: Any = None) -> Any:
        self._group.barrier(self._timeout)
        return _done(None)


def _own_address() -> str:
    """This host's address on the route to the master."""
    master = os.environ.get("MASTER_ADDR", "127.0.0.1")
    family, kind, _, _, address = socket.getaddrinfo(master, 1, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def _create(store: Any, rank: int, size: int, timeout: Any, **options: Any) -> ProcessGroup:
    here, seconds = _own_address(), timeout.total_seconds()
    if rank == 0:
        with listen(f"[{here}]:0" if ":" in here else f"{here}:0", **options) as listener:
            store.set("weir", listener.address)
            return ProcessGroup(lead(listener, size, seconds), seconds)
    address = store.get("weir").decode()
    return ProcessGroup(join(address, rank, size, here, timeout=seconds, **options), seconds)


def register(
    *,
    key: Key | None = None,
    device: str | None = None,
    mode: str = "bitmap",
    slots: int = 0,
    slot_bytes: int = 0,
    receive_bytes_max: int = 0,
    busy: bool = False,
    percent_min: int = 0,
    memory: str = "host",
    pool_bytes: int = 0,
    exchanges: int = 0,
) -> None:
    """Makes "weir" a backend. Options are those of weir.listen(), for each exchange.

    slot_bytes must be a multiple of 16, so that no element spans two slots; memory must be
    "host". The timeout comes from init_process_group(). Messages of a group are always ordered.
    """
    if memory != "host":
        raise ValueError(f"memory {memory!r}: tensors are in host memory here, and so are slots")
    if slot_bytes % 16:
        raise ValueError(f"slot_bytes {slot_bytes}: it is to be a multiple of 16")

    def create(store: Any, rank: int, size: int, timeout: Any) -> ProcessGroup:
        return _create(store, rank, size, timeout, key=key, device=device, mode=mode, slots=slots,
                       slot_bytes=slot_bytes, receive_bytes_max=receive_bytes_max, busy=busy,
                       percent_min=percent_min, pool_bytes=pool_bytes,
                       exchanges=exchanges or max(1, size - 1))

    _register("weir", create)
