# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Groups: programs that exchange data collectively (broadcast, gather, reduce).

weir/group.h describes the protocol. Every member calls the same operations in the same order.
Arrays are contiguous, with the buffer protocol or DLPack; Python copies nothing. Timeouts are in
seconds; None waits without limit. After a TimeoutError, wait() continues the operation.
"""
from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weir._library import NOT_YET, check, check_met, failure, ffi, lib, wait
from weir._memory import memory_of
from weir._options import Info, Options, info_of, options_of, shows_options
from weir._turns import FairLock
from weir.listener import Listener, listen

if TYPE_CHECKING:
    from typing_extensions import Unpack

Add = Callable[[memoryview, memoryview], None]


class Group:
    """One member of a group; made by lead() and join(). A context manager, which finishes before
    closing. Any thread may call; calls take turns."""

    def __init__(self, pointer: Any, kept: Any, in_gpu: bool) -> None:
        self._group, self._kept, self._in_gpu = pointer, kept, in_gpu
        self.member = int(lib.weir_group_member(pointer))
        """The number of this member."""
        self.size = int(lib.weir_group_size(pointer))
        self._lock = FairLock()
        self._busy_with: tuple[Any, ...] = ()  # arrays of the current operation; changed in turn
        self._error: BaseException | None = None

    def _call(self, function: Any, *args: Any) -> Any:
        with self._lock:
            if self._group is None:
                raise ValueError("the group is closed")
            return function(self._group, *args)

    def info(self, member: int) -> Info | None:
        """State of the exchange with another member; None for this member itself."""
        def ask(group: Any) -> Info | None:
            x = lib.weir_group_exchange(group, member)
            return info_of(x) if x else None

        info: Info | None = self._call(ask)
        return info

    def _do(self, timeout: float | None, kept: tuple[Any, ...], function: Any, *args: Any) -> None:
        def begin(group: Any) -> int:
            """An interrupt between the two steps may keep memory too long, never too short."""
            before, self._busy_with = self._busy_with, (self._busy_with, kept)
            status: int = function(group, *args)
            self._busy_with = before if status else kept
            return status

        self._check(self._call(begin))
        self.wait(timeout)

    def wait(self, timeout: float | None = None) -> None:
        """Continues an operation after a TimeoutError."""
        def attempt(group: Any, timeout_ns: int) -> int:
            status: int = lib.weir_group_wait(group, timeout_ns)
            if status not in NOT_YET:
                self._busy_with = ()
            return status

        status = wait(timeout, lambda ns: self._call(attempt, ns))
        if self._error:
            error, self._error = self._error, None
            raise error
        self._check(status)

    def _check(self, status: int) -> None:
        failed = self._call(lib.weir_group_failed)
        if status and failed >= 0:
            raise failure(
                status,
                f"member {failed} of the group: {ffi.string(lib.weir_strerror(status)).decode()}",
            )
        check(status)

    def broadcast(self, array: Any, source: int = 0, timeout: float | None = None) -> None:
        """Copies the array of member source into the arrays of all members."""
        memory, length = memory_of(array, writable=source != self.member, gpu=self._in_gpu)
        self._do(timeout, (memory,), lib.weir_group_broadcast, source, memory, length)

    def _into(self, into: Any, length: int) -> Any:
        memory, size = memory_of(into, writable=True, gpu=self._in_gpu)
        if size != length:
            raise ValueError(f"what is to be received takes {length} bytes, and there are {size}")
        return memory

    def gather(
        self, array: Any, into: Any = None, to: int = 0, timeout: float | None = None
    ) -> None:
        """Collects all members' arrays, in order, in into of member to; elsewhere into is None."""
        memory, length = memory_of(array, gpu=self._in_gpu)
        all_of_it = self._into(into, self.size * length) if to == self.member else ffi.NULL
        self._do(timeout, (memory, all_of_it), lib.weir_group_gather, to, memory, length, all_of_it)

    def all_gather(self, array: Any, into: Any, timeout: float | None = None) -> None:
        """Collects all members' arrays, in order, in into of each member."""
        memory, length = memory_of(array, gpu=self._in_gpu)
        all_of_it = self._into(into, self.size * length)
        self._do(timeout, (memory, all_of_it), lib.weir_group_all_gather, memory, length, all_of_it)

    def reduce_scatter(self, array: Any, into: Any, add: Add, timeout: float | None = None) -> None:
        """Sums all members' arrays, in the order of members; each member gets its part in into.

        add(into, other) adds bytes to bytes, in whole elements if slots hold whole elements. add
        runs on the host: a group with slots in GPU memory refuses this operation.
        """
        if self._in_gpu:
            raise ValueError(
                "reduce_scatter() adds up in host memory, and the slots are in a GPU's: "
                'memory="host"'
            )
        memory, length = memory_of(array, gpu=self._in_gpu)
        part, rest = divmod(length, self.size)
        if rest:
            raise ValueError(f"{length} bytes do not part into {self.size}")

        def add_bytes(result: Any, other: Any, count: int, _: Any) -> None:
            try:
                add(
                    memoryview(ffi.buffer(result, count)).cast("B"),
                    memoryview(ffi.buffer(other, count)).cast("B"),
                )
            except BaseException as error:  # pylint: disable=broad-except
                self._error = self._error or error

        result, call_add = self._into(into, part), ffi.callback("weir_group_add_fn *", add_bytes)
        self._do(
            timeout,
            (memory, result, call_add),
            lib.weir_group_reduce_scatter,
            memory,
            part,
            result,
            call_add,
            ffi.NULL,
        )

    def barrier(self, timeout: float | None = None) -> None:
        """Waits until all members have called barrier()."""
        self._do(timeout, (), lib.weir_group_barrier)

    def finish(self, timeout: float | None = None) -> None:
        """Waits until the others have taken all data of this member; then close() is safe."""
        self._do(timeout, (), lib.weir_group_finish)

    def close(self) -> None:
        """Ends the group; the others lose data that they have not taken: see finish()."""
        with self._lock:
            # first: after an interrupt nothing is left to close
            group, self._group = self._group, None
            if group is not None:
                lib.weir_group_close(group)
            self._kept = None

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and self._call(lib.weir_group_failed) < 0:
                self.finish()
        finally:
            self.close()

    def __del__(self) -> None:
        self.close()


def lead(listener: Listener, size: int, timeout: float = 10) -> Group:
    """Makes member 0; the others join() at the listener's address. timeout is for all to arrive."""
    group, error = ffi.new("struct weir_group **"), ffi.new("struct weir_error *")
    with listener._used() as pointer:
        status = lib.weir_group_lead(pointer, size, int(timeout * 1e9), group, error)
    try:
        check_met(status, error)
    except OSError as ended:
        if ended.errno == errno.ECANCELED:
            listener._check_open()
        raise
    return Group(group[0], listener._kept, listener._in_gpu)


@shows_options
def join(
    address: str,
    member: int,
    size: int,
    here: str | None = None,
    **options: Unpack[Options],
) -> Group:
    """Joins a group at the address "host:port" where member 0 listens.

    Member 0 itself listens at the address; with an existing listener, use lead(). here is this
    member's address for the others, without a port; None: 127.0.0.1. Options are those of
    weir.listen(), for each exchange; timeout is for all members to arrive.
    """
    if member == 0:
        options["exchanges"] = options.get("exchanges") or max(1, size - 1)
        with listen(address, **options) as listener:
            return lead(listener, size, options.get("timeout") or 10)
    group, error = ffi.new("struct weir_group **"), ffi.new("struct weir_error *")
    chosen, kept = options_of(**options)
    where = ffi.NULL if here is None else os.fsencode(here)
    check_met(
        lib.weir_group_join(os.fsencode(address), where, member, size, chosen, group, error), error
    )
    return Group(group[0], kept, options.get("memory") == "cuda")
