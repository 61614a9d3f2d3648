# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
from __future__ import annotations

import weakref
from typing import Any

from weir._library import ffi
from weir._memory import DeviceMemory


class Slot:
    """A slot for a message to send, or with a received message. Invalid after commit or release.

    data is the memory: numpy.frombuffer(slot.data, ...) makes an array without a copy. In a GPU
    data is a DeviceMemory. length is the number of bytes to send from an acquired slot. last
    tells whether the message ends with this slot.
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
        """Restores the view of the received length."""
        self._memory: Any = None
        if self._in_gpu:
            self.data: Any = DeviceMemory(int(ffi.cast("uintptr_t", self._at)), self._size)
        else:
            self._show(ffi.buffer(self._at, self._size))

    def _show(self, memory: Any) -> None:
        self._memory = weakref.ref(memory)
        self.data = memoryview(memory).cast("B")

    def _hide(self) -> None:
        """Ends access to the memory; BufferError if a view still exists."""
        self.data.release()
        memory = self._memory and self._memory()
        if memory is not None:  # a live view keeps the memory
            self._show(memory)
            raise BufferError(
                "something still looks into the slot's memory: an array, or a part of slot.data"
            )
