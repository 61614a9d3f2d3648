# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
from __future__ import annotations

import weakref
from typing import Any

from weir._library import ffi
from weir._memory import DeviceMemory


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
