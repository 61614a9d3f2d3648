# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Foreground and background of Avatar's Figs. 6 to 9: over the mux, and over plain verbs."""

KIB = 1024
BACKGROUND = [16 * KIB, 64 * KIB, 128 * KIB]
SEGMENT = 16 * KIB  # smallest message in these figures; the paper does not give its segment size
UNDER_WAY = 2  # messages of each background flow; not in the paper either
GUESSED = ("The paper says neither how long its segments are (here 16 KB), nor how much its "
           "background has under way (here two messages a flow): guesses, and not chosen to meet "
           "it.")

READ_AHEAD = ("Not modelled: a bound on how far ahead of the wire the data of one work request is "
              "read, by which a message that is cut would be sent faster than a whole one.")


def mux(size, background, first, policy="fair", flows=1, depth=1):
    """first: the foreground's class goes first."""
    one = {"driver": "mux", "op": "send", "poll": "adaptive", "threads": flows, "conns": flows}
    back = {f"bg_{name}": value for name, value in one.items()}
    return {**one, **back, "depth": depth, "size": size, "bg_size": background,
            "bg_depth": UNDER_WAY,
            "segment": SEGMENT, "policy": policy, "bg_class": int(first), "run_us": 8000}


def native(size, background, first, flows=1):
    """A QP for each flow, with busy polling."""
    return {"op": "send", "threads": flows, "size": size, "bg_op": "send", "bg_threads": flows,
            "bg_size": background, "bg_depth": UNDER_WAY, "bg_class": int(first), "run_us": 8000}


def latency(one, part="p50"):
    return one["load"]["latency_us"][part]
