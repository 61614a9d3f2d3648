#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Print the packets of packet_test.c, as Scapy 2.8 makes them. By hand: pip install scapy."""

import struct

from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

V4 = {"src": "192.0.2.1", "dst": "198.51.100.2"}
RETH_IMM = struct.pack(">QIII", 0x1122334455667788, 0x99AABBCC, 4, 0xDEADBEEF)
PACKETS = {
    "send only": IP(**V4, id=0x1234, flags="DF", ttl=63, tos=0x1A) / UDP(sport=0xC001, dport=4791)
    / BTH(opcode="RC_SEND_ONLY", dqpn=0x123456, psn=0xABCDEF, ackreq=1, migreq=1, padcount=3)
    / Raw(b"hello\0\0\0"),
    "ack": IP(**V4, id=0, flags=0) / UDP(sport=4791, dport=4791)
    / BTH(opcode="RC_ACKNOWLEDGE", dqpn=17, psn=5, migreq=1, becn=1) / AETH(syndrome=0x1F, msn=2),
    "write imm": IPv6(src="2001:db8::1", dst="2001:db8::2", tc=3, fl=0x12345, hlim=9)
    / UDP(sport=0xD000, dport=4791)
    / BTH(opcode="RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", dqpn=0xFFFFFE, psn=1, solicited=1, migreq=1)
    / Raw(RETH_IMM + b"abcd"),
}

for name, packet in PACKETS.items():
    headers = 8 + (20 if packet.version == 4 else 40)
    print(name, bytes(packet)[headers:].hex())
