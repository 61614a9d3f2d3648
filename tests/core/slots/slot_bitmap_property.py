#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Run both ends of a pool in random interleavings, against a model that knows where each message
is.

slot_bitmap_property.py LIBRARY

LIBRARY has core/slots/slot_bitmap.c and core/slots/moderation.c. Writes land late. A bitmap
read sees one word now and the next later, may be executed again from the start, and completes
later still. Either end dies, and some slots are notified instead. In every run a slot found is
full and was not found before, and a slot written was given back. No end reports a broken rule
of the other. While both ends live, everything finishes, even if both read only when
core/slots/moderation.h says so.
"""
import errno
import os
import pathlib
import re
import sys

try:
    import cffi
    from hypothesis import HealthCheck, Phase, settings, strategies as st
    from hypothesis.stateful import (
        RuleBasedStateMachine,
        initialize,
        precondition,
        rule,
        run_state_machine_as_test,
    )
except ImportError as missing:
    print(f"skipped: {missing}; install python3-cffi and python3-hypothesis")
    sys.exit(77)

SLOTS = pathlib.Path(__file__).resolve().parents[3] / "core/slots"
STRUCT = re.compile(r"^struct \w+ \{.*?^\};", re.M | re.S)
FUNCTION = re.compile(r"^(?:int|bool|void|size_t) weir_\w+\([^;{]*?\);", re.M | re.S)
ROUND_NS = 1000
ROUNDS_MAX = 20000  # of 1 us each: longer than moderation ever delays a read
GAP_NS = (0, 32000, 512000)

ffi = cffi.FFI()
for header in ("slot_bitmap.h", "moderation.h"):
    text = (SLOTS / header).read_text(encoding="ascii")
    ffi.cdef("\n".join(STRUCT.findall(text) + FUNCTION.findall(text)))


class Look:
    """One end's read of the other end's bitmap."""

    def __init__(self, bits, words):
        self.bits, self.words = bits, words
        self.under_way, self.seen = False, []

    def post(self):
        self.under_way, self.seen = True, []

    def step(self):
        if len(self.seen) < self.words:
            self.seen.append(self.bits[len(self.seen)])

    def is_back(self):
        return self.under_way and len(self.seen) == self.words


class Pool(RuleBasedStateMachine):
    @initialize(slots=st.sampled_from((1, 2, 3, 63, 64, 65, 130)), batch=st.integers(1, 64),
                gap_ns=st.sampled_from(GAP_NS), patient=st.booleans())
    def begin(self, slots, batch, gap_ns, patient):
        self.slots, words = slots, (slots + 63) // 64
        self.out, self.in_ = ffi.new("struct weir_slot_bitmap_tx *"), ffi.new(
            "struct weir_slot_bitmap_rx *"
        )
        self.out_bits, self.in_bits = ffi.new("uint64_t[]", words), ffi.new("uint64_t[]", words)
        self.kept = (ffi.new("uint64_t[]", lib.weir_slot_bitmap_tx_bytes(slots) // 8 + 1),
                     ffi.new("uint64_t[]", lib.weir_slot_bitmap_rx_bytes(slots) // 8 + 1))
        lib.weir_slot_bitmap_tx_init(self.out, slots, self.out_bits, self.kept[0])
        lib.weir_slot_bitmap_rx_init(self.in_, slots, self.in_bits, self.kept[1])
        self.out_look, self.in_look = Look(self.in_bits, words), Look(self.out_bits, words)
        self.paces = [ffi.new("struct weir_moderation *") for _ in range(2)]
        for pace in self.paces:
            lib.weir_moderation_init(pace, batch, gap_ns, patient)
        self.now_ns = 10**9
        self.posted, self.mirror, self.told = [], [None] * slots, []
        self.acquired, self.held, self.unshown = [], [], []
        self.sent, self.taken = 0, set()
        self.sender_lives = self.receiver_lives = True

    def put_one(self, slot, tells=False):
        """Notify the peer of the slot, of all slots not shown yet, and of slots followed by a read
        in flight.
        """
        self.unshown = [
            *self.unshown[len(self.unshown) - (self.out.committed - self.out.arrived) :],
            slot,
        ]
        self.posted.append((slot, self.sent, self.unshown if tells else []))
        self.sent += 1
        lib.weir_slot_bitmap_tx_commit(self.out, slot)
        if tells:
            lib.weir_slot_bitmap_tx_notified(self.out)

    @precondition(lambda self: self.sender_lives)
    @rule(count=st.integers(1, 70), tells=st.booleans())
    def put(self, count, tells):
        for _ in range(count):
            slot = lib.weir_slot_bitmap_tx_acquire(self.out)
            if slot < 0:
                assert slot == -errno.EAGAIN and not self.out.free
                return
            assert slot < self.slots and slot not in self.acquired
            self.put_one(slot, tells)

    @precondition(lambda self: self.sender_lives)
    @rule()
    def acquire(self):
        slot = lib.weir_slot_bitmap_tx_acquire(self.out)
        if slot >= 0:
            assert slot < self.slots and slot not in self.acquired
            self.acquired.append(slot)

    @precondition(lambda self: self.sender_lives and self.acquired)
    @rule(commits=st.booleans())
    def use_what_was_acquired(self, commits):
        slot = self.acquired.pop(0)
        if commits:
            self.put_one(slot)
        else:
            lib.weir_slot_bitmap_tx_abandon(self.out, slot)

    def land(self, count):
        """The connection keeps the order of writes."""
        for slot, message, tells in self.posted[:count]:
            assert self.mirror[slot] is None, "written to before it was given back"
            self.mirror[slot] = message
            self.told.extend(tells)
        del self.posted[:count]

    @precondition(lambda self: self.posted)
    @rule(count=st.integers(1, 8))
    def some_land(self, count):
        self.land(count)

    def sender_step(self):
        look = self.out_look
        if not look.under_way:
            lib.weir_slot_bitmap_tx_read_posted(self.out)
            look.post()
            self.follows = len(self.posted)  # number of writes before the read
            self.first = self.sent - self.follows
        elif look.is_back():
            look.under_way = False
            arrived = self.out.arrived
            assert (
                lib.weir_slot_bitmap_tx_read_done(self.out, ffi.new("uint64_t[]", look.seen)) >= 0
            )
            lib.weir_moderation_polled(self.paces[0], self.out.arrived - arrived, self.now_ns)
        else:
            gone = self.sent - len(self.posted) - self.first
            self.land(max(0, self.follows - gone))
            look.step()

    def receiver_step(self):
        look = self.in_look
        if not look.under_way:
            look.post()
        elif look.is_back():
            look.under_way = False
            found = lib.weir_slot_bitmap_rx_read_done(self.in_, ffi.new("uint64_t[]", look.seen))
            assert found >= 0
            lib.weir_moderation_polled(self.paces[1], found, self.now_ns)
            self.take(found)
        else:
            look.step()

    def take_one(self, slot):
        assert self.mirror[slot] is not None, "found before it was there"
        assert self.mirror[slot] not in self.taken, "found twice"
        self.taken.add(self.mirror[slot])
        self.held.append(slot)

    def take(self, count):
        for _ in range(count):
            slot = lib.weir_slot_bitmap_rx_next_full(self.in_)
            assert 0 <= slot < self.slots
            self.take_one(slot)
        assert lib.weir_slot_bitmap_rx_next_full(self.in_) == -errno.EAGAIN

    @precondition(lambda self: self.sender_lives)
    @rule(steps=st.integers(1, 5))
    def sender_looks(self, steps):
        for _ in range(steps):
            self.sender_step()

    @precondition(lambda self: self.receiver_lives)
    @rule(steps=st.integers(1, 5))
    def receiver_looks(self, steps):
        for _ in range(steps):
            self.receiver_step()

    @precondition(lambda self: self.receiver_lives and self.told)
    @rule(count=st.integers(1, 8))
    def hear(self, count):
        for slot in self.told[:count]:
            assert lib.weir_slot_bitmap_rx_slot_filled(self.in_, slot) == 0
            self.take_one(slot)
        del self.told[:count]

    @rule(out=st.booleans())
    def a_look_is_repeated(self, out):
        look = self.out_look if out else self.in_look
        look.seen = []

    @precondition(lambda self: self.receiver_lives and self.held)
    @rule(which=st.integers(0, 200), count=st.integers(1, 20))
    def release(self, which, count):
        for _ in range(min(count, len(self.held))):
            slot = self.held.pop(which % len(self.held))
            self.mirror[slot] = None  # the receiver reads the message, then gives the slot back
            lib.weir_slot_bitmap_rx_release(self.in_, slot)

    @precondition(lambda self: self.sender_lives and self.receiver_lives)
    @rule(sender=st.booleans(), chance=st.integers(0, 9), lands=st.integers(0, 8))
    def one_dies(self, sender, chance, lands):
        if chance:
            return
        if sender:
            self.sender_lives = False
            del self.posted[lands:]  # some of its posted writes may still land
        else:
            self.receiver_lives = False

    @rule(ns=st.integers(0, 1000000))
    def time_passes(self, ns):
        self.now_ns += ns

    def is_due(self, which):
        pace = self.paces[which]
        return self.now_ns - pace.read_ns >= pace.gap_ns

    def round(self):
        self.now_ns += ROUND_NS
        if self.out_look.under_way or (self.is_due(0) and self.out.freed < self.sent):
            self.sender_step()
        if self.in_look.under_way or self.is_due(1):
            self.receiver_step()
        self.land(1)
        if self.told:
            self.hear(8)
        if self.held:
            self.release(0, 20)

    def teardown(self):
        if not hasattr(self, "slots"):
            return
        assert len(self.taken) <= self.sent
        if not (self.sender_lives and self.receiver_lives):
            return
        while self.acquired:
            self.use_what_was_acquired(True)
        for _ in range(ROUNDS_MAX):
            if self.out.freed == self.sent and not self.out_look.under_way:
                break
            self.round()
        assert self.out.freed == self.sent, "there is no end"
        assert self.taken == set(range(self.sent)) and self.out.free == self.slots


if __name__ == "__main__":
    lib = ffi.dlopen(sys.argv[1])
    examples = os.environ.get("WEIR_EXAMPLES")
    run_state_machine_as_test(Pool, settings=settings(
        max_examples=int(examples or 80), stateful_step_count=50, deadline=None, database=None,
        derandomize=not examples, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck)))
