#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A program that loads libibverbs and librdmacm at run time, as NCCL and some bindings do.

late.py OUTER: a library that loads another library, found only through the RUNPATH of OUTER.
"""
import ctypes
import sys

RETRY_EXC_ERR = 12


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def find(handle, name, version):
    lookup = ctypes.CDLL(None).dlvsym
    lookup.restype = ctypes.c_void_p
    return lookup(ctypes.c_void_p(handle), name, version)


def names(verbs):
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    verbs.ibv_get_device_name.argtypes = [ctypes.c_void_p]
    verbs.ibv_free_device_list.argtypes = [ctypes.c_void_p]
    count = ctypes.c_int()
    devices = verbs.ibv_get_device_list(ctypes.byref(count))
    found = [verbs.ibv_get_device_name(devices[i]) for i in range(count.value)]
    verbs.ibv_free_device_list(devices)
    return found


def check(what, holds):
    if not holds:
        sys.exit(f"not so: {what}")


def main():
    for name in ("libibverbs.so.1", "librdmacm.so.1"):
        verbs = ctypes.CDLL(name)
        check(f"the device is found by {name}", names(verbs) == [b"softnic0"])
    check("a version may be asked for",
          find(verbs._handle, b"ibv_open_device", b"IBVERBS_1.1") == address(verbs.ibv_open_device))
    check("the connection manager is this one's",
          address(verbs.rdma_create_id) == address(ctypes.CDLL(None).rdma_create_id))
    verbs.ibv_wc_status_str.restype = ctypes.c_char_p
    check("what knows of no device is there, too",
          verbs.ibv_wc_status_str(RETRY_EXC_ERR) == b"transport retry counter exceeded"
          and verbs.ibv_rate_to_mbps(verbs.mbps_to_ibv_rate(10000)) == 10000)
    try:
        ctypes.CDLL("/nowhere/libibverbs.so.1")
        check("one that is not there is not found", False)
    except OSError:
        pass
    outer = ctypes.CDLL(sys.argv[1])
    check("a library's own directories are looked in", outer.load_inner())
    print("all is well")


if __name__ == "__main__":
    main()
