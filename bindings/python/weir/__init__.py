# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Messages over RDMA, without avoidable copies: weir's exchanges and groups."""
from weir._options import Info
from weir._slot import Slot
from weir.exchange import Exchange, connect
from weir.group import Group, join, lead
from weir.key import Identity, Key
from weir.listener import Listener, listen

__all__ = [
    "Exchange",
    "Group",
    "Identity",
    "Info",
    "Key",
    "Listener",
    "Slot",
    "connect",
    "join",
    "lead",
    "listen",
]
