# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Exchanges: messages between two programs through pools of registered slots.

weir/exchange.h tells how they work. Timeouts are in seconds, None waits without end, and a wait that
is over raises TimeoutError; what was begun goes on with the next call. An exchange that is gone raises
ConnectionResetError. Any thread may call: one that waits keeps no other from the exchange, but messages
are put one at a time, and got one at a time.
"""
from __future__ import annotations

import errno
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weir._library import NOT_YET, SLICE_S, check, check_met, ffi, lib, too_late
from weir._memory import DeviceMemory, memory_of
from weir._options import Info, info_of, options_of
from weir._turns import Turns, release_own
from weir.key import Key

_TAKE = 64  # slots in one call
_BRIEF_S = 0.002  # as long a wait in C may keep the exchange from others


class Slot:
    """A slot to write a message into, or with one in it. Gone when committed or released.

    data is its memory: numpy.frombuffer(slot.data, ...) is an array without a copy; in a GPU it is a
    DeviceMemory. length, of an acquired slot, is how much of it is to be sent. last is whether the message
    ends with it.
    """

    __slots__ = ("data", "length", "last", "_number", "_size", "_at", "_in_gpu", "_memory")

    def __init__(self, slot: Any, in_gpu: bool) -> None:
        self.length: int = slot.length
        self._size = self.length
        self.last: bool = slot.last
        self._number: int = slot.number
        self._at, self._in_gpu = slot.data, in_gpu
        self._show_all()

    def _show_all(self) -> None:
        """As it was when it came."""
        self._memory: Any = None
        if self._in_gpu:
            self.data: Any = DeviceMemory(int(ffi.cast("uintptr_t", self._at)), self._size)
        else:
            self._show(ffi.buffer(self._at, self._size))

    def _show(self, memory: Any) -> None:
        self._memory = weakref.ref(memory)
        self.data = memoryview(memory).cast("B")

    def _hide(self) -> None:
        """Nothing can reach the memory any more; or BufferError, if something still can."""
        self.data.release()
        memory = self._memory and self._memory()
        if memory is not None:  # a view of it lives, and keeps it
            self._show(memory)
            raise BufferError("something still looks into the slot's memory: an array, or a part of slot.data")


def _begin(lock: Any, timeout: float | None) -> float | None:
    """Takes the lock, an RLock. Return: what is left of the timeout."""
    try:
        if lock.acquire(blocking=False):
            return timeout
        begin = time.monotonic()
        if not lock.acquire(timeout=-1 if timeout is None else timeout):
            raise too_late(timeout)
        return None if timeout is None else max(0.0, timeout - (time.monotonic() - begin))
    except BaseException:
        release_own(lock)
        raise


class Exchange:
    """One end of a connection. Made by connect() and by Listener.accept(); a context manager.

    As an iterator it yields messages as bytes until the peer has finished.
    """

    def __init__(self, pointer: Any, kept: Any) -> None:
        self._x, self._kept = pointer, kept
        self._turns = Turns()
        self._putting, self._getting = threading.RLock(), threading.RLock()  # a message is of one thread
        self._out: dict[Slot, bool] = {}  # True: taken; False: acquired
        self._one = ffi.new("struct weir_exchange_slot[1]")  # what get() has just taken
        self._parts: list[bytes] = []
        self._in_gpu = info_of(pointer).memory == "cuda"

    def _call(self, function: Any, *args: Any) -> Any:
        with self._turns:
            if self._x is None:
                raise ValueError("the exchange is closed")
            result = function(self._x, *args)
            # What this call has seen the descriptor does not tell to those who wait.
            if self._turns.waiting and lib.weir_exchange_process(self._x):
                self._turns.wake()
            return result

    def _wait(self, timeout: float | None, attempt: Callable[[int], Any]) -> int:
        """As weir._library.wait(), but that others have their turns meanwhile."""
        deadline = None if timeout is None else time.monotonic() + timeout
        status: int = attempt(int((_BRIEF_S if timeout is None else min(_BRIEF_S, timeout)) * 1e9))
        if status not in NOT_YET:
            return status
        with self._turns:
            self._turns.waiting += 1
        try:
            return self._wait_long(deadline, attempt)
        except TimeoutError:
            raise too_late(timeout) from None
        finally:
            with self._turns:
                self._turns.waiting -= 1

    def _wait_long(self, deadline: float | None, attempt: Callable[[int], Any]) -> int:
        """What came before an attempt it finds; after it, awake is set, or the descriptor readable."""
        seconds = 0.0
        while True:
            left = SLICE_S if deadline is None else max(0.0, deadline - time.monotonic())
            awake = self._turns.awake
            status: int = attempt(int(min(left, seconds) * 1e9))
            if status not in NOT_YET:
                return status
            if not left:
                raise TimeoutError
            if not awake.is_set():
                seconds = 0.0 if self._sleep(awake, min(left, SLICE_S)) else _BRIEF_S
            else:  # that may be for somebody else to take, for as long as it likes
                seconds = 0.0 if seconds else _BRIEF_S

    def _sleep(self, awake: threading.Event, seconds: float) -> bool:
        """Return: whether it was woken. If not, a wait in C is to ask whether the peer is there."""
        with self._turns:
            if awake.is_set() or self._x is None:
                return True
            descriptor = lib.weir_exchange_fd(self._x)
            is_to_watch = self._turns.is_to_watch()
        return self._turns.watch(descriptor, seconds) if is_to_watch else awake.wait(seconds)

    def put(self, data: Any, timeout: float | None = None) -> None:
        """Sends a message: bytes, a NumPy array, a PyTorch tensor, any buffer.

        Call flush() after the last for now: the peer may not find it before.

        After an exception, whether a TimeoutError or an interrupt, a part may have been taken: its
        attribute done says how many bytes. The message goes on with the rest of them, before anything
        else. If it had bytes and none is left, all of it was sent.
        """
        memory, length = memory_of(data, gpu=self._in_gpu)
        sent = (0, ffi.new("size_t *"))  # before this attempt, and by it: an interrupt finds both of one attempt

        def attempt(timeout_ns: int) -> int:
            nonlocal sent
            sent = (sent[0] + sent[1][0], ffi.new("size_t *"))
            before, done = sent
            status: int = self._call(lib.weir_exchange_put, memory + before, length - before, timeout_ns, done)
            return status

        try:
            left = _begin(self._putting, timeout)
            try:
                check(self._wait(left, attempt))
            finally:
                self._putting.release()
        except BaseException as error:
            error.done = int(sent[0] + sent[1][0])  # type: ignore[attr-defined]
            raise

    def get(self, timeout: float | None = None) -> bytes:
        """The next message. EOFError: the peer has finished. Slots in a GPU: get_into() instead."""
        if self._in_gpu:
            raise ValueError("the slots are in a GPU's memory: use get_into()")
        left = _begin(self._getting, timeout)
        try:
            deadline = None if left is None else time.monotonic() + left
            while check(self._wait(left, lambda ns: self._call(self._get_slot, ns))):
                if self._one[0].last:
                    message = b"".join(self._parts)
                    self._parts.clear()
                    return message
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
        except TimeoutError:
            raise too_late(timeout) from None
        finally:
            self._getting.release()
        raise EOFError("the peer has finished")

    def _get_slot(self, x: Any, timeout_ns: int) -> int:
        taken: int = lib.weir_exchange_take(x, self._one, 1, timeout_ns)
        if taken == 1:
            self._parts.append(ffi.buffer(self._one[0].data, self._one[0].length)[:])
            # That the connection is gone is said when all that had come was taken.
            lib.weir_exchange_release(x, self._one, 1)
        return taken

    def get_into(self, buffer: Any, timeout: float | None = None) -> int:
        """The next message, copied into a buffer. Returns its length.

        EOFError: the peer has finished. OSError with EMSGSIZE: it was longer than the buffer, and is
        gone. After a TimeoutError call again with the same buffer.
        """
        memory, size = memory_of(buffer, writable=True, gpu=self._in_gpu)
        length = ffi.new("size_t *")
        left = _begin(self._getting, timeout)
        try:
            if self._parts:
                raise ValueError("a message was begun with get()")
            status = self._wait(left, lambda ns: self._call(lib.weir_exchange_get, memory, size, length, ns))
        finally:
            self._getting.release()
        if status == -errno.ENOENT:
            raise EOFError("the peer has finished")
        check(status, None)
        return int(length[0])

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                message = self.get()
            except EOFError:
                return
            yield message

    def _hold(self, function: Any, count: int, timeout: float | None, taken: bool) -> list[Slot]:
        slots = ffi.new("struct weir_exchange_slot[]", count)
        found: list[Slot] = []

        def attempt(x: Any, timeout_ns: int) -> int:
            """In turn: who closes the exchange finds them, and nobody reaches their memory any more."""
            status: int = function(x, slots, count, timeout_ns)
            found.extend(Slot(slots[i], self._in_gpu) for i in range(status))
            self._out.update(dict.fromkeys(found, taken))
            return status

        check(self._wait(timeout, lambda ns: self._call(attempt, ns)))
        return found

    def _take(self, count: int, timeout: float | None) -> list[Slot]:
        return self._hold(lib.weir_exchange_take, count, timeout, taken=True)

    def take(self, count: int = _TAKE, timeout: float | None = None) -> list[Slot]:
        """Slots that have come, at most count, where they lie. None: the peer has finished.

        Give them back with release() when they have been read.
        """
        left = _begin(self._getting, timeout)
        try:
            return self._take(count, left)
        finally:
            self._getting.release()

    def release(self, slots: Sequence[Slot]) -> None:
        """Gives taken slots back to the sender. BufferError: something still looks into one of them."""
        check(self._give(lib.weir_exchange_release, slots, taken=True))

    def acquire(self, count: int = 1, timeout: float | None = None) -> list[Slot]:
        """Free slots to write messages in, at most count. Each goes to commit() or abandon()."""
        return self._hold(lib.weir_exchange_acquire, count, timeout, taken=False)

    def commit(self, slots: Sequence[Slot]) -> None:
        """Sends slots that were filled, in this order. OSError with EMSGSIZE: none was sent, and all are held still."""
        for slot in slots:
            if not 0 <= slot.length <= slot._size:
                raise ValueError(f"length {slot.length} of a slot of {slot._size} bytes")
        check(self._give(lib.weir_exchange_commit, slots, taken=False))

    def abandon(self, slots: Sequence[Slot]) -> None:
        """Gives acquired slots back that will not be sent."""
        check(self._give(lib.weir_exchange_abandon, slots, taken=False))

    def _give(self, function: Any, slots: Sequence[Slot], taken: bool) -> Any:
        """Nothing in Python may reach a slot's memory any more once it is given away."""
        if len(set(slots)) < len(slots):
            raise ValueError("a slot is there twice")
        given = ffi.new("struct weir_exchange_slot[]", len(slots))

        def attempt(x: Any) -> int:
            for number, slot in enumerate(slots):
                if self._out.get(slot) is not taken:
                    raise ValueError(f"that slot was not {'taken' if taken else 'acquired'} here, or is given back")
                given[number].number, given[number].length, given[number].last = slot._number, slot.length, slot.last
            for slot in slots:
                slot._hide()
            for slot in slots:
                del self._out[slot]
            status = int(function(x, given, len(slots)))
            if status == -errno.EMSGSIZE:  # nothing was sent
                for slot in slots:
                    slot._show_all()
                    self._out[slot] = taken
            return status

        return self._call(attempt)

    def flush(self, timeout: float | None = None) -> None:
        """Makes sure that the peer can take all that was put."""
        check(self._wait(timeout, lambda ns: self._call(lib.weir_exchange_flush, ns)))

    def finish(self, timeout: float | None = None) -> None:
        """Says that nothing more will be put, and waits until the peer has taken all."""
        check(self._wait(timeout, lambda ns: self._call(lib.weir_exchange_finish, ns)))

    def process(self) -> bool:
        """Does what is to be done, without waiting: for event loops, with fileno().

        While it returns True there is something to take, or room where there was none, or a call that
        timed out is worth another try; after False the descriptor becomes readable once there may be.
        """
        with self._turns:
            if self._x is None:
                raise ValueError("the exchange is closed")
            status = lib.weir_exchange_process(self._x)
            if status:
                self._turns.wake()
        return check(status) == 1

    def fileno(self) -> int:
        """To wait for, with process(); while no other thread waits in a call."""
        return int(self._call(lib.weir_exchange_fd))

    @property
    def info(self) -> Info:
        info: Info = self._call(info_of)
        return info

    def close(self) -> None:
        """Ends the exchange, and for the peer what it has not found: finish() first.

        BufferError: something still looks into a slot. RuntimeError: a signal's handler has interrupted a
        call on the exchange, which is to end first.
        """
        with self._turns:
            for slot in self._out:
                slot._hide()
            x, self._x = self._x, None  # first: an interrupt finds nothing more to close
            if x is not None:
                lib.weir_exchange_close(x)
            self._kept = None
            self._out.clear()
            self._turns.wake()

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except BufferError:
            pass  # the arrays live on, and so must the memory that they lie in


def connect(peer: str, *, key: Key | None = None, device: str | None = None,
            mode: str = "bitmap", slots: int = 0, slot_bytes: int = 0, receive_bytes_max: int = 0, busy: bool = False,
            percent_min: int = 0, timeout: float = 0, memory: str = "host", gpu: int = 0, pool_bytes: int = 0,
            exchanges: int = 0, unordered: bool = False) -> Exchange:
    """Connects to a listener at "host", "host:port" or "[v6]:port". Options as of listen()."""
    pointer, error = ffi.new("struct weir_exchange **"), ffi.new("struct weir_error *")
    chosen, kept = options_of(key, device, mode, slots, slot_bytes, receive_bytes_max, busy, percent_min, timeout,
                              memory, gpu, pool_bytes, exchanges, unordered)
    check_met(lib.weir_exchange_connect(os.fsencode(peer), chosen, pointer, error), error)
    return Exchange(pointer[0], kept)
