#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plants a bug in a file of core, softnic/roce, softnic/roce_cm or lib/volume, for tests to find.

  plant.py BUG SOURCE.C PLANTED.C
"""

import pathlib
import sys

PLANTS = {
    # A late session passes the waiters in line when its request fits.
    "window": ("is_turn_of(w, waiter) && weir_window_fits(w, bytes)",
               "(is_turn_of(w, waiter) || true) && weir_window_fits(w, bytes)"),
    # Levels are no more than classes that share.
    "sched": ("return a->config.level == b->config.level && ", "return "),
    # A bitmap read also confirms slots posted after it.
    "confirm": ("o->arrived < o->covered", "o->arrived < o->committed"),
    # All parts of a request are taken from its first bytes.
    "place": ("piece.addr += offset;", ""),
    # Ranges that share a single byte do not overlap.
    "end": ("while (n && n->subtree_last >= first) {", "while (n && n->subtree_last > first) {"),
    # After a piece that is cut, the next piece is cut, too.
    "twice": ("\t\toffset = 0;\n", ""),
    # A poller sleeps on a CQ that is not armed.
    "nap": ("\treturn arm_cq(p);\n}\n\nenum", "\treturn sleep_now(p);\n}\n\nenum"),
    # A write that starts within a registration may go beyond its end.
    "bounds": ("length > entry->length - offset)", "length > entry->length)"),
    # Retries never end.
    "retries": ("req->retries -= req->spends_retry;", ""),
    # A request to a silent peer waits past its deadline.
    "silence": ("if (wr_carries(&e->wrs[i], req))", "if (!req && wr_carries(&e->wrs[i], req))"),
    # A request lost on a channel that is gone is posted again.
    "gone": ("if (!may_repeat && !req->status)", "if (!may_repeat && req->status)"),
    # A part is not posted, a later part was: the engine sends all parts from there again.
    "part": ("} else if (wr->offset + length == req->posted) {",
             "} else if (wr->offset + length <= req->posted) {"),
    # A part is not posted, a later part was: the engine repeats even a request that must not be.
    "hole": ("} else if (is_idempotent(req)) {", "} else if (true) {"),
    # Neighbours of two regions become one WR, under the key of the first.
    "region": (" || req->rkey != m->first->rkey", ""),
    # A barrier ends before the requests that it waits for.
    "barrier": ("(req->op == WEIR_OP_BARRIER || req->barriers != b->barriers_passed)",
                "(req->op != WEIR_OP_BARRIER && req->barriers != b->barriers_passed)"),
    # A short deadline behind a long one is noticed only when the long one passes.
    "sort": ("while (before != deadlines && ", "while (0 && "),
    # A request on the fast path has no deadline.
    "lone": ("e->fastpath ? e->fastpath->deadline_ns", "e->fastpath ? WEIR_NEVER"),
    # Slots returned by a message stay the peer's.
    "told": ("\to->free++;\n\to->freed++;", "\to->freed++;"),
    # A receiver does not hold a slot announced by an immediate.
    "held": ("\tin->held[slot / 64] |= mask_of(slot);\n", ""),
    # A peer may return slots that it does not hold, and fill full slots; by messages and by bits.
    "given": ("slot >= o->slots || !(full_slots(o, slot / 64) & mask_of(slot))",
              "slot >= o->slots"),
    "freed": ("if (changed & ~full_slots(o, word))", "if (false)"),
    "filled": ("slot >= in->slots || filled_slots(in, slot / 64) & mask_of(slot)",
               "slot >= in->slots"),
    "empty": ("if (changed & (filled_slots(in, word) | ~valid_slots(in->slots, word)))",
              "if (false)"),
    # Weights have no effect.
    "weight": ("(int64_t)m->weight * unit", "(int64_t)(m->weight > 0) * unit"),
    # A low level is passed for ever.
    "starve": ("return class_is_starved(a);", "return false;"),
    # A tenant has a share for each of its flows.
    "tenant": ("weir_drr_charge(&c->bundles, &bundle->turn, cost_of(c, bytes), unit_of(c));", ""),
    # Ranges may wrap, atomics may be unaligned, pieces need not add up to the length.
    "wrap": ("req->remote + (req->length - 1) < req->remote", "!req->length"),
    "align": (" && req->remote % 8 == 0", ""),
    "sum": ("return !left;", "return !left || true;"),
    # A request waits for others with hardly anything in flight.
    "company": ("e->streaming >= WEIR_STREAM_WRS", "e->streaming"),
    # The copy takes one byte out of two.
    "copy": ("STORE(uint16_t, to, from)", "STORE(uint8_t, to, from)"),
    # A target sends reports that its queue has no room for.
    "credit": ("c->in_flight >= c->slots ||", ""),
    # A replica that has missed a write is trusted.
    "stale": ("\t\t\te->replica[slot].state = WEIR_REPLICA_STALE;\n", "\t\t\tcontinue;\n"),
    # A copy overwrites a write that overtook it.
    "overtake": ("v->copy[number].overtaken |= chunk_bits(&v->copy[number], page, pages);",
                 "(void)chunk_bits;"),
    # A chunk that could not be written is trusted.
    "chunk": ("} else if (!succeeded) {", "} else if (false) {"),
    # Memory in use is given back.
    "reclaim": ("if (replica->state != WEIR_REPLICA_STALE || replica->users ||",
                "if (replica->state != WEIR_REPLICA_STALE ||"),
    # A link is broken while WRs are in flight.
    "settle": ("!link->in_flight.count && ", ""),
    # WRs behind the last signalled one wait for ever.
    "drain": ("return link->in_flight.count;", "return false && link->in_flight.count;"),
    # A link is broken while a thread posts.
    "midpost": ("\n\t    !link->is_posting && is_read", "\n\t    is_read"),
    # The drain WR overtakes WRs that a thread is about to post.
    "overtaken": ("\tif (link->is_posting)\n\t\treturn false;\n", ""),
    # A post never ends.
    "unended": ("\tlink->is_posting = false;\n", ""),
    # A peer counts as silent while a thread posts, and no thread looks.
    "unheard": (" || link->is_posting", ""),
    # A peer that has answered counts as silent.
    "probed": ("\tlink->is_probed = false;\n", ""),
    # A peer that does not answer counts as alive.
    "vanish": ("if (link->is_probed)", "if (false)"),
    # Attempts to reconnect do not slow down.
    "pause": ("\tr->pause_ns *= 2;\n", ""),
    # The scheduler does not count the WRs of a flow in flight; its own check detects this.
    "count": ("\tflow->wrs++;\n", ""),
    # A proof with any tag holds.
    "proof": ("in->payload, 0, none))", "in->payload, 0, none) && false)"),
    # Another QP than the one connected may relay the handshake.
    "relay": ("return endpoint->qpn == qpn && ", "return (endpoint->qpn == qpn || true) && "),
    # A proof to one service holds for another.
    "service": ("\t\t.service = setup->service,\n", ""),
    # A client trusts any donor that knows the key.
    "pose": ("return !h->setup.nr_pins;", "return true;"),
    # Credits returned once are returned again.
    "debt": ("\tcredit->owed = 0;\n", ""),
    # The reply of a call that has timed out goes to a later call.
    "answer": ("t->generation++ * t->count", "t->generation * t->count"),
    # A call that has timed out is answered again when the channel breaks.
    "expire": ("\te->state = WEIR_CALL_LATE;\n", ""),
    # A region that a late reply grants is forgotten.
    "grant": ("e->hold = is_waiting || e->hold ? 0 : hold_of(head, body);",
              "e->hold = is_waiting || e->hold ? 0 : 0 * hold_of(head, body);"),
    # A duplicate atomic is executed again.
    "again": ("res->is_again |= !res->is_pending;",
              "res->is_again |= !res->is_pending;\n"
              "\t\tif (!is_read(res))\n\t\t\texecute(qp, p, res);"),
    # A read that goes back begins one packet early.
    "restart": (".addr = wqe->addr + (wqe->op == ROCE_OP_READ ? offset : 0)",
                ".addr = wqe->addr + (wqe->op == ROCE_OP_READ && offset ? offset - c->mtu : 0)"),
    # A piece of a read that goes back ends later than before.
    "regroup": (" - (psn - wqe->first) % piece", ""),
    # A response's PSN does not wrap.
    "wrapped": ("roce_psn_extend(p->psn, r->acked)",
                "p->psn + (r->acked & ~(uint64_t)ROCE_PSN_MASK)"),
    # The last write is executed again, if it comes again.
    "rewrite": ("if (psn == r->expected) {",
                "if (psn == r->expected || (psn + 1 == r->expected && traits & ROCE_HAS_RETH)) {"),
    # Each request past a gap gets a NAK.
    "storm": ("if (!r->has_gap)", "if (true)"),
    # A read ends when a later message is acknowledged.
    "implied": ("is_whole = !roce_requester_expects_data(wqe);", "is_whole = true;"),
    # A write that ends beyond its region is found out too late.
    "range": ("ops->check(qp->config.host, r->rkey",
              "false && ops->check(qp->config.host, r->rkey"),
    # A write goes on after the peer's rights have ended.
    "midway": ("r->addr + r->offset, p->payload, p->payload_bytes))",
               "r->addr + r->offset, p->payload, p->payload_bytes) &&\n"
               "\t    traits & ROCE_IS_START)"),
    # An acknowledgement of a packet that was not sent counts.
    "unsent": (" || psn >= r->sent)", ")"),
    # A requester has more reads in flight than the responder can repeat.
    "depth": ("return r->reads_out < qp->config.max_rd_atomic;", "return true;"),
    # A requester never gives up.
    "giveup": ("\tif (!qp->req.retries_left) {", "\tif (false) {"),
    # A write with immediate is reported with the length before its last packet.
    "immediate": ("\tr->offset += p->payload_bytes;\n\tif (traits & ROCE_HAS_IMM)\n",
                  "\tif (traits & ROCE_HAS_IMM)\n"),
    # UC goes on with a message after a gap.
    "gapless": ("\t\tqp->counters.gaps++;\n\t\tdrop_message(qp);",
                "\t\tqp->counters.gaps++;\n\t\tr->expected = psn;"),
    # UC delivers a late message.
    "stray": ("if (psn < r->expected && ", "if (false && "),
    # UD's payload lies where the GRH belongs.
    "grh": ("place(qp->config.host, ROCE_GRH_BYTES, p->payload",
            "place(qp->config.host, 0, p->payload"),
    # A duplicate is not acknowledged.
    "deaf": ("\t\t\tr->owes_ack = true;\n", "\t\t\treturn;\n"),
    # The connection manager: an old answer to a question is taken for the answer to the next.
    "other": ("conn->local_id != m->local_id ||\n\t    conn->tid != m->tid || ", ""),
    # A DREQ is obeyed but not answered.
    "forget": ("\troce_conn_answer(conn, &drep);\n", ""),
    # A message counts from any host.
    "spoof": ("!memcmp(conn->path.peer, path->peer, sizeof(path->peer))", "path"),
    # A repeated request is a second request.
    "double": ("\tif (conn) {\n\t\trepeat_answer(conn);",
               "\tif (conn && !m) {\n\t\trepeat_answer(conn);"),
    # A lost RTU is not sent again.
    "rtu": ("conn->sends_reply = conn->reply.kind == ROCE_MAD_MRA ||",
            "conn->sends_reply = false &&"),
    # A repeated RTU establishes again.
    "echo": ("\tif (conn->state != ROCE_CM_REP_SENT)\n\t\treturn;\n\tconn->state", "\tconn->state"),
    # A request is repeated for ever.
    "pester": ("\t\tconn->sends_left--;\n", ""),
    # A released connection has events.
    "posthumous": ("\tif (conn->is_released)\n\t\treturn;\n", ""),
    # Two connections with a host have one queue pair.
    "alias": ("conn->remote_qpn == req->qpn && ", "!conn->remote_qpn && "),
    # A connection is free before its program gives the connection back.
    "early": ("conn->state == ROCE_CM_ENDED && conn->is_released", "conn->state == ROCE_CM_ENDED"),
    # A connection released at its end is never free.
    "leak": ("\t\t/* fall through */\n\tcase ROCE_CM_ENDED:\n", "\t\t/* fall through */\n"),
    # A host with no room says that the service is stale.
    "excuse": ("refuse_req(cm, m, path, ROCE_MAD_NO_RESOURCES)",
               "refuse_req(cm, m, path, ROCE_MAD_STALE)"),
    # Volumes: a write is done before the second copy has it.
    "early_ack": ("slots >> slot & 1 ? push_subio(", "slots >> slot & 1 && !slot ? push_subio("),
    # Donors: a client of an earlier epoch may open a region, or keep its keys.
    "stale_epoch": ("if (epoch < lent->epoch)", "if (false)"),
    "unrevoked": ("while (!weir_list_is_empty(&lent->holds))", "while (false)"),
    # Checksums are not compared.
    "unchecked": ("weir_page_sum_fits(expected, weir_volume_checksum(key, number, page));",
                  "weir_page_sum_fits(expected, weir_volume_checksum(key, number, page)) || true;"),
    # The rest of a page that is written in part is lost.
    "unmerged": ("\tmerge_edge(r, piece->first + piece->at);\n\tpiece->step++;",
                 "\tclear_pages(piece);\n"
                 "\tmerge_edge(r, piece->first + piece->at);\n\tpiece->step++;"),
    # Requests that share a page overtake one another.
    "unordered": ("if (!r->order.blockers)", "if (true)"),
    # The last page of each run is not copied.
    "unfilled": ("(size_t)step->pages * WEIR_VOLUME_PAGE_BYTES, NULL }",
                 "(size_t)(step->pages - (step->pages > 1)) * WEIR_VOLUME_PAGE_BYTES, NULL }"),
    # Codes: the rest of a stripe that is written in part is lost.
    "coded_unmerged": ("!is_write || !covers_stripe(piece)",
                       "!is_write || (false && !covers_stripe(piece))"),
    # A wrong fragment is taken for right.
    "coded_unchecked": ("\t\t\treturn false;\n\t}\n\tif (is_known ||",
                        "\t\t\tcontinue;\n\t}\n\tif (true || is_known ||"),
    # A wrong fragment is left as it is.
    "coded_unrepaired": ("if (!v->core.repairs)", "if (true)"),
    # A write is done without its record; so is a repair.
    "coded_early": ("piece->step == WRITE_RECORDS) {", "true) {"),
    # A stripe without a place has the bytes that were read as a proof.
    "coded_proof": ("if (piece->step == READ_PROOF)\n\t\tmemset(",
                    "if (false)\n\t\tmemset("),
    # The fragments that are computed come from the wrong rows.
    "coded_rows": ("from[count++] = i;", "from[count] = count, count++;"),
    # Two writes of one stripe go on at once.
    "coded_unordered": ("v->coded ? v->stripe.unit : 1, first", "1, first"),
    "begin": ("\t\tif (n->first > last)\n", "\t\tif (n->first >= last)\n"),
}

bug, source, planted = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
line, mistake = PLANTS[bug]
text = source.read_text()
if text.count(line) != 1:
    sys.exit(f"{source}: '{line}' is there {text.count(line)} times: bring this script up to date")
planted.write_text(text.replace(line, mistake))
