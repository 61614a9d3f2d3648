# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Options and state of an exchange: the structs of weir/exchange.h in Python."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict, TypeVar

from weir._library import check, ffi, goes_on, lib
from weir.key import Identity, Key

_Function = TypeVar("_Function", bound=Callable[..., Any])

_MODES = {"bitmap": "WEIR_EXCHANGE_BITMAP", "imm": "WEIR_EXCHANGE_IMM"}
_ENCRYPTIONS = {
    "default": "WEIR_ENCRYPTION_DEFAULT",
    "auto": "WEIR_ENCRYPTION_AUTO",
    "required": "WEIR_ENCRYPTION_REQUIRED",
}
_MEMORIES = {"host": "WEIR_EXCHANGE_HOST", "cuda": "WEIR_EXCHANGE_CUDA"}


class Info(NamedTuple):
    """State and counters of an exchange: struct weir_exchange_info."""

    device: str
    peer: str
    mode: str
    memory: str
    staged: bool
    slots: int
    peer_slots: int
    slot_bytes: int
    peer_slot_bytes: int
    put: int
    arrived: int
    released: int
    taken: int
    bytes_put: int
    bytes_taken: int
    writes: int
    bitmap_reads: int
    imm_writes: int
    wakeups: int
    credits: int
    recvs: int
    doorbells: int
    completions: int
    events: int
    sleeps: int


class Options(TypedDict, total=False):
    """Keyword arguments that connect(), listen() and join() pass to options_of()."""

    key: Key | None
    device: str | None
    mode: str
    slots: int
    slot_bytes: int
    receive_bytes_max: int
    busy: bool
    percent_min: int
    timeout: float
    memory: str
    gpu: int
    pool_bytes: int
    exchanges: int
    unordered: bool
    encryption: str
    identity: Identity | None
    peer_identity: bytes | None


def options_of(
    key: Key | None = None,
    device: str | None = None,
    mode: str = "bitmap",
    slots: int = 0,
    slot_bytes: int = 0,
    receive_bytes_max: int = 0,
    busy: bool = False,
    percent_min: int = 0,
    timeout: float = 0,
    memory: str = "host",
    gpu: int = 0,
    pool_bytes: int = 0,
    exchanges: int = 0,
    unordered: bool = False,
    encryption: str = "default",
    identity: Identity | None = None,
    peer_identity: bytes | None = None,
) -> tuple[Any, Any]:
    """The options in C, and the objects that must stay alive during their use."""
    if mode not in _MODES:
        raise ValueError(f"mode {mode!r}: it is one of {', '.join(map(repr, _MODES))}")
    if memory not in _MEMORIES:
        raise ValueError(f"memory {memory!r}: it is one of {', '.join(map(repr, _MEMORIES))}")
    if encryption not in _ENCRYPTIONS:
        raise ValueError(
            f"encryption {encryption!r}: it is one of {', '.join(map(repr, _ENCRYPTIONS))}"
        )
    if peer_identity is not None and len(peer_identity) != 32:
        raise ValueError(f"peer_identity has {len(peer_identity)} bytes, not 32")
    options = ffi.new("struct weir_exchange_options *")
    options.size = ffi.sizeof(options[0])
    name = ffi.NULL if device is None else ffi.new("char[]", device.encode())
    options.key = key._key if key else ffi.NULL
    options.device = name
    options.mode = getattr(lib, _MODES[mode])
    options.slots, options.slot_bytes = slots, slot_bytes
    options.receive_bytes_max = receive_bytes_max
    options.busy = busy
    options.percent_min = percent_min
    options.timeout_ns = int(timeout * 1e9)
    options.memory, options.gpu = getattr(lib, _MEMORIES[memory]), gpu
    options.pool_bytes, options.exchanges = pool_bytes, exchanges
    options.unordered = unordered
    options.encryption = getattr(lib, _ENCRYPTIONS[encryption])
    peer = ffi.NULL if peer_identity is None else ffi.new("unsigned char[32]", peer_identity)
    options.identity = identity._identity if identity else ffi.NULL
    options.peer_identity = peer
    options.goes_on = goes_on
    return options, (key, name, identity, peer)


def shows_options(function: _Function) -> _Function:
    """Lists the options in the signature of a function with **options, for help()."""
    own = inspect.signature(function)
    shown = [one for one in own.parameters.values() if one.kind != one.VAR_KEYWORD]
    shown += [
        one.replace(kind=one.KEYWORD_ONLY)
        for one in inspect.signature(options_of).parameters.values()
    ]
    function.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
    return function


def info_of(x: Any) -> Info:
    info = ffi.new("struct weir_exchange_info *")
    check(lib.weir_exchange_info(x, info, ffi.sizeof(info[0])))
    fields = {name: getattr(info, name) for name in Info._fields}
    modes = {getattr(lib, value): name for name, value in _MODES.items()}
    memories = {getattr(lib, value): name for name, value in _MEMORIES.items()}
    return Info(
        **{
            **fields,
            "memory": memories[info.memory],
            "device": ffi.string(info.device).decode(),
            "peer": ffi.string(info.peer).decode(),
            "mode": modes[info.mode],
        }
    )
