#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plants a bug in a file of core, for the hunt to find.

  plant.py BUG SOURCE.C PLANTED.C
"""

import pathlib
import sys

PLANTS = {
    # Who comes later goes past those that stand in line, when what he wants fits.
    "window": ("is_turn_of(w, waiter) && weir_window_fits(w, bytes)", "weir_window_fits(w, bytes)"),
    # Levels are no more than classes that share.
    "sched": ("return a->config.level == b->config.level && ", "return "),
    # A look is taken to tell also of what was posted behind it.
    "confirm": ("o->arrived < o->covered", "o->arrived < o->committed"),
    # All parts of a request but the first are of its first bytes.
    "place": ("piece.addr += offset;", ""),
    # Ranges that share one byte, the last of one and the first of the other, do not overlap.
    "end": ("while (n && n->subtree_last >= first) {", "while (n && n->subtree_last > first) {"),
    # After a piece that is cut off, the next is cut off, too.
    "twice": ("\t\toffset = 0;\n", ""),
    # A poller sleeps on a CQ that it has not armed.
    "nap": ("\treturn arm_cq(p);\n}\n\nenum", "\treturn sleep_now(p);\n}\n\nenum"),
    # What begins within what one may write goes on beyond it.
    "bounds": ("length > entry->length - offset)", "length > entry->length)"),
    # Of retries there is no end.
    "retries": ("req->retries -= req->lost;", ""),
    # Who waits for a peer that does not answer waits on after his deadline.
    "silence": ("if (wr_carries(&e->wrs[i], req))", "if (!req && wr_carries(&e->wrs[i], req))"),
    # What was lost on a channel that is gone for good is posted again.
    "gone": ("if (!may_repeat && !req->status)", "if (!may_repeat && req->status)"),
    # A part is not posted, a later one was: all from there is sent again.
    "part": ("} else if (wr->offset + length == req->posted) {",
             "} else if (wr->offset + length <= req->posted) {"),
    # A part is not posted, a later one was: what cannot be repeated is sent again, all of it.
    "hole": ("} else if (is_idempotent(req)) {", "} else if (true) {"),
    # Neighbours of two regions become one WR, under the key of the first.
    "region": (" || req->rkey != m->first->rkey", ""),
    # A barrier is done before what it waits for.
    "barrier": ("(req->op == WEIR_OP_BARRIER || req->epoch != b->epoch)",
                "(req->op != WEIR_OP_BARRIER && req->epoch != b->epoch)"),
    # A short deadline behind a long one is not seen until that one passes.
    "sort": ("while (before != deadlines && ", "while (0 && "),
    # Who goes alone has no deadline.
    "lone": ("e->fastpath ? e->fastpath->deadline_ns", "e->fastpath ? WEIR_NEVER"),
    # Slots that the peer gives back by a message stay its own.
    "told": ("\to->free++;\n\to->freed++;", "\to->freed++;"),
    # Who was told of a slot does not have it.
    "held": ("\tin->held[slot / 64] |= mask_of(slot);\n", ""),
    # A peer may give back what it does not have, and fill what is full; by messages, and by bits.
    "given": ("slot >= o->slots || !(full_slots(o, slot / 64) & mask_of(slot))", "slot >= o->slots"),
    "freed": ("if (changed & ~full_slots(o, word))", "if (false)"),
    "filled": ("slot >= in->slots || filled_slots(in, slot / 64) & mask_of(slot)",
               "slot >= in->slots"),
    "empty": ("if (changed & (filled_slots(in, word) | ~valid_slots(in->slots, word)))", "if (false)"),
    # Weights do nothing.
    "weight": ("(int64_t)m->weight * unit", "(int64_t)(m->weight > 0) * unit"),
    # A low level is passed for ever.
    "starve": ("return class_is_starved(a);", "return false;"),
    # A tenant has a share for each of its flows.
    "tenant": ("weir_drr_charge(&c->bundles, &bundle->turn, cost_of(c, bytes), unit_of(c));", ""),
    # Ranges may wrap, what is atomic may lie anywhere, pieces need not sum up.
    "wrap": ("req->remote + (req->length - 1) < req->remote", "!req->length"),
    "align": (" && req->remote % 8 == 0", ""),
    "sum": ("return !left;", "return !left || true;"),
    # A request waits for company with hardly anything in flight.
    "company": ("e->streaming >= WEIR_STREAM_WRS", "e->streaming"),
    # Of two bytes one is copied.
    "copy": ("STORE(uint16_t, to, from)", "STORE(uint8_t, to, from)"),
    # A replica that has missed a write is believed.
    "stale": ("\t\t\te->replica[slot].state = WEIR_REPLICA_STALE;\n", "\t\t\tcontinue;\n"),
    # A copy overwrites what overtook it.
    "overtake": ("copy->overtaken |= chunk_bits(copy, page, pages);", "(void)chunk_bits;"),
    # A chunk that could not be written is believed.
    "chunk": ("} else if (!succeeded) {", "} else if (false) {"),
    # Memory is given back while it is used.
    "reclaim": ("if (replica->state != WEIR_REPLICA_STALE || replica->users ||",
                "if (replica->state != WEIR_REPLICA_STALE ||"),
    # What a flow has in flight is not counted, which the scheduler itself finds when it completes.
    "count": ("\tflow->wrs++;\n", ""),
    "begin": ("\t\tif (n->first > last)\n", "\t\tif (n->first >= last)\n"),
}

bug, source, planted = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
line, mistake = PLANTS[bug]
text = source.read_text()
if text.count(line) != 1:
    sys.exit(f"{source}: '{line}' is there {text.count(line)} times: bring this script up to date")
planted.write_text(text.replace(line, mistake))
