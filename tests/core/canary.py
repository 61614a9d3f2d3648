#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Plant single bugs in a copy of the core. The hunt or a unit test must find each bug.

canary.py ROOT CC

A test proves something only after it has been seen to fail. A checker that cannot run is an error,
not a find. There is one copy of the tree for each CPU, and only files changed by a bug are compiled
again.
"""

import concurrent.futures
import os
import pathlib
import queue
import resource
import shutil
import subprocess
import sys
import tempfile

SEEDS = 5000
# A checker hangs if it takes longer than LONG_S, or uses HANG times its CPU time on a clean core
# and SPARE_S more.
LONG_S, HANG, SPARE_S = 900, 5, 2

# The checker beside the unit tests.
HUNT = "hunt"
# Exit statuses of the hunt.
HOLDS, BROKEN = 0, 1

# Each bug: the symptom, the file, the original line, the planted line.
BUGS = [
    ("suppressed encryption is proven over", "core/link/handshake.c",
     "if (was_downgraded(h)) /* without", "if (false) /* without"),
    ("suppressed encryption is not noticed at the end", "core/link/handshake.c",
     "if (was_downgraded(h))\n", "if (false)\n"),
    ("suppressed encryption ends a session for good", "core/link/handshake.c",
     "return give_up(h, -ETIMEDOUT, out, out_length);",
     "return give_up(h, -EKEYREJECTED, out, out_length);"),
    ("the proof does not cover the session of the wire", "core/link/handshake.c",
     "if (h->setup.is_encrypted)\n", "if (false)\n"),
    ("a nonce is used for two packets", "softnic/seal/seal.c",
     "\ts->sent++;\n", "\ts->sent |= 1;\n"),
    ("both directions share a key", "softnic/seal/agree.c",
     "is_lower ? higher : lower);", "is_lower ? lower : higher);"),
    ("a wrong tag is accepted", "softnic/seal/seal.c",
     "if (decrypt(s, bytes, size - SEAL_HEADER_BYTES)) {",
     "if (decrypt(s, bytes, size - SEAL_HEADER_BYTES) && false) {"),
    ("the header is not authenticated", "softnic/seal/seal.c",
     "text, NULL, NULL, text, size, at, SEAL_HEADER_BYTES, nonce, s->in.bytes);",
     "text, NULL, NULL, text, size, at, 0, nonce, s->in.bytes);"),
    ("a replay is accepted", "softnic/seal/seal.c",
     "&& !(*word_of(s, counter) & bit_of(counter));", ";"),
    ("a replay is accepted from before the window", "softnic/seal/seal.c",
     "return s->highest - counter < SEAL_WINDOW &&", "return"),
    ("the window forgets to clear a counter's bit", "softnic/seal/seal.c",
     "*word_of(s, i) &= ~bit_of(i);", ";"),
    ("a forged counter moves the window", "softnic/seal/seal.c",
     "uint64_t counter = get_counter(bytes + COUNTER_AT);",
     "uint64_t counter = get_counter(bytes + COUNTER_AT); if (may_come(s, counter) && "
     "counter > s->highest) s->highest = counter - 1;"),
    ("a used-up key goes on", "softnic/seal/seal.c",
     "if (s->sent == SEAL_PACKETS_MAX)", "if (false)"),
    ("an answer needs no proof", "softnic/seal/agree.c",
     "if (sodium_calls()->crypto_verify_32(a->peer_proof, m->proof))", "if (false)"),
    ("PLAIN counts without an offer", "softnic/seal/agree.c",
     "m->psn == a->send_psn &&\n\t    !memcmp(m->public, a->public, sizeof(a->public)))",
     "m->psn == a->send_psn)"),
    ("one packet in clear text decides an offer under way", "softnic/seal/agree.c",
     "\t\ta->hears_clear = true;", "\t\tdecide_clear(a);"),
    ("another device waits for all offers", "softnic/seal/agree.c",
     "\t\ta->hears_clear = true;", "\t\t;"),
    ("offers go on until a transport gives up", "softnic/seal/agree.c",
     "OFFERS_MAX = 9,", "OFFERS_MAX = 10,"),
    ("keys stay in freed memory", "softnic/seal/agree.c",
     "explicit_bzero(a, sizeof(*a));", ";"),
    ("keys of a given-up agreement stay in memory", "softnic/seal/agree.c",
     "explicit_bzero(&a->seal, sizeof(a->seal));", ";"),
    ("an offer counts whatever its PSN", "softnic/seal/agree.c",
     "if (m->psn != a->config.receive_psn)", "if (false)"),
    ("a new offer replaces the keys in use", "softnic/seal/agree.c",
     "if (a->state == AGREE_SEALED || !take_public(a, m))", "if (!take_public(a, m))"),
    ("the session names no public key", "softnic/seal/agree.c",
     "confirm);\n\tderive(a, shared, m->public, cipher, NAMES_SESSION, a->session);",
     "confirm);\n\tmemset(a->session, cipher, sizeof(a->session));"),
    ("clear text counts after the agreement", "softnic/seal/agree.h",
     "return a->state != AGREE_SEALED;", "return a;"),
    ("packets leave in clear text before the answer", "softnic/seal/agree.c",
     "return a->state == AGREE_OPEN && (a->has_candidate ||",
     "return false && (a->has_candidate ||"),
    ("a public key of small order counts", "softnic/seal/agree.c",
     "sodium_calls()->crypto_scalarmult(shared, a->secret, m->public))",
     "(sodium_calls()->crypto_scalarmult(shared, a->secret, m->public) & 0))"),
    ("the secret stays in memory", "softnic/seal/agree.c",
     "explicit_bzero(a->secret, sizeof(a->secret));", ";"),
    ("a lane forgets the window that it was lent", "core/lane/lane.c",
     "weir_window_unlend(e->window, WEIR_LANE_BYTES, WEIR_LANE_WRS);", ";"),
    ("a WR posted on a lane takes no room in the window", "core/lane/lane.c",
     "weir_window_claim(e->window, wr->length);", ";"),
    ("a WR posted on a lane takes no room on its channel", "core/lane/lane.c",
     "e->channels.channel[lane->channel].in_flight = lane->posted;", ";"),
    ("a request posted on a lane is not in the order", "core/lane/lane.c",
     "weir_backlog_add_posted(&e->backlog, wr->req);", "wr->req->wrs = 1;"),
    ("a lane keeps a WR that the engine has got", "core/lane/lane.c",
     "\t\tlane->wrs[i] = NULL;\n", ""),
    ("a busy engine lends its channels", "core/lane/lane.c",
     "weir_engine_is_idle(e) && weir_engine_is_quiet(e) &&", ""),
    ("a channel that is down is lent", "core/lane/lane.c",
     "!(weir_channels_pickable(&e->channels) >> channel & 1) || ", ""),
    ("the lanes get the whole window", "core/lane/lane.c", "w->bytes_max / 2 &&",
     "w->bytes_max &&"),
    ("a lane is used beside an earlier request", "core/lane/lane.h",
     "lane->is_lent && !weir_inbox_may_have(inbox);", "lane->is_lent && inbox;"),
    ("a refused claim keeps its first pages", "core/lane/claims.c",
     "\t\t\tgive_pages(c, begin, page, modifies);\n", ""),
    ("a claim leaves out the last page", "core/lane/claims.c",
     "uint64_t end = ((first + (length - 1)) >> WEIR_CLAIMS_PAGE_SHIFT) + 1;",
     "uint64_t end = (first + (length - 1)) >> WEIR_CLAIMS_PAGE_SHIFT;"),
    ("a reader ignores a writer", "core/lane/claims.c", "while (found != WEIR_CLAIMS_WRITER) {",
     "for (;;) {"),
    ("a writer ignores readers", "core/lane/claims.c",
     "uint32_t found = modifies ? 0 : weir_atomic_load(word);",
     "uint32_t found = weir_atomic_load(word);"),
    ("a member is promoted before all volumes are there", "core/pool/coordinator.c",
     "m->synced < s->has_data ||", ""),
    ("a member is promoted by an old map", "core/pool/coordinator.c",
     "if (s->group.stored > s->map->revision)", "if (false)"),
    ("the last member leaves for a report", "core/pool/coordinator.c",
     "!needed && serving == s->group.scheme.data", "false"),
    ("a donor that starts again keeps its place", "core/pool/coordinator.c",
     "return incarnation && incarnation != m->incarnation;", "return !incarnation && false && m;"),
    ("a group changes under its old version", "core/pool/coordinator.c",
     "\ts->group.version++;\n", ""),
    ("a drained member stays beside its successor", "core/pool/coordinator.c",
     "if (i != index && s->group.member[i].shard == shard &&", "if (false &&"),
    ("a drained member leaves at once", "core/pool/coordinator.c",
     "set_member(s, is_serving ? s->group.nr_members : i,", "set_member(s, i,"),
    ("nobody waits for a donor that may return", "core/pool/coordinator.c",
     "s->now_ns < s->c->since_ns[s->number] + s->map->replace_ms * NS_PER_MS;", "false;"),
    ("a new leader judges at once", "core/pool/coordinator.c",
     "c->judges_ns = now_ns + lease_ms * NS_PER_MS / 2;", "c->judges_ns = 0 * lease_ms * now_ns;"),
    ("lost data is replaced by empty memory", "core/pool/coordinator.c",
     "if (weir_pool_group_is_lost(&s->group) && s->has_data)\n\t\treturn;", ";"),
    ("an earlier membership counts as synced", "core/pool/coordinator.c",
     ".joined = s->group.version + 1,", ".joined = 1,"),
    ("an incarnation that is out comes back", "core/pool/coordinator.c",
     "return s->map->donor[m->donor].incarnation == m->incarnation;", "return false;"),
    ("two members share a domain", "core/pool/placement.c",
     "!domain_is_taken(map, group, replaced, donor);", "true;"),
    ("a draining donor gets members", "core/pool/placement.c",
     " && !donor->is_draining &&", " &&"),
    ("load is not balanced", "core/pool/placement.c", "if (x != y)", "if (false)"),
    ("pairs are not balanced", "core/pool/placement.c",
     "if (a->together != b->together)", "if (false)"),
    ("memory does not count", "core/pool/placement.c",
     "(map->donor[i].bytes >> LOAD_UNIT_SHIFT) + 1", "1"),
    ("a serving incarnation restarts", "core/pool/map.c",
     " &&\n\t       !weir_pool_map_is_serving(map, donor, incarnation);", ";"),
    ("an outcast serves on elsewhere", "core/pool/coordinator.c",
     "c->is_outcast[group->member[j].donor] = true;", ";"),
    ("extents of a round share a group", "core/pool/map.c",
     "(start + extent) % table->count", "(start + extent / 2) % table->count"),
    ("any incarnation is present", "core/pool/map.c",
     "map->donor[member->donor].incarnation == member->incarnation;",
     "map->donor[member->donor].incarnation;"),
    ("reads pass writes", "core/engine/order.c",
     "n->blockers += n->modifies || other->modifies;", "n->blockers += n->modifies;"),
    ("ranges that share their ends do not conflict", "core/engine/order.c",
     "node->last = first + length - 1;",
     "node->last = first + length - 1 - (length > 512 ? 512 : 0);"),
    ("an earlier request is freed by a later one", "core/engine/order.c",
     "other->seq < node->seq || !", "!"),
    ("the tree forgets how far it reaches", "core/engine/order.c",
     "n->subtree_last = n->right->subtree_last;", "(void)n;"),
    ("a range that begins in the previous bucket is not found", "core/engine/order_hash.h",
     "first -= first > 0;",
     ";"),
    ("a range that begins in the next bucket is not found", "core/engine/order_hash.h",
     "*last = (n->last + (n->last < UINT64_MAX)) >> WEIR_ORDER_HASH_SHIFT;",
     "*last = n->last >> WEIR_ORDER_HASH_SHIFT;"),
    ("a range longer than a bucket goes into the hash", "core/engine/order_hash.h",
     "n->last - n->first < WEIR_ORDER_HASH_BYTES && ", ""),
    ("a crowded bucket still takes requests", "core/engine/order_hash.h",
     " && looks < WEIR_ORDER_HASH_CHAIN_MAX",
     ""),
    ("a request in the hash is never moved to the tree", "core/engine/order.c",
     "weir_order_hash_remove(o, other);\n\t\t\ttree_insert(o, other, find_link(o, other));", ";"),
    ("a request that overlaps the tree goes into the hash", "core/engine/order.c",
     " || (o->nr_overlapped && touches_tree(o, n))", ""),
    ("a removed node stays the rightmost", "core/engine/order.c",
     "o->rightmost = tree_prev(n);", ";"),
    ("a request is done after the first of its parts", "core/engine/backlog.c",
     "if (req->wrs || req->in_doubt ||", "if (req->in_doubt ||"),
    ("a lost write blocks no other request", "core/engine/backlog.c",
     "if (req->wrs || req->in_doubt ||", "if (req->wrs ||"),
    ("a lost write ends at its deadline", "core/engine/backlog.c",
     "if (!req->wrs && !req->in_doubt)", "if (!req->wrs)"),
    ("a report on one channel settles all channels", "core/engine/backlog.c",
     "req->in_doubt &= ~(1u << channel);", "req->in_doubt = 0;"),
    ("a request is repeated although it must not be", "core/engine/backlog.c",
     "if (!may_repeat && ",
     "if (0 && "),
    ("only a reset leaves a request in doubt", "core/engine/engine.c",
     "status != -ENOTCONN && status != -EACCES",
     "status == -ECONNRESET"),
    ("a barrier does not wait", "core/engine/backlog.c",
     "if (b->live && (req->op", "if (0 && (req->op"),
    ("a cancelled barrier lets the others through", "core/engine/backlog.c",
     "|| req->epoch != b->epoch))", "))"),
    ("an unposted fragment is sent from the start of the request", "core/engine/engine.c",
     "weir_backlog_unpost(&e->backlog, req, wr->offset);",
     "weir_backlog_unpost(&e->backlog, req, 0);"),
    ("a hole is repaired by sending the whole request", "core/engine/engine.c",
     "} else if (is_idempotent(req)) {",
     "} else if (true) {"),
    ("a retry begins at the failed fragment", "core/engine/backlog.c",
     "req->posted = 0;\n\treq->state",
     "req->state"),
    ("a sent request ends as never sent", "core/engine/backlog.c",
     "sent ? -ECONNRESET : -ENOTCONN", "-ENOTCONN"),
    ("writes that are not exclusive are repeated", "core/engine/engine.c",
     "(req->op == WEIR_OP_WRITE && req->exclusive)", "req->op == WEIR_OP_WRITE"),
    ("atomics are repeated", "core/engine/engine.c",
     "(req->op == WEIR_OP_WRITE && req->exclusive)", "req->exclusive"),
    ("one request's error fails the whole merged WR", "core/engine/engine.c",
     "return status == -EACCES ||",
     "return"),
    ("a refused request is merged again", "core/engine/merge.c", " && !req->no_merge &&", " &&"),
    ("only the first of a merged WR is done", "core/engine/engine.c", "next = req->merge_next;",
     "next = NULL;"),
    ("a blocked request is merged", "core/engine/merge.c",
     "return req->state == WEIR_REQ_READY &&", "return"),
    ("a partly posted request is merged", "core/engine/merge.c", " && !req->posted &&", " &&"),
    ("reads and writes are merged", "core/engine/merge.c", "req->op != m->first->op ||", ""),
    ("a nearby request counts as a neighbour", "core/engine/merge.c",
     "(after ? node->first : node->last) == byte &&", ""),
    ("the request before is appended after", "core/engine/merge.c", "if (after) {", "if (true) {"),
    ("a merged WR knows no bounds", "core/engine/merge.c",
     "req->length <= limits->bytes_max - m->bytes &&", ""),
    ("a merged WR has too many pieces", "core/engine/merge.c",
     "m->nr_sge + req->nr_sge - joins <= limits->sge_max", "true"),
    ("separate pieces are joined", "core/engine/fragment.h",
     "a->addr + a->length == b->addr && ", ""),
    ("pieces of two registrations are joined", "core/engine/fragment.h", " && a->lkey == b->lkey",
     ""),
    ("only one neighbour is found", "core/engine/merge.c",
     "while (m->last->order.last != UINT64_MAX &&",
     "if (m->last->order.last != UINT64_MAX &&"),
    ("neighbours before the request are not found", "core/engine/merge.c",
     "while (m->first->order.first && add_neighbour_on(m, order, limits, false))", "while (0)"),
    ("merging ignores that it is off", "core/engine/batch.c", "if (e->merge && ", "if ("),
    ("a chain ignores its limit", "core/engine/batch.c", "b->count < e->chain_max",
     "b->count < WEIR_BATCH_MAX"),
    ("a completed WR keeps its window space", "core/engine/engine.c",
     "weir_window_give(e->window, wr->length);", ""),
    ("no waiter is woken", "core/engine/engine.c",
     "out->type = WEIR_ACTION_WAKE;", "return false;"),
    ("a waiter keeps its turn", "core/engine/batch.c", "weir_window_leave(&e->waiter);", ";"),
    ("a probe without room is awaited for ever", "core/engine/batch.c",
     "weir_path_abandon_probe(e->selector);", ";"),
    ("the window lets one more through", "core/sched/window.h", "w->wrs < w->wrs_max",
     "w->wrs <= w->wrs_max"),
    ("a limit below the bytes in flight does not hold", "core/sched/window.h",
     "w->bytes + bytes <= w->bytes_max", "bytes <= w->bytes_max - w->bytes"),
    ("a policy exceeds the largest window", "core/sched/window.c",
     "w->bytes_max = limit < w->bytes_top ? limit : w->bytes_top;", "w->bytes_max = limit;"),
    ("a policy goes below the smallest window", "core/sched/window.c",
     "limit = w->bytes_min;", ";"),
    ("a channel is overfilled", "core/engine/batch.c",
     "weir_channels_room(&e->channels, b->channel) &&", "true &&"),
    ("a write that may be unloaded takes the fast path", "core/engine/fastpath.h",
     " &&\n\t       (!e->selector || req->op == WEIR_OP_READ)", ""),
    ("a fast-path request takes no room on its channel", "core/engine/fastpath.h",
     "e->channels.channel[channel].in_flight = 1;", ""),
    ("a request takes the fast path beside others", "core/engine/fastpath.h",
     "weir_engine_is_idle(e) && ", ""),
    ("a completed fast-path request keeps its window space", "core/engine/fastpath.h",
     "weir_window_give(e->window, wr->length);", ";"),
    ("a later submit does not see the fast-path request", "core/engine/engine.c",
     "weir_fastpath_demote(e);\n\tweir_window_tick(e->window, now_ns);\n\tif (", "if ("),
    ("a fast-path request is not demoted on failure", "core/engine/engine.c",
     "weir_fastpath_demote(e);\n\tweir_trace_note", "weir_trace_note"),
    ("a fast-path request has no deadline", "core/engine/engine.c",
     "weir_fastpath_demote(e);\n\tweir_window_tick(e->window, now_ns);\n\twhile", "while"),
    ("a fast-path request in flight is canceled", "core/engine/engine.c",
     "weir_fastpath_demote(e);\n\tif (req->wrs", "if (req->wrs"),
    ("a fast-path request passes the waiters for the window", "core/sched/window.h",
     "if (!weir_list_is_empty(&w->waiters) || !weir_window_fits(w, bytes))",
     "if (!weir_window_fits(w, bytes))"),
    ("a fast-path request needs no window space", "core/sched/window.h",
     "if (!weir_list_is_empty(&w->waiters) || !weir_window_fits(w, bytes))",
     "if (!weir_list_is_empty(&w->waiters))"),
    ("a fast-path request is never fragmented", "core/engine/fastpath.h",
     " && req->length <= e->fragment_bytes", ""),
    ("a failed channel is used again", "core/engine/channel.c",
     "\tc->up &= ~(1u << number);\n\tc->broken |=", "\tc->broken |="),
    ("deadlines are forgotten", "core/engine/deadline.c",
     "deadlines) > now_ns ||", "deadlines) != now_ns ||"),
    ("a posted request can be canceled", "core/engine/engine.c",
     "if (req->wrs || req->sent ||", "if ("),
    ("a completed stream WR stays counted", "core/engine/engine.c",
     "e->streaming -= wr->in_stream;", ""),
    ("a request waits for a stream that has nothing in flight", "core/engine/batch.c",
     "e->streaming >= WEIR_STREAM_WRS && ", ""),
    ("a fragment loses its offset in local memory", "core/engine/fragment.c",
     "piece.addr += offset;", ""),
    ("a request without a channel left never ends", "core/engine/engine.c",
     "any |= weir_backlog_end_stranded(&e->backlog, &e->backlog.ready);", ";"),
    ("a member without quantum is served", "core/sched/drr.c", "if (m->left > 0)",
     "if (m->left > -(1 << 20))"),
    ("a flow's debt is forgiven", "core/sched/drr.c", "m->left += quantum_of_member(m, unit);",
     "m->left = quantum_of_member(m, unit);"),
    ("a member that leaves and returns gets a new quantum", "core/sched/drr.c",
     "if (m->round < t->round) {",
     "if (true) {"),
    ("weights do nothing", "core/sched/drr.c", "return (int64_t)m->weight * unit", "return unit"),
    ("a flow spends its quantum in one go", "core/sched/drr.c",
     "weir_list_add_tail(m->round == t->round ?",
     "weir_list_add(m->round == t->round ?"),
    ("a member without room in flight loses its turn", "core/sched/drr.c",
     "if (!t->open && t->waiting)",
     "if (weir_list_is_empty(&t->current) && t->waiting)"),
    ("the low levels fill the wire", "core/sched/sched.c",
     "if (is_low_level(s, c) && !low_levels_have_room(s))", "if (false)"),
    ("the low levels have no segment for each flow", "core/sched/sched.c",
     "s->low_floor > s->low_bytes_max ? s->low_floor : s->low_bytes_max;", "s->low_bytes_max;"),
    ("the low levels begin a segment that has no room", "core/sched/sched.c",
     "s->low_bytes + s->low_segment <= most", "s->low_bytes < most"),
    ("a segment longer than the low levels' room never goes", "core/sched/sched.c",
     "return !s->low_bytes ||",
     "return"),
    ("completed bytes of low levels stay counted", "core/sched/sched.c",
     "s->low_bytes -= bytes;", ";"),
    ("an idle flow still competes", "core/sched/sched.c",
     "else if (!flow->wrs)\n\t\tflow_stops_competing(s, flow->bundle);", ";"),
    ("a flow that leaves with WRs in flight leaves twice", "core/sched/sched.c",
     "if (!flow->wrs)\n\t\tflow_stops_competing(s, bundle);\n\tweir_drr_leave",
     "flow_stops_competing(s, bundle);\n\tweir_drr_leave"),
    ("a flow has one work request too many", "core/sched/sched.c",
     "flow->wrs++;\n\tif (is_low_level(s, c))\n\t\ts->low_bytes += bytes;\n\tif (flow->wrs < c",
     "flow->wrs++;\n\tif (is_low_level(s, c))\n\t\ts->low_bytes += bytes;\n\tif (flow->wrs <= c"),
    ("a blocked flow is not queued again", "core/sched/sched.c",
     "if (flow->turn.is_ready)\n\t\tflow_enqueue(c, flow);\n\telse", "if (!flow->turn.is_ready)"),
    ("a tenant has as much as its flows", "core/sched/sched.c",
     "weir_drr_charge(&c->bundles, &bundle->turn, cost_of(c, bytes), unit_of(c));", ";"),
    ("a bundle that may not send holds up the others", "core/sched/sched.c",
     "bundle_leave(s, bundle);\n\tbundle_set_paused", "bundle_set_paused"),
    ("a bundle that may not send does", "core/sched/sched.c", "bundle_set_paused(s, bundle, true);",
     ";"),
    ("a paused bundle has room", "core/sched/sched.c",
     "if (bundle->is_paused || !is_low_level(s, c))", "if (!is_low_level(s, c))"),
    ("a bundle that may send again does not", "core/sched/sched.c",
     "bundle_join(s, c, bundle);\n\tbundle_enqueue(c, bundle);", ";"),
    ("a flow that leaves still blocks its bundle", "core/sched/sched.c",
     "\telse\n\t\tbundle_enqueue(c, bundle); /*", "\t/*"),
    ("a member that moves gets a new quantum", "core/sched/drr.c",
     "m->round < from->round ? 0 : to->round + (m->round - from->round);", "0;"),
    ("a move resets the class", "core/sched/sched.c",
     "c->passed_bytes = before.passed_bytes;", ";"),
    ("WRs in flight do not move with their flow", "core/sched/sched.c",
     "flow_stops_competing(s, from);\n\t\tflow_starts_competing(s, bundle);", ";"),
    ("a low level starves", "core/sched/sched.c", "return class_is_starved(a);", "return false;"),
    ("a served class still counts as starved", "core/sched/sched.c",
     "c->passed_bytes = 0;\n\tc->share +=", "c->share +="),
    ("levels are ignored", "core/sched/sched.c", "return a->config.level == b->config.level && ",
     "return "),
    ("classes share equally", "core/sched/sched.c", "SHARE_SHIFT) / c->config.weight",
     "SHARE_SHIFT)"),
    ("a class that was away has a claim", "core/sched/sched.c", "if (c->share < share)",
     "if (false)"),
    ("a class that was away has a debt", "core/sched/sched.c",
     "return least != UINT64_MAX ? least : most;",
     "return least != UINT64_MAX ? least : 0;"),
    ("turns are counted in bytes", "core/sched/sched.c",
     "if (c->config.policy == WEIR_SCHED_ROUND_ROBIN)", "if (false)"),
    ("a class without room is chosen", "core/sched/sched.c", "!(classes & 1u << i) ||", ""),
    ("levels that fall are accepted", "core/sched/sched.c",
     "(i && configs[i].level < configs[i - 1].level)", "false"),
    ("a request waits for company", "core/engine/batch.c",
     "channel = 0 };\n\tint rc = 0;\n\n\tif (",
     "channel = 0 };\n\tint rc = 0;\n\n\tif (e->backlog.live == 1)\n\t\treturn false;\n\tif ("),
    ("the unload channel's buffer is overfilled", "core/engine/batch.c",
     "|| weir_channels_room(&e->channels, e->unload))", "|| true)"),
    ("offloaded and unloaded writes share a chain", "core/engine/batch.c",
     "(b->channel == e->unload) == ((path & WEIR_PATH_UNLOAD) != 0)", "true"),
    ("reads are unloaded", "core/engine/batch.c", "m->first->op == WEIR_OP_WRITE &&", "true &&"),
    ("parts are unloaded", "core/engine/batch.c",
     "(m->nr_reqs > 1 || m->first->length == m->bytes)",
     "true"),
    ("large writes are unloaded", "core/engine/batch.c",
     "m->bytes <= e->selector->config.bytes_max &&", ""),
    ("too many pieces are unloaded", "core/engine/batch.c", "m->nr_sge <= WEIR_UNLOAD_SGE_MAX &&",
     ""),
    ("the channel that unloads is picked for all", "core/engine/channel.h",
     "return c->up & ~c->reserved;", "return c->up;"),
    ("a channel is picked to which a thread posts", "core/engine/channel.h",
     "return weir_channels_common(c) & ~c->busy;", "return weir_channels_common(c);"),
    ("messages pass a thread that posts to their channel", "core/engine/channel.h",
     "return (c->up & ~c->busy) >> number & 1 ?", "return c->up >> number & 1 ?"),
    ("all wait for a channel that only unloads", "core/engine/channel.h",
     "return (c->up | c->broken) & ~c->reserved;", "return c->up | c->broken;"),
    ("a thread's CPU time is not counted", "core/unload/cpu_budget.h",
     "c->kept_ns -= (int64_t)(cpu_ns - c->cpu_ns);", ""),
    ("a thread that slept may burn for as long", "core/unload/cpu_budget.h",
     "if (c->kept_ns > (int64_t)share_ns)", "if (false)"),
    ("the threshold only rises", "core/unload/page_heat.c", "while (p->threshold > 1 &&",
     "while (false &&"),
    ("the threshold only falls", "core/unload/page_heat.c",
     "while (p->hot > p->room)", "while (false)"),
    ("a hot page never cools", "core/unload/page_heat.c", "(uint8_t)(value - (value + 3) / 4)",
     "value"),
    ("the cursor never hurries", "core/unload/page_heat.c", "if (p->threshold > THRESHOLD_HIGH)",
     "if (false)"),
    ("lines that are empty are not passed", "core/unload/page_heat.c", "counter % LINE ? 0 :",
     "true ? 0 :"),
    ("a line with a nonzero counter is skipped", "core/unload/page_heat.c",
     "if (!count && counters_are_empty(p, counter, LINE)) {", "if (!count) {"),
    ("a line's first nonzero counter is not noted", "core/unload/page_heat.c",
     "if (!p->counters[counter])",
     "if (false)"),
    ("a sketch takes the higher count", "core/unload/page_heat.c",
     "p->counters[a] < p->counters[b] ?",
     "p->counters[a] > p->counters[b] ?"),
    ("a sketch never begins", "core/unload/page_heat.c", "if (!p->is_sketch && p->last",
     "if (false && p->last"),
    ("writes behind a refused write are copied", "core/unload/unload_rx.c", "if (c->is_refused)",
     "if (false)"),
    ("a waiting initiator gets no return", "core/unload/unload_rx.c", "return !more ||", "return"),
    ("a return is repeated", "core/unload/unload_rx.c", "c->returned = c->seen;", ";"),
    ("reports need no room", "core/unload/unload_rx.c", "c->in_flight >= c->slots ||", ""),
    ("no report asks for a completion", "core/unload/unload_rx.c",
     "bool is_signalled = ++c->unsignalled >= signal_every(c);", "bool is_signalled = false;"),
    ("a report of writes never sent is believed", "core/unload/unload_slots.h",
     "if (count > new_max)", "if (false)"),
    ("a report is counted twice", "core/unload/unload_slots.h", "s->done = done;", ";"),
    ("all sends ask for a completion", "core/unload/unload_slots.h",
     "*is_signalled = ++s->unsignalled >= weir_unload_slots_signal_every(s);",
     "*is_signalled = true;"),
    ("a cache has room for all pages", "core/unload/page_heat.h", "reach->entries -= kept;", ";"),
    ("huge pages are not counted", "core/unload/path.c", "if (!(r->draw >> SAMPLE_SHIFT))",
     "if (false)"),
    ("hints are ignored", "core/unload/path.c", "if (hint != WEIR_PATH_HINT_NONE)", "if (false)"),
    ("a paused thread still copies", "core/unload/path.c", "|| now_ns < r->paused_ns)", ")"),
    ("a trial counts writes without a time", "core/unload/path.c", "if (t->to_send && is_timed)",
     "if (t->to_send)"),
    ("all trials say that it pays", "core/unload/path.c",
     "return faster * PAIRS_OF > t->taken[0]", "return true || t->taken[0]"),
    ("a trial is repeated as often as ever", "core/unload/path.c", "t->rest_next *= 2;", ";"),
    ("a verdict needs no samples", "core/unload/path.c",
     "if (t->taken[0] >= TAKEN_MIN && t->taken[1] >= TAKEN_MIN)", "if (true)"),
    ("the price of a wake-up stands for its duration", "core/poll/poll.c",
     "ns < p->idle_time->wake_ns ? ns : p->idle_time->wake_ns;",
     "ns < p->idle_time->price_ns ? ns : p->idle_time->price_ns;"),
    ("empty polls are free", "core/poll/poll.c", "p->credit -= (int64_t)(passed_ns * 100);", ";"),
    ("retries need not be consecutive", "core/poll/poll.c", "p->retries = 0;", ";"),
    ("a poller that always sleeps never explores", "core/poll/idle_time.c",
     "g->exploring = ++g->idles % EXPLORE_EVERY == 0 &&", "g->exploring = false &&"),
    ("a bitmap read covers slots committed after it", "core/slots/slot_bitmap.c",
     "for (; o->arrived < o->covered; o->arrived++) {",
     "for (; o->arrived < o->committed; o->arrived++) {"),
    ("a slot in flight can be acquired", "core/slots/slot_bitmap.c",
     "| o->held[word] | o->in_flight[word]) &",
     "| o->held[word]) &"),
    ("a committed slot counts as arrived at once", "core/slots/slot_bitmap.c",
     "o->in_flight[slot / 64] |= mask_of(slot);", "flip_bits(&o->bits[slot / 64], mask_of(slot));"),
    ("of two words only one is flipped", "core/slots/slot_bitmap.c",
     "if (mask && slot / 64 != word) {", "if (false) {"),
    ("slots beyond the last are free", "core/slots/slot_bitmap.c",
     "return left >= 64 ? ~0ull : (1ull << left) - 1;", "return ~0ull;"),
    ("a peer may free a slot that is not full", "core/slots/slot_bitmap.c",
     "if (changed & ~full_slots(o, word))", "if (false)"),
    ("a notified slot flips its bitmap bit, too", "core/slots/slot_bitmap.c",
     "flip_arrived(o, o->notified);", "flip_arrived(o, o->bits);"),
    ("a notified slot counts as seen in the bitmap", "core/slots/slot_bitmap.c",
     "in->notified[slot / 64] ^= mask_of(slot);", "in->seen[slot / 64] ^= mask_of(slot);"),
    ("a peer may fill a full slot", "core/slots/slot_bitmap.c",
     "if (changed & (filled_slots(in, word) | ~valid_slots(in->slots, word)))", "if (false)"),
    ("a found slot is found again", "core/slots/slot_bitmap.c",
     "filled_slots(in, in->word) & ~in->held[in->word]))", "filled_slots(in, in->word)))"),
    ("freed slots are not counted", "core/slots/slot_bitmap.c", "o->free += freed;", ";"),
    ("a late bitmap read undoes the one before", "core/slots/slot_bitmap.c",
     "in->seen[word] ^= changed;\n\t\tfound", "found"),
    ("a read that finds a single slot does not back off", "core/slots/moderation.c",
     "if (p->interval_ns * p->batch <= p->gap_ns_max)", "if (false)"),
    ("the gap between reads does not grow", "core/slots/moderation.c",
     "return p->gap_ns < BACKOFF_NS_MAX / 2 ? 2 * p->gap_ns : BACKOFF_NS_MAX;",
     "return p->gap_ns;"),
    ("a backed-off poller does not wait for a batch", "core/slots/moderation.c",
     "if (p->backs_off || ",
     "if ("),
    ("trials stay rare after company", "core/slots/slot_poll.c", "c->trials = 0;", ";"),
    ("a poller that requested a notice reads on", "core/slots/slot_poll.c",
     "if (want == WEIR_SLOT_POLL_NEWS && weir_slot_poll_has_requested(l, want, owes))",
     "if (false)"),
    ("a sleeping peer is read for free slots", "core/slots/slot_poll.c",
     "(!request.number || request.notices_left < WEIR_SLOT_POLL_NOTIFIES_MAX)", "true"),
    ("an empty read is repeated at once", "core/slots/slot_poll.c",
     "freed ? 2 * o->slots : o->free;", "2 * o->slots;"),
    ("a busy peer gets a few slots at once", "core/slots/slot_poll.c", "if (unshown < had)",
     "if (false)"),
    ("a peer that requests notices gets one for each slot", "core/slots/slot_poll.c",
     "c->is_sparse = c->expected < COALESCE_MIN;", "c->is_sparse = true;"),
    ("a sparse peer stays sparse", "core/slots/slot_poll.c",
     "c->is_sparse = false;", ";"),
    ("trials of coalescing do not become rarer", "core/slots/slot_poll.c",
     "c->trials += c->trials < TRIALS;", ";"),
    ("large messages wait to be coalesced", "core/slots/slot_poll.c",
     " l->put_bytes - l->shown_bytes >= NOTIFY_BYTES ||", ""),
    ("a read does not count bytes as shown", "core/slots/slot_poll.c",
     "l->shown_bytes = l->covered_bytes;", ";"),
    ("a notice does not count bytes as shown", "core/slots/slot_poll.c",
     "\tl->shown_bytes = l->put_bytes;\n", ""),
    ("the average message size never changes", "core/slots/slot_poll.c",
     "(7 * l->each_bytes + bytes) / 8",
     "l->each_bytes"),
    ("a peer that does not wait is notified", "core/slots/slot_poll.h",
     "return request.notices_left && weir_slot_poll_unshown(o) &&",
     "return weir_slot_poll_unshown(o) &&"),
    ("a notice leaves its slots to the next read", "core/slots/slot_bitmap.c",
     "o->covered = o->committed;\n\tflip_arrived(o, o->notified);",
     "flip_arrived(o, o->notified);"),
    ("a read without a waiter is timed", "core/slots/slot_poll.c",
     "if (now_ns - l->polled_ns > took_ns / 2 && took_ns > AT_ONCE_NS)", "if (false)"),
    ("an immediate read is not timed", "core/slots/slot_poll.c",
     " && took_ns > AT_ONCE_NS)", ")"),
    ("a sender without slots does not read", "core/slots/slot_poll.c",
     "(l->took_ns && now_ns - l->room.read_ns >= ROOM_READS * l->took_ns)", "false"),
    ("a request for notices never expires", "core/slots/slot_poll.c",
     "if (++l->notices - l->notices_before == WEIR_SLOT_POLL_NOTIFIES_MAX)", "if (false)"),
    ("words are stored in parts", "core/base/ordered_store.h",
     "while (addr % bytes || bytes > left)",
     "while (bytes > 1 && (addr % bytes || bytes > left || left < 8))"),
    ("words are stored beyond the end", "core/base/ordered_store.h", "addr % bytes || bytes > left",
     "addr % bytes"),
    ("a trial ends before its writes do", "core/unload/path.c",
     "if (!--r->trial.out && !r->trial.to_send)", "if (r->trial.out-- && !r->trial.to_send)"),
    ("a leaving replica goes before its successor is complete", "core/volume/extents_placement.c",
     "if (valid > v->replicas)",
     "if (valid >= v->replicas && choose_spare(v, extent)->leaves)"),
    ("another replica goes instead of the leaving one", "core/volume/extents_placement.c",
     "(!spare || !spare->leaves))", "!spare)"),
    ("a donor that reclaims memory is asked for more", "core/volume/extents_placement.c",
     "has_donor(v, extent, donor) || has_enough(v, donor) ||", "has_donor(v, extent, donor) ||"),
    ("a leaving replica gets no successor", "core/volume/extents_placement.c",
     "is_live(&extent->replica[slot]) && !extent->replica[slot].leaves;",
     "is_live(&extent->replica[slot]);"),
    ("a new replica inherits the leaving mark", "core/volume/extents_placement.c",
     "replica->leaves = false;", ";"),
    ("a leaving replica is filled further", "core/volume/extents_placement.c",
     "&& (replica->leaves || !valid))", "&& !valid)"),
    ("a spare place is used with too few replicas", "core/volume/extents_placement.c",
     "if (count_live(v, &v->extent[i]) < v->replicas)", "if (true)"),
    ("a replica without a source stays", "core/volume/extents_placement.c",
     "&& (replica->leaves || !valid))", "&& replica->leaves)"),
    ("an extent with data leaves first", "core/volume/extents_placement.c",
     "!extent->live == holds)", "!extent->live != holds)"),
    ("a replica that missed a write is believed", "core/volume/extents.c",
     "e->replica[slot].state = WEIR_REPLICA_STALE;", ";"),
    ("a write succeeds by a filling replica alone", "core/volume/extents.c",
     "has_it |= (keep & 1u << slot) && e->replica[slot].state == WEIR_REPLICA_VALID;",
     "has_it |= (keep & 1u << slot) && is_live(&e->replica[slot]);"),
    ("a write that failed leaves replicas that differ", "core/volume/extents.c",
     "keep = (uint8_t)(1u << choose_survivor(v, e, w->slots));", "keep = w->slots;"),
    ("a write that failed leaves no replica", "core/volume/extents.c",
     "keep = (uint8_t)(1u << choose_survivor(v, e, w->slots));", "keep = 0;"),
    ("a lost extent asks for memory", "core/volume/extents_placement.c",
     "if (weir_extents_is_lost(v, extent) || find_free_slot", "if (find_free_slot"),
    ("new memory is believed though it is empty", "core/volume/extents_placement.c",
     "extent->live ? WEIR_REPLICA_FILLING :", "false ? WEIR_REPLICA_FILLING :"),
    ("writes skip a filling replica", "core/volume/extents.c",
     "is_live(&e->replica[slot]) << slot",
     "(e->replica[slot].state == WEIR_REPLICA_VALID) << slot"),
    ("memory in use is given back", "core/volume/extents_placement.c",
     "if (replica->state != WEIR_REPLICA_STALE || replica->users ||",
     "if (replica->state != WEIR_REPLICA_STALE ||"),
    ("a replica moves while it is returned", "core/volume/extents_placement.c",
     "replica->users++; /* it stays", "; /* it stays"),
    ("memory is returned to a donor out of reach", "core/volume/extents_placement.c",
     " ||\n\t\t\t    !(donors >> replica->donor & 1))", ")"),
    ("a donor not told of a return counts as told", "core/volume/extents_placement.c",
     "if (is_returned)",
     "if (true)"),
    ("an extent at a slow donor is replaced", "core/volume/extents_placement.c",
     " || has_slow_donor(v, extent))", ")"),
    ("a slow donor is not waited for", "core/volume/extents_placement.c",
     " && !any_donor_is_slow(v) ?", " ?"),
    ("a donor has an extent twice", "core/volume/extents_placement.c",
     " ||\n\t\t    has_donor(v, extent, donor) ||", " ||"),
    ("an extent goes to a donor outside its group", "core/volume/extents_placement.c",
     "has_enough(v, donor) || !may_hold(extent, donor))", "has_enough(v, donor))"),
    ("memory joins an extent of another group", "core/volume/extents_placement.c",
     " ||\n\t\t    !may_hold(&v->extent[extent], place->donor) ||", " ||"),
    ("memory moves between groups", "core/volume/extents_placement.c",
     "if (v->extent[i].donors != v->extent[extent].donors)\n\t\t\tcontinue;", ""),
    ("a donor's memory joins an extent it already has", "core/volume/extents_placement.c",
     " ||\n\t\t    has_donor(v, &v->extent[extent], place->donor))", ")"),
    ("an extent with data gives its memory away", "core/volume/extents_placement.c",
     "v->extent[i].live ? 0 : weir_extents_count_valid(v, i);", "weir_extents_count_valid(v, i);"),
    ("memory moves while it is used", "core/volume/extents_placement.c",
     "if (valid <= most || !extent_is_unused(v, i))", "if (valid <= most)"),
    ("memory moves while it is copied to", "core/volume/extents_placement.c",
     "if (v->copy.state != WEIR_RESYNC_IDLE && v->copy.extent == extent)", "if (false)"),
    ("memory moves to where old memory is used", "core/volume/extents_placement.c",
     "if (!extent_is_unused(v, extent))\n\t\treturn -EAGAIN;", ""),
    ("a thin extent returns its memory during a write", "core/volume/extents_placement.c",
     "!extent_is_unused(v, i) || has_slow_donor", "has_slow_donor"),
    ("no reserve is kept", "core/volume/extents_placement.c", "reserve++ < v->reserve",
     "reserve++ < 0"),
    ("the reserve is not filled up", "core/volume/extents_placement.c",
     "weir_extents_count_valid(v, extent) || reserve;", "weir_extents_count_valid(v, extent);"),
    ("a written extent stays thin", "core/volume/extents.c", "e->thin = false;", ";"),
    ("a discarded page keeps its sum", "core/volume/extents.c",
     "e->sum[i] = WEIR_SUM_NOTHING;", ";"),
    ("a failed write revives a discarded page", "core/volume/extents.c",
     "*sum = is_fresh ? WEIR_SUM_NOTHING : WEIR_SUM_UNKNOWN;", "*sum = WEIR_SUM_UNKNOWN;"),
    ("a write that failed decides about a later one", "core/volume/extents.c",
     "if ((*sum & ~WEIR_SUM_FRESH) != w->sums[i])", "if (false)"),
    ("the last replica is dropped", "core/volume/extents.c",
     "replica->state == WEIR_REPLICA_VALID && weir_extents_count_valid(v, extent) > 1",
     "replica->state == WEIR_REPLICA_VALID"),
    ("a copy continues in replaced memory", "core/volume/extents_placement.c",
     "v->copy.state = WEIR_RESYNC_IDLE; /*", "; /*"),
    ("a copy overwrites what overtook it", "core/volume/extents.c",
     "copy->overtaken |= chunk_bits(copy, page, pages);", ";"),
    ("writes during a chunk's drain are not seen", "core/volume/extents.c",
     "if (copy->state != WEIR_RESYNC_IDLE && copy->extent == extent)",
     "if (copy->state > WEIR_RESYNC_DRAINING && copy->extent == extent)"),
    ("a chunk is read while older writes are under way", "core/volume/extents_resync.c",
     "if (e->writes[!e->phase]) {", "if (copy->page == v->pages && e->writes[!e->phase]) {"),
    ("a copy is believed before overtaking writes end", "core/volume/extents_resync.c",
     "if (e->writes[!e->phase]) {", "if (copy->page != v->pages && e->writes[!e->phase]) {"),
    ("a chunk that could not be written is believed", "core/volume/extents_resync.c",
     "} else if (!succeeded) {", "} else if (false) {"),
    ("a chunk that could not be read is passed over", "core/volume/extents_resync.c",
     "if (succeeded) {", "if (true) {"),
    ("a copy begins while writes of another are under way", "core/volume/extents_resync.c",
     "continue; /* of a copy", "; /* of a copy"),
    ("a copy uses its target unseen", "core/volume/extents_resync.c",
     "replica_of(v, copy->target)->users++;", ";"),
    ("a chunk that the disk cannot read is retried for ever", "core/volume/extents_resync.c",
     "\t\t\tforget_chunk(v);", "\t\t\t;"),
    ("a replica filled from the disk is returned", "core/volume/extents_placement.c",
     "return; /* the local disk is the source */", ";"),
    ("an extent on the disk alone refuses writes", "core/volume/extents_placement.c",
     "return weir_extents_is_local(v, extent) ? -EAGAIN : -EIO;", "return -EIO;"),
    ("the disk is believed though a page has changed", "core/volume/extents_local.c",
     "e->local[page / 64] &= ~(1ull << page % 64);", ";"),
    ("a push during the unlock is forgotten", "core/base/combine.h",
     "return !has_more && weir_inbox_is_empty(inbox);", "return !has_more;"),
    ("the rest of a chain is forgotten", "core/base/combine.h",
     "return !has_more && weir_inbox_is_empty(inbox);", "return weir_inbox_is_empty(inbox);"),
    ("a page changed during its write to disk counts as kept", "core/volume/extents_local.c",
     "if (local->overtaken >> i & 1)", "if (false)"),
    ("a page with an unknown sum counts as kept", "core/volume/extents_local.c",
     " && e->sum[page] != WEIR_SUM_UNKNOWN", ""),
    ("an extent skipped once is skipped for ever", "core/volume/extents_local.c",
     "local->passed = is_over ? 0 : local->passed;", ";"),
]

# Files where unit tests find more than the hunt; the fastest test comes first.
VOLUME = tuple(f"tests/core/volume/extents{name}_test.c"
               for name in ("", "_local", "_placement", "_world"))
ORDER = ("tests/core/engine/order_test.c",)
POOL = tuple(f"tests/core/pool/{name}_test.c" for name in ("map", "coordinator", "world"))
UNITS = {
    "core/engine/order.c": ORDER,
    "core/engine/order_hash.h": ORDER,
    "core/engine/batch.c": ("tests/core/unload/engine_unload_test.c",),
    "core/engine/channel.h": ("tests/core/engine/channel_test.c",),
    "core/engine/deadline.c": ("tests/core/engine/deadline_test.c",),
    "core/engine/engine.c": ("tests/core/engine/fastpath_test.c",),
    "core/engine/fastpath.h": ("tests/core/engine/fastpath_test.c",),
    "core/unload/path.c": ("tests/core/unload/path_test.c",),
    "core/unload/page_heat.c": ("tests/core/unload/path_test.c",),
    "core/unload/page_heat.h": ("tests/core/unload/path_test.c",),
    "core/base/ordered_store.h": ("tests/core/base/ordered_store_test.c",),
    "core/lane/claims.c": ("tests/core/lane/claims_test.c",),
    "core/lane/lane.c": ("tests/core/lane/lane_test.c",),
    "core/lane/lane.h": ("tests/core/lane/lane_test.c",),
    "core/link/call_table.c": ("tests/core/link/call_table_test.c",),
    "core/link/credit.c": ("tests/core/link/credit_test.c",),
    "softnic/seal/agree.c": ("tests/softnic/seal/agree_test.c",),
    "softnic/seal/agree.h": ("tests/softnic/seal/agree_test.c",),
    "softnic/seal/seal.c": ("tests/softnic/seal/seal_test.c",),
    "core/link/handshake.c": ("tests/core/link/handshake_test.c",),
    "core/poll/poll.c": ("tests/core/poll/poll_test.c",),
    "core/poll/idle_time.c": ("tests/core/poll/poll_test.c",),
    "core/unload/cpu_budget.h": ("tests/core/unload/umtt_test.c",),
    "core/unload/unload_rx.c": ("tests/core/unload/unload_rx_test.c",),
    "core/unload/unload_slots.h": ("tests/core/unload/unload_slots_test.c",),
    "core/sched/sched.c": ("tests/core/sched/sched_test.c",),
    "core/sched/window.h": ("tests/core/engine/fastpath_test.c",
                            "tests/core/sched/window_test.c"),
    "core/sched/drr.c": ("tests/core/sched/sched_test.c",),
    "core/slots/slot_bitmap.c": ("tests/core/slots/slot_bitmap_test.c",),
    "core/slots/slot_poll.c": ("tests/core/slots/slot_poll_test.c",),
    "core/slots/slot_poll.h": ("tests/core/slots/slot_poll_test.c",),
    "core/slots/moderation.c": ("tests/core/slots/moderation_test.c",),
    "core/volume/extents.c": VOLUME,
    "core/volume/extents_resync.c": VOLUME,
    "core/volume/extents_local.c": VOLUME,
    "core/volume/extents_placement.c": VOLUME,
    "core/pool/coordinator.c": POOL,
    "core/pool/map.c": POOL,
    "core/pool/placement.c": POOL,
}
# Files covered only by unit tests.
ONLY_BY_UNIT = (
    "softnic/seal/agree.c",
    "softnic/seal/agree.h",
    "softnic/seal/seal.c",
    "core/lane/claims.c",
    "core/lane/lane.c",
    "core/lane/lane.h",
    "core/pool/coordinator.c",
    "core/pool/map.c",
    "core/pool/placement.c",
    "core/unload/cpu_budget.h",
    "core/unload/unload_rx.c",
    "core/unload/unload_slots.h",
    "core/unload/path.c",
    "core/unload/page_heat.c",
    "core/unload/page_heat.h",
    "core/poll/poll.c",
    "core/poll/idle_time.c",
    "core/base/ordered_store.h",
    "core/sched/sched.c",
    "core/sched/drr.c",
    "core/slots/slot_bitmap.c",
    "core/slots/slot_poll.c",
    "core/slots/slot_poll.h",
    "core/slots/moderation.c",
    "core/volume/extents.c",
    "core/volume/extents_resync.c",
    "core/volume/extents_local.c",
    "core/volume/extents_placement.c",
)


def cpu_seconds():
    """CPU seconds used by all finished children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_broken(run):
    """Return whether a finished run reports a broken promise."""
    if run.returncode not in (HOLDS, BROKEN):
        raise RuntimeError(f"{run.args[0]} exits with {run.returncode}:\n{run.stdout}{run.stderr}")
    return run.returncode == BROKEN


def run_within(limit_s, *command):
    """Run a command with a limit on CPU time, not on wall time, because the machine may be busy."""
    return subprocess.run(["sh", "-c", 'ulimit -t "$0" && exec "$@"', str(limit_s), *command],
                          capture_output=True, text=True, timeout=LONG_S)


class Copy:
    """A copy of the core and its checkers, with one planted bug at a time.

    Objects of the clean core are kept. A file with a planted bug is compiled beside its clean
    object, and linked instead.
    """

    def __init__(self, source, cc, root):
        self.root = pathlib.Path(root)
        self.cc = [*cc, "-std=gnu11", "-O1", "-w", "-fPIC", "-D_GNU_SOURCE", f"-I{root}"]
        for part in ("core", "wire", "sim", "softnic/roce", "softnic/seal", "tests/core",
                     "tests/softnic/seal", "tests/support"):
            shutil.copytree(pathlib.Path(source) / part, self.root / part)
        self.core = [*sorted((self.root / "core").glob("*/*.c")),
                     *sorted((self.root / "wire").glob("*.c"))]
        self.hunt = [*sorted((self.root / "sim/hunt").glob("*.c")),
                     *sorted((self.root / "softnic/roce").glob("*.c")),
                     *(self.root / "sim/event" / name for name in ("event.c", "rng.c"))]
        self.seal = [*sorted((self.root / "softnic/seal").glob("*.c")),
                     self.root / "softnic/roce/packet.c"]
        self.units = [
            self.root / name
            for name in sorted({unit for units in UNITS.values() for unit in units})
        ]
        self.objects, self.needs = {}, {}
        for path in {*self.core, *self.hunt, *self.seal, *self.units}:
            self.objects[path] = path.with_suffix(".o")
            self.compile(path, self.objects[path], "-MD")
            self.needs[path] = path.with_suffix(".d").read_text().split()
        self.planted = {}

    def compile(self, path, to, *options):
        subprocess.run([*self.cc, *options, "-c", path, "-o", to], check=True)

    def object_of(self, path):
        """Return the object to link now. The first use of a planted file compiles the file."""
        if path in self.planted and not self.planted[path]:
            self.planted[path] = path.with_suffix(".planted.o")
            self.compile(path, self.planted[path])
        return self.planted.get(path) or self.objects[path]

    def link(self, sources, name, *options):
        program = self.root / name
        subprocess.run(
            [*self.cc, *map(self.object_of, sources), *options, "-o", program], check=True
        )
        return program

    def hunts(self, limit_s):
        """Return whether the hunt finds a broken promise. A crash or a hang counts."""
        program = self.link(self.core + self.hunt, "hunt")
        run = run_within(limit_s, program, "1", str(SEEDS))
        return run.returncode < 0 or is_broken(run)

    def unit_fails(self, limit_s, unit):
        """Return whether a unit test fails. A crash or a hang counts."""
        under_test = self.seal if unit.startswith("tests/softnic/seal") else self.core
        program = self.link([*under_test, self.root / unit], "unit", "-lcmocka")
        return run_within(limit_s, program).returncode != 0

    def checker_that_fails(self, limits_s, name):
        """Return the checker that finds the bug planted in the file @name, or None. The cheapest
        runs first.
        """
        if any(self.unit_fails(limits_s[unit], unit) for unit in UNITS.get(name, ())):
            return "unit test"
        if name in ONLY_BY_UNIT:
            return None
        return HUNT if self.hunts(limits_s[HUNT]) else None

    def finds(self, limits_s, name, line, planted):
        """Return the checker that finds a bug, or None. The copy is clean again afterwards."""
        path = self.root / name
        text = path.read_text()
        path.write_text(text.replace(line, planted))
        self.planted = {source: None for source, needs in self.needs.items() if str(path) in needs}
        by = self.checker_that_fails(limits_s, name)
        path.write_text(text)
        self.planted = {}
        return by


def check_patterns(root):
    for _, name, line, _ in BUGS:
        count = root.joinpath(name).read_text().count(line)
        if count != 1:
            sys.exit(f"{name}: '{line}' is there {count} times: bring this list up to date")


def limits_of_clean(copy):
    """Run each checker with nothing planted. Return the CPU seconds that it may use with a bug.

    One limit for all would be the hunt's, and each unit test that hangs would wait for it.
    """
    limits_s = {}
    for checker in [HUNT, *sorted({unit for units in UNITS.values() for unit in units})]:
        began_s = cpu_seconds()
        if copy.hunts(LONG_S) if checker == HUNT else copy.unit_fails(LONG_S, checker):
            sys.exit(f"{checker}: finds something with nothing planted")
        limits_s[checker] = SPARE_S + int(HANG * (cpu_seconds() - began_s))
    return limits_s


def search(copies, limits_s):
    """Return the bugs not found. Each copy takes the next bug when free."""
    free = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)

    def seek(bug):
        sentence, *planted = bug
        copy = free.get()
        try:
            by = copy.finds(limits_s, *planted)
        finally:
            free.put(copy)
        print(f"{sentence}: {f'found by the {by}' if by else 'MISSED'}", flush=True)
        return by

    with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
        return [bug for bug, found in zip(BUGS, pool.map(seek, BUGS)) if not found]


def main(source, cc):
    check_patterns(pathlib.Path(source))
    with tempfile.TemporaryDirectory() as folder:
        copies = [
            Copy(source, cc, f"{folder}/{number}") for number in range(len(os.sched_getaffinity(0)))
        ]
        return 1 if search(copies, limits_of_clean(copies[0])) else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
