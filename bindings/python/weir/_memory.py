# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Memory of other libraries' arrays, without a copy: by the buffer protocol or DLPack."""
from __future__ import annotations

import ctypes
import sys
from typing import Any

from weir._library import ffi

# https://dmlc.github.io/dlpack/latest/c_api.html
ffi.cdef("""
struct dl_tensor {
	void *data;
	int32_t device_type, device_id;
	int32_t ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};
""")
_HOST_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
_GPU = 2  # kDLCUDA

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def _tensor_bytes(tensor: Any) -> int | None:
    """Return: length in bytes, or None for a tensor that is not contiguous."""
    size: int = tensor.bits * tensor.lanes // 8
    for i in reversed(range(tensor.ndim)):
        if (
            tensor.strides
            and tensor.shape[i] > 1
            and tensor.strides[i] * (tensor.bits * tensor.lanes // 8) != size
        ):
            return None
        size *= tensor.shape[i]
    return size


class DeviceMemory:
    """A slot in GPU memory, with __cuda_array_interface__ for CuPy, Numba and torch.as_tensor().

    pointer is the GPU address, nbytes the length.
    """

    def __init__(self, pointer: int, nbytes: int) -> None:
        self.pointer: int | None = pointer
        self.nbytes = nbytes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.pointer is None:
            raise ValueError("the slot is given away")
        return {
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "data": (self.pointer, False),
            "version": 3,
        }

    def release(self) -> None:
        """Does nothing: views are unknown here, so the caller must drop all views before."""
        self.pointer = None


def _plain(array: Any) -> Any:
    """A view that PyTorch exports by DLPack, which refuses requires_grad and sometimes booleans."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return array
    array = array.detach()
    return array.view(torch.uint8) if array.dtype == torch.bool else array


def _from_dlpack(array: Any, gpu: bool) -> tuple[Any, int]:
    try:
        capsule = _plain(array).__dlpack__()
    except (BufferError, RuntimeError) as error:
        raise TypeError(
            f"{type(array).__name__} does not show its memory through DLPack: {error}"
        ) from error
    tensor = ffi.cast("struct dl_tensor *", _get_pointer(capsule, b"dltensor"))
    if tensor.device_type not in (*_HOST_DEVICES, *[_GPU] * gpu):
        raise ValueError(
            f"{type(array).__name__} is in a device's memory, and this takes the host's only"
        )
    size = _tensor_bytes(tensor)
    if size is None:
        raise ValueError(f"{type(array).__name__} does not lie in one piece: make it contiguous")
    if not size:
        return ffi.cast("char *", 0), 0
    # The capsule keeps the array alive, which a bare pointer would not.
    return (
        ffi.gc(ffi.cast("char *", tensor.data) + tensor.byte_offset, lambda _, kept=capsule: None),
        size,
    )


def memory_of(array: Any, writable: bool = False, gpu: bool = False) -> tuple[Any, int]:
    """An array's address and length in bytes. The address keeps the array alive.

    Accepts contiguous arrays with the buffer protocol (bytes, memoryview, array, NumPy) or
    DLPack (PyTorch and others); arrays in a GPU only with gpu. DLPack does not tell read-only
    arrays, so they count as writable.
    """
    try:
        view = memoryview(array)
    except TypeError:
        if hasattr(array, "__dlpack__"):
            return _from_dlpack(array, gpu)
        raise TypeError(
            f"{type(array).__name__} has neither the buffer protocol nor DLPack"
        ) from None
    if not view.c_contiguous:
        raise ValueError(f"{type(array).__name__} does not lie in one piece: make it contiguous")
    if writable and view.readonly:
        raise ValueError(f"{type(array).__name__} can only be read")
    if not view.nbytes:
        return ffi.cast("char *", 0), 0
    return ffi.from_buffer(view.cast("B")), view.nbytes
