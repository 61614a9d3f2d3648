# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where exchanges begin that others connect to."""
from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

from weir._library import check, ffi, lib, wait
from weir._options import options_of
from weir.exchange import Exchange
from weir.key import Key


class Listener:
    """Waits for peers; made by listen(). A context manager. Exchanges outlive it. Any thread may call."""

    def __init__(self, pointer: Any, kept: Any, in_gpu: bool, closing: threading.Event) -> None:
        self._listener, self._kept, self._in_gpu = pointer, kept, in_gpu
        self._address = str(ffi.string(lib.weir_exchange_address(pointer)).decode())
        self._closing = closing
        self._changed = threading.Condition()  # guards what follows, and the listener's end
        self._users: dict[object, int] = {}  # calls that need it, each of a thread; they ask whether it is closing

    @property
    def address(self) -> str:
        """Where it listens: address:port."""
        self._check_open()
        return self._address

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise ValueError("the listener is closed")

    @contextlib.contextmanager
    def _used(self) -> Iterator[Any]:
        """The listener in C, which stays until the call is over. A signal's handler may close it at any time."""
        call = object()
        try:
            with self._changed:
                self._users[call] = threading.get_ident()
            self._check_open()
            yield self._listener
        finally:
            with self._changed:
                self._users.pop(call, None)
                self._end()

    def _end(self) -> None:
        """Changed. Whoever is the last to need it ends it."""
        if self._closing.is_set() and not self._users and self._listener is not None:
            listener, self._listener = self._listener, None  # first: an interrupt finds nothing more to end
            lib.weir_exchange_unlisten(listener)
        self._changed.notify_all()

    def accept(self, timeout: float | None = None) -> Exchange:
        """The next peer that proves the key."""
        x, error = ffi.new("struct weir_exchange **"), ffi.new("struct weir_error *")

        def attempt(timeout_ns: int) -> int:
            with self._used() as listener:
                return int(lib.weir_exchange_accept(listener, timeout_ns, x, error))

        check(wait(timeout, attempt), error)
        return Exchange(x[0], self._kept)

    def close(self) -> None:
        """Stops listening, once those who wait for peers in other threads have heard of it: a ValueError."""
        with self._changed:
            self._closing.set()
            self._end()
            # A handler that has interrupted such a call cannot wait for it: that call ends it.
            while self._users and threading.get_ident() not in self._users.values():
                self._changed.wait()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()  # nobody is left to be waited for


def listen(address: str | None = None, *, key: Key | None = None, device: str | None = None,
           mode: str = "bitmap", slots: int = 0, slot_bytes: int = 0, receive_bytes_max: int = 0, busy: bool = False,
           percent_min: int = 0, timeout: float = 0, memory: str = "host", gpu: int = 0, pool_bytes: int = 0,
           exchanges: int = 0, unordered: bool = False) -> Listener:
    """Waits for peers at "addr", "addr:port" or ":port"; None: 127.0.0.1.

    Options are those of struct weir_exchange_options, 0 and None its defaults: key (without one, on loopback
    only), device (its name), mode ("bitmap" or "imm"; both ends want the same), slots and slot_bytes (of the
    pool to send from), receive_bytes_max (of a peer's), busy (never sleeps), percent_min (of free slots),
    timeout (of connecting, in seconds), memory ("host" or "cuda", and gpu which one), pool_bytes (memory for
    all pools and mirrors), exchanges (that share it), unordered (this end takes messages as it finds them,
    and each has one slot).
    """
    pointer, error = ffi.new("struct weir_exchange_listener **"), ffi.new("struct weir_error *")
    chosen, kept = options_of(key, device, mode, slots, slot_bytes, receive_bytes_max, busy, percent_min, timeout,
                              memory, gpu, pool_bytes, exchanges, unordered)
    closing = threading.Event()
    chosen.goes_on_arg = handle = ffi.new_handle(closing)
    where = ffi.NULL if address is None else os.fsencode(address)
    check(lib.weir_exchange_listen(where, chosen, pointer, error), error)
    return Listener(pointer[0], (kept, handle), memory == "cuda", closing)
