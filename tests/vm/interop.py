#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""softnic and the kernel's Soft-RoCE over UDP, each as server and as client of unmodified programs.

interop.py WEIR [--all] [WORD...]

WEIR lies in the build folder. Soft-RoCE is in the guest's own network, softnic in a network
namespace, and a virtual Ethernet joins them. --all takes many minutes. With words, only cases whose
name has all words. far_program, rping and the pingpongs compare bytes.
"""
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../softnic/programs"))
import perftest  # noqa: E402  pylint: disable=wrong-import-position

ROCE, SOFT = "10.9.7.1", "10.9.7.2"
NETWORK = f"""
ip netns add soft
ip link add veth0 type veth peer name veth1 netns soft
ip address add {ROCE}/24 dev veth0
ip link set veth0 up
rdma link add rxe7 type rxe netdev veth0
ip -n soft address add {SOFT}/24 dev veth1
ip -n soft link set lo up
ip -n soft link set veth1 up
"""

# Each verb by each transport that it has, with and without rdma_cm; few bytes, for the guest may
# be emulated.
PERFTEST = ("ib_write_bw -s 65536 -n 20", "ib_write_bw -R -s 65536 -n 20",
            "ib_write_bw -c UC -s 4096 -n 50",
            "ib_read_bw -s 65536 -n 20", "ib_read_bw -R -s 65536 -n 20",
            "ib_send_bw -s 65536 -n 20", "ib_send_bw -R -s 65536 -n 20",
            "ib_send_bw -c UC -s 512 -n 50", "ib_send_bw -c UD -s 1024 -n 50",
            "ib_send_bw -c UD -R -s 1024 -n 50",
            "ib_atomic_bw -n 50", "ib_atomic_bw -R -A CMP_AND_SWAP -n 50")
# The rest: all sizes, both directions at once, several queue pairs, and round trips.
MORE = ("ib_write_bw -a -n 5", "ib_write_bw -R -a -n 5", "ib_write_bw -b -q 4 -s 8192 -n 100",
        "ib_write_lat -n 100", "ib_write_lat -c UC -n 100",
        "ib_read_bw -a -n 5", "ib_read_bw -R -a -n 5", "ib_read_lat -n 100",
        "ib_send_bw -a -n 5", "ib_send_bw -R -a -n 5", "ib_send_lat -n 100",
        "ib_send_lat -c UC -n 100", "ib_send_lat -c UD -s 1024 -n 100", "ib_atomic_lat -n 100")
PINGPONGS = ("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong -s 1024",
             "ibv_srq_pingpong -q 4")
# Servers and clients.
MANAGED = (("rping -s -a {address} -p {port} -C 5 -V -S 30000",
            "rping -c -a {address} -p {port} -C 5 -V -S 30000"),
           ("ucmatose -p {port} -c 8 -C 5 -S 3000",
            "ucmatose -s {address} -p {port} -c 8 -C 5 -S 3000"),
           ("udaddy -b {address} -c 4 -C 5 -S 500", "udaddy -s {address} -c 4 -C 5 -S 500"))
FAR = ("rc", "uc", "ud")
UDADDY_PORT = 7174
TRIES, NO_LISTENER = 5, ("REJECTED; error: 8", "UNREACHABLE; error: 1")


class Roce(perftest.End):
    """The kernel's end."""

    def listens(self, process, port):
        """The kernel's connection manager has no socket."""
        if super().listens(process, port):
            return True
        said = subprocess.run(["rdma", "-j", "resource", "show", "cm_id"], check=True, text=True,
                              capture_output=True).stdout
        return any(one.get("state") == "LISTEN" and
                   (one.get("src-port") == port or one.get("src-addr", "").endswith(f":{port}"))
                   for one in json.loads(said or "[]"))


def cases(at, by, far, lines):
    """Yield the name of each case, the lines of its server and client, and its port."""
    def port():
        return random.randrange(10000, 28000)

    for line in lines:
        where = port()
        both = f"{line} -F -p {where}"
        yield line, f"{both} {at.options}", f"{both} {by.options} {at.address}", where
    for line in PINGPONGS:
        where = port()
        both = f"{line} -p {where} -g 1 -c -n 100 -d"
        yield line, f"{both} {at.device}", f"{both} {by.device} {at.address}", where
    for server, client in MANAGED:
        where = UDADDY_PORT if "udaddy" in server else port()
        yield server.split()[0], server.format(port=where, address=at.address), \
            client.format(port=where, address=at.address), where
    for kind in FAR:
        where = port()
        yield f"far_program {kind}", f"{far} serve {where}", \
            f"{far} {kind} {at.address} {where}", where


def outcome(at, server, by, client, port):
    """A server of perftest with -R closes its listener and opens another while the client calls.
    The kernel's connection manager does not call again, as softnic's does."""
    for _ in range(TRIES):
        wrong = perftest.pair(at, server, by, client, port)
        if " -R " not in server or not any(said in wrong for said in NO_LISTENER):
            break
    return wrong


def results(roce, soft, far, lines, words):
    for name, at, by in (("softnic calls Soft-RoCE", roce, soft),
                         ("Soft-RoCE calls softnic", soft, roce)):
        for line, server, client, port in cases(at, by, far, lines):
            case = f"{name}: {line}"
            if all(word in case for word in words):
                yield case, outcome(at, server, by, client, port)


def main(weir, *words):
    lines = PERFTEST + (MORE if "--all" in words else ())
    words = [word for word in words if word != "--all"]
    for line in NETWORK.strip().splitlines():
        subprocess.run(line.split(), check=True)
    build = os.path.dirname(os.path.abspath(weir))
    roce = Roce([], ROCE, "-d rxe7 -x 1")
    roce.device = "rxe7"
    soft = perftest.End(["ip", "netns", "exec", "soft", "env",
                         f"LD_PRELOAD={build}/softnic/libweir-softnic.so"], SOFT, "-d softnic0")
    soft.device = "softnic0"
    return 1 if perftest.report(results(roce, soft, f"{build}/tests/softnic/far_program",
                                        lines, words)) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
