# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Exchanges: messages between two programs through pools of registered slots.

weir/exchange.h describes the protocol. Timeouts are in seconds; None waits without limit. A wait
that times out raises TimeoutError, and the next call continues the operation. A lost connection
raises ConnectionResetError; a peer that has closed, OSError with errno.ENOTCONN. Any thread may
call, and a waiting thread does not block others. But only one thread at a time puts a message, and
only one gets a message.
"""
from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from weir._library import NOT_YET, SLICE_S, check, check_met, ffi, lib, too_late
from weir._memory import memory_of
from weir._options import Info, Options, info_of, options_of, shows_options
from weir._slot import Slot
from weir._turns import Turns, release_own

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TAKE = 64  # slots per call
_BRIEF_S = 0.002  # longest wait in C, during which other threads cannot use the exchange


def _begin(lock: Any, timeout: float | None) -> float | None:
    """Takes the RLock. Return: the remaining timeout."""
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
        # one thread per message
        self._putting, self._getting = threading.RLock(), threading.RLock()
        self._out: dict[Slot, bool] = {}  # True: taken; False: acquired
        # arrays that C fills: an interrupt may come before Python reads them
        self._left: dict[bool, Any] = {}
        # slots of _out by number, not yet returned to the caller
        self._came: dict[bool, dict[int, Slot]] = {True: {}, False: {}}
        # slot taken by get(); data is NULL: none
        self._one = ffi.new("struct weir_exchange_slot[1]")
        self._parts: list[Any] = []  # parts of a message as bytes; None: the part being taken
        self._whole: list[bytes] = []  # messages not returned because of an interrupt
        self._in_gpu = info_of(pointer).memory == "cuda"

    def _call(self, function: Any, *args: Any) -> Any:
        with self._turns:
            if self._x is None:
                raise ValueError("the exchange is closed")
            result = function(self._x, *args)
            # The descriptor does not report progress that this call has already seen.
            if self._turns.waiting and lib.weir_exchange_process(self._x):
                self._turns.wake()
            return result

    def _wait(self, timeout: float | None, attempt: Callable[[int], Any]) -> int:
        """weir._library.wait(), with turns for other threads in between."""
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
        """An attempt sees all earlier progress; later progress sets awake or the descriptor."""
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
            else:  # others may take the progress, at any later time
                seconds = 0.0 if seconds else _BRIEF_S

    def _sleep(self, awake: threading.Event, seconds: float) -> bool:
        """Return: True after a wake-up. Otherwise a wait in C must check the peer."""
        who = object()
        try:
            try:
                with self._turns:
                    if awake.is_set() or self._x is None:
                        return True
                    descriptor = lib.weir_exchange_fd(self._x)
                    is_to_watch = self._turns.is_to_watch(who)
                return (
                    self._turns.watch(descriptor, seconds) if is_to_watch else awake.wait(seconds)
                )
            finally:
                self._turns.leave(who)
        except BaseException:
            self._turns.leave(who)  # an interrupt may have come during is_to_watch()
            raise

    def put(self, data: Any, timeout: float | None = None) -> None:
        """Sends a message: bytes, a NumPy array, a PyTorch tensor, any buffer.

        Call flush() after the last message for now: until then the peer may not see it.

        After an exception, a TimeoutError or an interrupt, part of the message may have been
        taken: the exception's attribute done counts the bytes. The next put() must send the
        remaining bytes. If the message had bytes and none remain, all of the message was sent.
        """
        memory, length = memory_of(data, gpu=self._in_gpu)
        # before this attempt, and in this attempt: an interrupt finds a matching pair
        sent = (0, ffi.new("size_t *"))

        def attempt(timeout_ns: int) -> int:
            nonlocal sent
            sent = (sent[0] + sent[1][0], ffi.new("size_t *"))
            before, done = sent
            status: int = self._call(
                lib.weir_exchange_put, memory + before, length - before, timeout_ns, done
            )
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
        """The next message. EOFError: the peer has finished. For slots in a GPU use get_into().

        If an interrupt prevents the return of a message, the next call returns the message.
        """
        if self._in_gpu:
            raise ValueError("the slots are in a GPU's memory: use get_into()")
        parts: list[Any] = []
        try:
            left = _begin(self._getting, timeout)
            try:
                if self._whole:
                    parts = self._whole[:1]
                    del self._whole[0]
                    return bytes(parts[0])
                self._get_all(left)
                parts = self._parts
                message = b"".join(parts)
                self._parts = []
                return message
            except TimeoutError:
                raise too_late(timeout) from None
            finally:
                self._getting.release()
        except BaseException:
            if parts and parts is not self._parts:
                self._whole.insert(0, b"".join(parts))
            raise

    def _get_all(self, timeout: float | None) -> None:
        """Waits for all parts of a message."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (self._has_part() and self._one[0].data == ffi.NULL and self._one[0].last):
            if not check(self._wait(timeout, lambda ns: self._call(self._get_slot, ns))):
                raise EOFError("the peer has finished")
            timeout = None if deadline is None else max(0.0, deadline - time.monotonic())

    def _has_part(self) -> bool:
        return bool(self._parts) and self._parts[-1] is not None

    def _get_slot(self, x: Any, timeout_ns: int) -> int:
        """Each step records its completion: after an interrupt the next call continues with the
        next step."""
        one = self._one[0]
        if one.data == ffi.NULL:
            if not self._parts or self._has_part():
                self._parts.append(None)
            taken: int = lib.weir_exchange_take(x, self._one, 1, timeout_ns)
            if taken != 1:
                return taken
        if self._parts[-1] is None:
            self._parts[-1] = ffi.buffer(one.data, one.length)[:]
        # A lost connection is reported only after all received slots have been taken.
        lib.weir_exchange_release(x, self._one, 1)
        one.data = ffi.NULL
        return 1

    def get_into(self, buffer: Any, timeout: float | None = None) -> int:
        """The next message, copied into a buffer. Returns its length.

        EOFError: the peer has finished. OSError with EMSGSIZE: the message was longer than the
        buffer, and is dropped. After a TimeoutError call again with the same buffer.
        """
        memory, size = memory_of(buffer, writable=True, gpu=self._in_gpu)
        length = ffi.new("size_t *")
        left = _begin(self._getting, timeout)
        try:
            if (
                self._whole
                or self._has_part()
                or len(self._parts) > 1
                or self._one[0].data != ffi.NULL
            ):
                raise ValueError("a message was begun with get()")
            status = self._wait(
                left, lambda ns: self._call(lib.weir_exchange_get, memory, size, length, ns)
            )
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

    def _gather(self, taken: bool) -> None:
        """In turn: records the slots filled in by C. Safe to repeat after an interrupt."""
        came = self._came[taken]
        for slot in self._left.get(taken, ()):
            if slot.data == ffi.NULL:
                break
            if slot.number not in came:
                came[slot.number] = Slot(slot, self._in_gpu)
            self._out[came[slot.number]] = taken
        self._left.pop(taken, None)

    def _hold(self, function: Any, count: int, timeout: float | None, taken: bool) -> list[Slot]:
        found: list[Slot] = []

        def attempt(x: Any, timeout_ns: int) -> int:
            """In turn: close() finds the recorded slots and ends access to their memory."""
            self._gather(taken)
            came = self._came[taken]
            if not came:
                self._left[taken] = ffi.new("struct weir_exchange_slot[]", count)
                status: int = function(x, self._left[taken], count, timeout_ns)
                if status <= 0:
                    del self._left[taken]
                    return status
                self._gather(taken)
            found.extend(list(came.values())[:count])
            for slot in found:
                del came[slot._number]
            return len(found)

        try:
            check(self._wait(timeout, lambda ns: self._call(attempt, ns)))
            return found
        except BaseException:
            if found:
                with self._turns:
                    self._came[taken] = {slot._number: slot for slot in found} | self._came[taken]
            raise

    def _take(self, count: int, timeout: float | None) -> list[Slot]:
        return self._hold(lib.weir_exchange_take, count, timeout, taken=True)

    def take(self, count: int = _TAKE, timeout: float | None = None) -> list[Slot]:
        """At most count received slots, without a copy. None: the peer has finished.

        Return the slots with release() after use. If an interrupt prevents the return of slots,
        the next call returns them, as in acquire().
        """
        left = _begin(self._getting, timeout)
        try:
            return self._take(count, left)
        finally:
            self._getting.release()

    def release(self, slots: Sequence[Slot]) -> None:
        """Returns taken slots to the sender. BufferError: a view of a slot still exists."""
        check(self._give(lib.weir_exchange_release, slots, taken=True))

    def acquire(self, count: int = 1, timeout: float | None = None) -> list[Slot]:
        """At most count free slots for messages. Each must go to commit() or abandon()."""
        return self._hold(lib.weir_exchange_acquire, count, timeout, taken=False)

    def commit(self, slots: Sequence[Slot]) -> None:
        """Sends filled slots, in this order. OSError with EMSGSIZE: none was sent, the caller keeps
        all."""
        for slot in slots:
            if not 0 <= slot.length <= slot._size:
                raise ValueError(f"length {slot.length} of a slot of {slot._size} bytes")
        check(self._give(lib.weir_exchange_commit, slots, taken=False))

    def abandon(self, slots: Sequence[Slot]) -> None:
        """Returns acquired slots without sending."""
        check(self._give(lib.weir_exchange_abandon, slots, taken=False))

    def _give(self, function: Any, slots: Sequence[Slot], taken: bool) -> Any:
        """Ends Python's access to the slots' memory, and passes the slots to function."""
        if len(set(slots)) < len(slots):
            raise ValueError("a slot is there twice")
        given = ffi.new("struct weir_exchange_slot[]", len(slots))

        def attempt(x: Any) -> int:
            for number, slot in enumerate(slots):
                if self._out.get(slot) is not taken:
                    raise ValueError(
                        f"that slot was not {'taken' if taken else 'acquired'} here, "
                        "or is given back"
                    )
                given[number].number, given[number].length, given[number].last = (
                    slot._number,
                    slot.length,
                    slot.last,
                )
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
        """Makes all messages put so far available to the peer."""
        check(self._wait(timeout, lambda ns: self._call(lib.weir_exchange_flush, ns)))

    def finish(self, timeout: float | None = None) -> None:
        """Announces the end of messages, and waits until the peer has taken all."""
        check(self._wait(timeout, lambda ns: self._call(lib.weir_exchange_finish, ns)))

    def process(self) -> bool:
        """Makes progress without waiting: for event loops, with fileno().

        True: slots may have arrived or become free, or a call that timed out should be tried
        again. After False the descriptor becomes readable on the next progress.
        """
        with self._turns:
            if self._x is None:
                raise ValueError("the exchange is closed")
            status = lib.weir_exchange_process(self._x)
            if status:
                self._turns.wake()
        return check(status) == 1

    def fileno(self) -> int:
        """The descriptor for event loops, with process(); not while another thread waits."""
        return int(self._call(lib.weir_exchange_fd))

    @property
    def info(self) -> Info:
        info: Info = self._call(info_of)
        return info

    def close(self) -> None:
        """Ends the exchange; the peer loses messages that it has not found: call finish() first.

        BufferError: a view of a slot still exists. RuntimeError: a signal handler has
        interrupted a call on the exchange; the call must end first.
        """
        with self._turns:
            for slot in self._out:
                slot._hide()
            x, self._x = self._x, None  # first: after an interrupt nothing is left to close
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
            pass  # arrays still exist and need their memory


@shows_options
def connect(peer: str, **options: Unpack[Options]) -> Exchange:
    """Connects to a listener at "host", "host:port" or "[v6]:port". Options as of listen()."""
    pointer, error = ffi.new("struct weir_exchange **"), ffi.new("struct weir_error *")
    chosen, kept = options_of(**options)
    check_met(lib.weir_exchange_connect(os.fsencode(peer), chosen, pointer, error), error)
    return Exchange(pointer[0], kept)
