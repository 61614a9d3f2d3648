#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Compare random requests over a small memory with a sequential memory.

engine_property.py LIBRARY

LIBRARY is the engine with engine_sim.c, which checks each step. The test checks the effect of
the requests. Completions come in random order, channels break and recover, lost WRs arrive
late, requests time out and are cancelled. Even so, each byte read and each old value of an
atomic must match a naive memory that takes the requests in the order submitted.

WEIR_EXAMPLES sets the number of runs; by default a fixed set of runs is made. WEIR_SHRINK=0
shows a failing run without shrinking.
"""

import errno
import os
import pathlib
import sys

try:
    import cffi
    from hypothesis import HealthCheck, Phase, settings, strategies as st
    from hypothesis.stateful import (RuleBasedStateMachine, initialize, invariant, rule,
                                     run_state_machine_as_test)
except ImportError as missing:
    print(f"skipped: {missing}; install python3-cffi and python3-hypothesis")
    sys.exit(77)

READ, WRITE, CAS, FADD, SEND, BARRIER = range(6)
NOTHING, POSTED, DONE, FAILED = range(4)
ENGINES, CHANNELS = 3, 4
CELL = 512  # granularity of the small memory, in bytes
CELLS = 40
FRAGMENT = 4096
NEVER = 2**64 - 1

ffi = cffi.FFI()
header = (pathlib.Path(__file__).parents[2] / "support/engine_sim.h").read_text()
ffi.cdef("\n".join(line for line in header.splitlines() if not line.startswith("#")))

# How a WR may end: the status, and whether the WR has taken effect (LATER: still may).
NO, YES, LATER = range(3)
OUTCOMES = {
    "done": (0, YES),
    "lost": (-errno.ECONNRESET, NO),
    "done, answer lost": (-errno.ECONNRESET, YES),
    "under way": (-errno.ECONNRESET, LATER),
    "never posted": (-errno.ENOTCONN, NO),
    "refused": (-errno.EACCES, NO),
    "failed": (-errno.EIO, NO),
    "failed, under way": (-errno.EIO, LATER),
    "local fault": (-errno.EFAULT, NO),
    "local fault in the middle": (-errno.EFAULT, YES),
    "local fault, under way": (-errno.EFAULT, LATER),
}
# Most WRs succeed, so that runs get far.
outcomes = st.one_of(st.just("done"), st.just("done"), st.sampled_from(sorted(OUTCOMES)))


class Request:
    """A submitted request and the result."""

    def __init__(self, op, first, cells, number, compare, exclusive):
        self.op, self.number, self.compare = op, number, compare
        self.exclusive = exclusive
        self.cells = range(first, first + cells)
        self.status = None
        self.seen = {}  # cell: the value when the request took effect
        self.may_repeat = op == READ or (op == WRITE and exclusive)
        self.is_suspect = False  # merged into a WR that met a local fault
        self.is_unknown = False  # a part of a write or an atomic was lost in flight
        self.is_abandoned = False  # a part was lost on a channel given up later
        self.is_guilty = False  # a WR failed with this request alone, or with guilty ones only

    def effect(self, value):
        """Return the value of a cell after this request."""
        if self.op == WRITE:
            return 1000 * (self.number + 1)
        if self.op == FADD:
            return value + 1
        if self.op == CAS and value == self.compare:
            return 1000 * (self.number + 1)
        return value


class Engines(RuleBasedStateMachine):
    library = None

    @initialize(window=st.integers(1, 20), wrs=st.integers(1, 30), depth=st.integers(1, 8),
                channels=st.integers(1, CHANNELS), chain_max=st.sampled_from([0, 0, 1, 3]),
                sge_max=st.sampled_from([0, 8, 9, 32, 32]), seed=st.integers(0, 2**64 - 1),
                moves=st.booleans())
    def begin(self, window, wrs, depth, channels, chain_max, sge_max, seed, moves):
        lib = self.library
        self.sim = ffi.gc(
            lib.engine_sim_new(window * FRAGMENT, wrs, depth, chain_max, sge_max, seed),
            lib.engine_sim_free,
        )
        if moves:
            lib.engine_sim_move_window(self.sim)
        self.memory = [[0] * CELLS for _ in range(ENGINES)]
        self.requests = [[] for _ in range(ENGINES)]
        self.by_number = {}
        self.now = 0
        self.held = False
        self.channels = {}  # channels that are up or broken
        self.under_way = []  # lost WRs, not arrived yet: engine, channel, parts
        # requests in doubt, whether or not a lost WR took effect: engine, channel, request
        self.astray = []
        for engine in range(ENGINES):
            for channel in range(channels):
                self.channel_up(engine, channel, False)

    # Handle the events of the engines.

    def take_events(self):
        while (event := self.library.engine_sim_event(self.sim)).type != NOTHING:
            if event.type == DONE:
                request = self.by_number[event.req]
                assert request.status is None, "each request is done once"
                request.status = event.status
            if event.type == FAILED:
                self.channels[event.engine, event.channel] = "broken"

    def carried(self, wr):
        """Return the parts of requests in a WR."""
        count = self.library.engine_sim_carried(
            self.sim, wr.wr, 0, ffi.new("struct engine_sim_event *")
        )
        parts = [ffi.new("struct engine_sim_event *") for _ in range(count)]
        for index, part in enumerate(parts):
            self.library.engine_sim_carried(self.sim, wr.wr, index, part)
        return parts

    def take_effect(self, parts):
        for part in parts:
            request = self.by_number[part.req]
            memory = self.memory[part.engine]
            if request.op in (SEND, BARRIER):
                continue
            assert request.status is None, "nothing arrives of a request that has ended"
            begin = request.cells[0] + part.offset // CELL
            for cell in range(begin, begin + (part.length + CELL - 1) // CELL):
                assert (request.may_repeat or request.is_suspect or cell not in request.seen), \
                    "no change is made twice"
                request.seen[cell] = memory[cell]
                memory[cell] = request.effect(memory[cell])

    # Steps.

    @rule(engine=st.integers(0, ENGINES - 1), op=st.sampled_from([READ, WRITE, READ, WRITE, CAS,
                                                                 FADD, SEND, BARRIER]),
          first=st.integers(0, CELLS - 1), cells=st.integers(1, 24), retries=st.integers(0, 2),
          patience=st.one_of(st.none(), st.integers(1, 50)), compare=st.sampled_from([0, 1, 1000]),
          exclusive=st.booleans())
    def submit(self, engine, op, first, cells, retries, patience, compare, exclusive):
        cells = min(cells, CELLS - first)
        length = cells * CELL
        if op == SEND:
            length = min(length, FRAGMENT)
        if op in (CAS, FADD):
            cells, length = 1, 8
        request = Request(op, first, cells, len(self.by_number), compare, exclusive)
        # The request may be done before submit returns.
        self.by_number[len(self.by_number)] = request
        number = self.library.engine_sim_submit(
            self.sim,
            engine,
            op,
            first * CELL,
            length,
            retries,
            exclusive,
            NEVER if patience is None else self.now + patience,
        )
        if number < 0:
            assert number == -errno.ENOTCONN
            del self.by_number[request.number]
            return
        assert number == request.number
        self.requests[engine].append(request)

    @rule(engine=st.integers(0, ENGINES - 1), op=st.sampled_from([READ, WRITE]),
          first=st.integers(0, CELLS - 24), cells=st.lists(st.sampled_from([1, 2, 9]), min_size=4,
                                                           max_size=4),
          turns=st.permutations(range(4)), retries=st.integers(0, 1), exclusive=st.booleans())
    def submit_neighbours(self, engine, op, first, cells, turns, retries, exclusive):
        held = self.held
        self.gather(True)
        for turn in turns:
            begin = min(first + sum(cells[:turn]), CELLS - 1)
            self.submit(engine, op, begin, cells[turn], retries, None, 0, exclusive)
        self.gather(held)

    def in_flight(self):
        """Return a part of each WR in flight; most WRs have a single part."""
        count = self.library.engine_sim_in_flight(self.sim, -1, ffi.NULL)
        wrs = [ffi.new("struct engine_sim_event *") for _ in range(count)]
        for index, wr in enumerate(wrs):
            self.library.engine_sim_in_flight(self.sim, index, wr)
        return wrs

    @rule(index=st.integers(0, 200), outcome=outcomes)
    def complete(self, index, outcome):
        if wrs := self.in_flight():
            self.end(wrs[index % len(wrs)], outcome)

    @rule(index=st.integers(0, 200))
    def post_in_part(self, index):
        """Drop an unposted WR of a request with several parts in flight."""
        wrs = self.in_flight()
        parts = [wr for wr in wrs
                 if any(wr.req == other.req and wr.offset != other.offset for other in wrs)]
        if parts:
            self.end(parts[index % len(parts)], "never posted")

    def end(self, wr, outcome):
        status, happens = OUTCOMES[outcome]
        parts = self.carried(wr)
        if happens == YES:
            self.take_effect(parts)
        may_arrive = (wr.engine, wr.channel) in self.channels
        if happens == LATER and may_arrive:
            self.under_way.append((wr.engine, wr.channel, [
                part for part in parts if self.by_number[part.req].op != READ]))
        for part in parts:
            request = self.by_number[part.req]
            request.is_unknown |= not request.may_repeat and status == -errno.ECONNRESET
            # The engine posts the request again, alone.
            request.is_suspect |= len(parts) > 1 and status == -errno.EFAULT
            request.is_guilty |= len(parts) == 1
            if (may_arrive and request.op != READ and
                    status not in (0, -errno.ENOTCONN, -errno.EACCES)):
                self.astray.append((wr.engine, wr.channel, request))
        self.library.engine_sim_complete(self.sim, wr.wr, status)

    @rule(held=st.booleans())
    def gather(self, held):
        self.held = held
        self.library.engine_sim_hold(self.sim, held)

    @rule(back=st.integers(0, 10))
    def cancel(self, back):
        number = len(self.by_number) - 1 - back
        rc = self.library.engine_sim_cancel(self.sim, number)
        assert rc in (0, -errno.EINPROGRESS, -errno.ENOENT)
        self.take_events()
        if rc == 0 and not self.held:
            assert self.by_number[number].status == -errno.ECANCELED

    @rule(passed=st.integers(1, 30))
    def time_passes(self, passed):
        self.now += passed
        self.library.engine_sim_expire(self.sim, self.now)

    @rule(index=st.integers(0, 50))
    def arrive(self, index):
        if self.under_way:
            self.take_effect(self.under_way.pop(index % len(self.under_way))[2])

    def hear_of(self, engine, channel, arrives):
        """Nothing lost can arrive any more."""
        for lost in [lost for lost in self.under_way if lost[:2] == (engine, channel)]:
            self.under_way.remove(lost)
            if arrives:
                self.take_effect(lost[2])

    @rule(engine=st.integers(0, ENGINES - 1), channel=st.integers(0, CHANNELS - 1),
          arrives=st.booleans())
    def channel_up(self, engine, channel, arrives):
        self.hear_of(engine, channel, arrives)
        rc = self.library.engine_sim_channel_up(self.sim, engine, channel)
        assert rc in (0, -errno.EBUSY)
        if rc == 0:
            self.channels[engine, channel] = "up"
            self.astray = [lost for lost in self.astray if lost[:2] != (engine, channel)]

    @rule(engine=st.integers(0, ENGINES - 1), channel=st.integers(0, CHANNELS - 1))
    def channel_broken(self, engine, channel):
        if (engine, channel) in self.channels:
            self.channels[engine, channel] = "broken"
            self.library.engine_sim_channel_broken(self.sim, engine, channel)

    @rule(engine=st.integers(0, ENGINES - 1), channel=st.integers(0, CHANNELS - 1),
          arrives=st.booleans())
    def channel_down(self, engine, channel, arrives):
        self.hear_of(engine, channel, arrives)
        self.take_events()
        for lost in self.astray:
            if lost[:2] == (engine, channel) and lost[2].status is None:
                lost[2].is_abandoned = True
        self.channels.pop((engine, channel), None)
        self.library.engine_sim_channel_down(self.sim, engine, channel)

    # Invariants.

    @invariant()
    def keeps_its_promises(self):
        if not hasattr(self, "sim"):
            return
        self.take_events()
        broken = self.library.engine_sim_broken()
        assert not broken, ffi.string(broken).decode()

    def complete_all(self):
        wr = ffi.new("struct engine_sim_event *")
        while self.library.engine_sim_in_flight(self.sim, 0, wr):
            self.take_effect(self.carried(wr))
            self.library.engine_sim_complete(self.sim, wr.wr, 0)
            self.keeps_its_promises()

    def finish(self):
        self.gather(False)
        self.keeps_its_promises()
        self.complete_all()
        for engine, channel in list(self.channels):
            self.channel_down(engine, channel, True)
            self.keeps_its_promises()
            self.complete_all()
        assert self.library.engine_sim_undone(self.sim) == 0, "every request is done in the end"

    def teardown(self):
        if not hasattr(self, "sim"):
            return
        self.keeps_its_promises()
        self.finish()
        for requests, memory in zip(self.requests, self.memory):
            assert one_at_a_time(requests) == memory, "each takes effect once, in order"


def one_at_a_time(requests):
    """Compare the results of an engine's requests with a naive memory; return the memory."""
    memory = [0] * CELLS
    for request in requests:
        assert request.status is not None, "every request is done in the end"
        if request.status in (-errno.EACCES, -errno.EFAULT):
            assert request.is_guilty, "none is condemned with those it was merged with"
        if request.status in (-errno.ENOTCONN, -errno.ECANCELED):
            assert not request.seen, "nothing was sent of it"
        if request.is_unknown:
            assert request.status != 0, "what may have taken effect is not repeated"
        if request.is_abandoned:
            assert request.status != 0, "what the peer has not answered for is not repeated"
        if request.status == 0 and request.op in (READ, WRITE, CAS, FADD):
            assert list(request.cells) == sorted(request.seen), "all of it was done"
        for cell, value in sorted(request.seen.items()):
            # A write posted twice may have seen the first effect, and nobody reads the result
            # of a failed read.
            if request.op in (CAS, FADD) or (request.op == READ and request.status == 0):
                assert value == memory[cell], "requests take effect in the order submitted"
            memory[cell] = request.effect(memory[cell])
    return memory


def main(library):
    Engines.library = ffi.dlopen(os.path.abspath(library))
    examples = os.environ.get("WEIR_EXAMPLES")
    phases = [Phase.generate] + [Phase.shrink] * (os.environ.get("WEIR_SHRINK") != "0")
    run_state_machine_as_test(
        Engines,
        settings=settings(
            max_examples=int(examples or 150),
            stateful_step_count=60,
            deadline=None,
            database=None,
            phases=phases,
            derandomize=not examples,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
