# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Keys: both ends hold the same secret in a file, and prove their knowledge to each other."""
from __future__ import annotations

import os

from weir._library import check, ffi, lib


class Key:
    """A key, read from a file that only its owner may read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        key, error = ffi.new("struct weir_key **"), ffi.new("struct weir_error *")
        check(lib.weir_key_load(os.fsencode(path), key, error), error)
        self._key = ffi.gc(key[0], lib.weir_key_free)

    @staticmethod
    def create(path: str | os.PathLike[str]) -> None:
        """Writes a new random key to a new file."""
        error = ffi.new("struct weir_error *")
        check(lib.weir_key_create(os.fsencode(path), error), error)


class Identity:
    """A key pair of a listener's own, by which others know it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        identity = ffi.new("struct weir_identity **")
        error = ffi.new("struct weir_error *")
        check(lib.weir_identity_load(os.fsencode(path), identity, error), error)
        self._identity = ffi.gc(identity[0], lib.weir_identity_free)

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes: peer_identity of those who connect."""
        public = ffi.new("unsigned char[32]")
        lib.weir_identity_public(self._identity, public)
        return bytes(public)

    @staticmethod
    def create(path: str | os.PathLike[str]) -> None:
        """Writes a new random identity to a new file."""
        error = ffi.new("struct weir_error *")
        check(lib.weir_identity_create(os.fsencode(path), error), error)
