# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A host's link: its faults and its rate, as arguments of tc."""

import argparse
import re

# Packets that wait in one direction. netem's own 1,000 would drop at high rates.
NETEM_PACKETS_MAX = 100000
# A bucket for 4 ms, and at least 16 full frames: tc(8) asks for rate / HZ.
BURST_S = 0.004
BURST_BYTES_MIN = 16 << 10
QUEUE = "50ms"  # bound of the time that a packet waits for its turn, as in a small router
BITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}

NO_NETEM = ("this kernel has no netem, which --delay, --jitter, --loss, --duplicate, --reorder and "
            "--corrupt need: as root, 'modprobe sch_netem'; else take a kernel with "
            "CONFIG_NET_SCH_NETEM. --rate, --down and 'split' work without")


def percent(text):
    """Such as 1%, or 0.1."""
    if not re.fullmatch(r"\d+(\.\d+)?%?", text) or float(text.rstrip("%")) > 100:
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage such as 1%")
    return float(text.rstrip("%"))


def milliseconds(text):
    """Such as 10ms, 200us or 1s; a bare number counts milliseconds."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s|)", text)
    value = parts and float(parts[1]) * {"us": 0.001, "ms": 1, "s": 1000, "": 1}[parts[2]]
    if not parts or value > 60000:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time up to 60 s such as 10ms")
    return value


def bits(text):
    """Bits in a second: such as 10mbit."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)(?:bit)?", text.lower())
    value = parts and round(float(parts[1]) * BITS[parts[2]])
    if not parts or (value and not 8000 <= value <= 10**11):
        raise argparse.ArgumentTypeError(f"'{text}' is not a rate from 8kbit on such as 10mbit; 0: "
                                         "unlimited")
    return value


def add_options(add):
    """@add: add_argument of a parser, or of a group of one."""
    add("--delay", type=milliseconds, metavar="TIME", help="each packet waits TIME, such as 10ms")
    add("--jitter", type=milliseconds, metavar="TIME",
        help="the delay varies at random by up to TIME; packets may overtake each other")
    add("--loss", type=percent, metavar="PERCENT", help="packets lost, at random")
    add("--duplicate", type=percent, metavar="PERCENT", help="packets sent twice")
    add("--reorder", type=percent, metavar="PERCENT",
        help="packets that skip the delay, and so overtake others; needs --delay")
    add("--corrupt", type=percent, metavar="PERCENT", help="packets with one bit changed")
    add("--rate", type=bits, metavar="RATE", help="bits in a second, such as 10mbit; 0: unlimited")


FIELDS = ("delay", "jitter", "loss", "duplicate", "reorder", "corrupt", "rate")


def change(link, options):
    """@link with the given options in it."""
    given = {field: getattr(options, field) for field in FIELDS
             if getattr(options, field) is not None}
    return {field: value for field, value in {**link, **given}.items() if value}


def wrong_with(link):
    """Why netem would refuse @link, or None."""
    for field in ("reorder", "jitter"):
        if field in link and "delay" not in link:
            return f"--{field} needs --delay"
    return None


def words(link):
    """@link for a person."""
    units = {"delay": " ms", "jitter": " ms", "rate": " Mbit/s"}
    shown = {**link, "rate": link["rate"] / 10**6} if "rate" in link else link
    return ", ".join(f"{field} {shown[field]:g}{units.get(field, ' %')}" for field in FIELDS
                     if field in shown) or "-"


def _netem(link):
    faults = [f"{field} {link[field]:g}%" for field in ("loss", "duplicate", "reorder", "corrupt")
              if field in link]
    if "delay" in link:
        faults.insert(0, f"delay {link['delay']:g}ms {link.get('jitter', 0):g}ms")
    return " ".join(faults)


def tc_lines(link, device):
    """Lines of 'tc -batch' that give @device the queue of @link; the device has none before."""
    faults, parent = _netem(link), "root handle 1:"
    if faults:
        yield f"qdisc add dev {device} {parent} netem limit {NETEM_PACKETS_MAX} {faults}"
        parent = "parent 1: handle 2:"
    if "rate" in link:
        burst = max(BURST_BYTES_MIN, round(link["rate"] / 8 * BURST_S))
        yield (f"qdisc add dev {device} {parent} tbf rate {link['rate']}bit burst {burst} "
               f"latency {QUEUE}")
