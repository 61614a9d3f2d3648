# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where exchanges begin that others connect to."""
from __future__ import annotations

import os
from typing import Any

from weir._library import check, ffi, lib, wait
from weir._options import options_of
from weir._turns import FairLock
from weir.exchange import Exchange
from weir.key import Key


class Listener:
    """Waits for peers; made by listen(). A context manager. Exchanges outlive it."""

    def __init__(self, pointer: Any, kept: Any, in_gpu: bool) -> None:
        self._listener, self._kept, self._in_gpu = pointer, kept, in_gpu
        self._lock = FairLock()

    @property
    def address(self) -> str:
        """Where it listens: address:port."""
        with self._lock:
            return str(ffi.string(lib.weir_exchange_address(self._open())).decode())

    def _open(self) -> Any:
        if self._listener is None:
            raise ValueError("the listener is closed")
        return self._listener

    def accept(self, timeout: float | None = None) -> Exchange:
        """The next peer that proves the key."""
        x, error = ffi.new("struct weir_exchange **"), ffi.new("struct weir_error *")

        def attempt(timeout_ns: int) -> int:
            with self._lock:
                return int(lib.weir_exchange_accept(self._open(), timeout_ns, x, error))

        check(wait(timeout, attempt), error)
        return Exchange(x[0], self._kept)

    def close(self) -> None:
        with self._lock:
            if self._listener is not None:
                lib.weir_exchange_unlisten(self._listener)
            self._listener = None

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


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
    where = ffi.NULL if address is None else os.fsencode(address)
    check(lib.weir_exchange_listen(where, chosen, pointer, error), error)
    return Listener(pointer[0], kept, memory == "cuda")
