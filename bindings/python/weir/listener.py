# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Listeners accept connections from peers."""
from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weir._library import check, ffi, lib, wait
from weir._options import Options, options_of, shows_options
from weir.exchange import Exchange

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Listener:
    """Accepts peers; made by listen(). A context manager. Exchanges outlive it. Any thread may
    call."""

    def __init__(self, pointer: Any, kept: Any, in_gpu: bool, closing: threading.Event) -> None:
        self._listener, self._kept, self._in_gpu = pointer, kept, in_gpu
        self._address = str(ffi.string(lib.weir_exchange_address(pointer)).decode())
        self._closing = closing
        # guards the members below, and the end of the listener
        self._changed = threading.Condition()
        # threads of calls that use the listener; the calls check for closing
        self._users: dict[object, int] = {}

    @property
    def address(self) -> str:
        """The address: address:port."""
        self._check_open()
        return self._address

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise ValueError("the listener is closed")

    @contextlib.contextmanager
    def _used(self) -> Iterator[Any]:
        """The listener in C, valid until the call ends. A signal handler may call close() at any
        time."""
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
        """With _changed held: the last user ends the listener."""
        if self._closing.is_set() and not self._users and self._listener is not None:
            # first: after an interrupt nothing is left to end
            listener, self._listener = self._listener, None
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
        """Stops listening; accept() in other threads raises ValueError before close() returns."""
        with self._changed:
            self._closing.set()
            self._end()
            # A handler that interrupted such a call cannot wait for the call, which ends the
            # listener itself.
            while self._users and threading.get_ident() not in self._users.values():
                self._changed.wait()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()  # no user is left


@shows_options
def listen(address: str | None = None, **options: Unpack[Options]) -> Listener:
    """Listens at "addr", "addr:port" or ":port"; None: 127.0.0.1.

    Options are those of struct weir_exchange_options; 0 and None select the defaults: key
    (without a key, only on loopback), device (name), mode ("bitmap" or "imm", equal at both
    ends), slots and slot_bytes (of the send pool), receive_bytes_max (limit of a peer's pool),
    busy (never sleeps), percent_min (of free slots), timeout (of connecting, in seconds), memory
    ("host" or "cuda"), gpu (its number), pool_bytes (memory for all pools and mirrors),
    exchanges (sharing that memory), unordered (this end takes messages in any order, each of one
    slot), encryption (of packets to other hosts: "default", "auto" or "required"), identity (by
    which others know this listener), peer_identity (public key of the only listener to trust).
    """
    pointer, error = ffi.new("struct weir_exchange_listener **"), ffi.new("struct weir_error *")
    chosen, kept = options_of(**options)
    closing = threading.Event()
    chosen.goes_on_arg = handle = ffi.new_handle(closing)
    where = ffi.NULL if address is None else os.fsencode(address)
    check(lib.weir_exchange_listen(where, chosen, pointer, error), error)
    return Listener(pointer[0], (kept, handle), options.get("memory") == "cuda", closing)
