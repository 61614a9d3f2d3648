/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Routes events to the other modules. Events only change state, so no event triggers another. The
 * consequences follow when the host pulls: barriers pass, stranded requests end, waiters get their
 * turn.
 */
#include "core/engine/engine.h"
#include "core/engine/batch.h"
#include "core/engine/deadline.h"
#include "core/engine/fastpath.h"
#include "core/engine/stall.h"
#include "core/sched/window_classes.h"

static bool config_is_valid(const struct weir_engine_config *config)
{
	return config->fragment_bytes >= WEIR_FRAGMENT_BYTES_MIN && config->chain_max &&
	       config->chain_max <= WEIR_BATCH_MAX && config->sge_max >= WEIR_SGE_MAX &&
	       config->sge_max <= WEIR_WR_SGE_MAX;
}

int weir_engine_init(struct weir_engine *e, const struct weir_engine_config *config,
		     struct weir_window *window, struct weir_wr *wrs, uint32_t nr_wrs)
{
	uint32_t i;

	if (!nr_wrs || !config_is_valid(config) || config->fragment_bytes > window->bytes_min)
		return -EINVAL;
	e->window = window;
	for (i = 0; i < WEIR_WINDOW_CLASSES; i++) {
		weir_window_waiter_init(&e->waiters[i]);
		e->waiters[i].nr = (uint8_t)i;
	}
	e->fragment_bytes = config->fragment_bytes;
	e->chain_max = config->chain_max;
	e->sge_max = config->sge_max;
	e->merge = config->merge;
	e->stall_timeout_ns = config->stall_timeout_ns;
	e->stall_check_ns = WEIR_NEVER;
	e->progress_ns = 0;
	e->wrs = wrs;
	e->nr_wrs = nr_wrs;
	e->free_wrs = NULL;
	for (i = nr_wrs; i-- > 0;) {
		wrs[i].req = NULL;
		wrs[i].next = e->free_wrs;
		e->free_wrs = &wrs[i];
	}
	weir_channels_init(&e->channels);
	e->fastpath = NULL;
	weir_backlog_init(&e->backlog, config->seed);
	e->selector = NULL;
	e->unload = WEIR_CHANNEL_NONE;
	e->unload_full = 0;
	e->streaming = 0;
	e->waits = 0;
	e->trace = NULL;
	return 0;
}

void weir_engine_trace(struct weir_engine *e, struct weir_trace *trace)
{
	e->trace = trace;
}

void weir_engine_unload(struct weir_engine *e, struct weir_path_selector *selector,
			uint16_t channel)
{
	e->selector = selector;
	e->unload = channel;
	e->channels.reserved = 1u << channel;
}

void weir_engine_join_classes(struct weir_engine *e, struct weir_window_classes *classes,
			      enum weir_window_class class, uint16_t weight)
{
	unsigned int i;

	e->backlog.class = (uint8_t)class;
	for (i = 0; i < WEIR_WINDOW_CLASSES; i++)
		weir_window_classes_set(classes, &e->waiters[i], (enum weir_window_class)i, weight);
	weir_window_classes_join(e->window, classes);
}

static void trace_channel(struct weir_engine *e, enum weir_trace_event event, uint16_t channel)
{
	weir_trace_note(e->trace, e->window->now_ns,
			&(struct weir_trace_record){ .event = event, .channel = (uint8_t)channel });
}

int weir_engine_channel_up(struct weir_engine *e, uint16_t channel, uint32_t wrs_max)
{
	int rc = weir_channels_up(&e->channels, channel, wrs_max);

	if (rc)
		return rc;
	trace_channel(e, WEIR_TRACE_UP, channel);
	weir_backlog_resolve_doubt(&e->backlog, channel, true);
	return 0;
}

void weir_engine_channel_broken(struct weir_engine *e, uint16_t channel)
{
	trace_channel(e, WEIR_TRACE_BREAK, channel);
	weir_channels_broken(&e->channels, channel);
}

void weir_engine_channel_down(struct weir_engine *e, uint16_t channel)
{
	trace_channel(e, WEIR_TRACE_DOWN, channel);
	weir_channels_down(&e->channels, channel);
	weir_backlog_resolve_doubt(&e->backlog, channel, false);
}

static bool req_has_channel(const struct weir_engine *e, const struct weir_req *req)
{
	if (req->op == WEIR_OP_BARRIER)
		return true;
	if (req->op == WEIR_OP_SEND)
		return weir_channels_is_up(&e->channels, 0);
	return weir_channels_any_left(&e->channels);
}

int weir_engine_submit(struct weir_engine *e, struct weir_req *req, uint64_t now_ns)
{
	int rc = weir_req_is_plain(req) ? 0 : weir_request_check(req, e->fragment_bytes);

	weir_fastpath_demote(e);
	weir_window_tick(e->window, now_ns);
	if (rc)
		return rc;
	if (req->deadline_ns <= now_ns)
		return -ETIMEDOUT;
	if (!req_has_channel(e, req))
		return -ENOTCONN;
	weir_backlog_add(&e->backlog, req);
	return 0;
}

/* Whether executing @req twice has the effect of executing it once. */
static bool is_idempotent(const struct weir_req *req)
{
	return req->op == WEIR_OP_READ || (req->op == WEIR_OP_WRITE && req->exclusive);
}

/*
 * Whether a WR was refused, or named invalid local memory. If requests share the WR, one is at
 * fault and the rest may be innocent.
 */
static bool is_refusal(int status)
{
	return status == -EACCES || status == -EFAULT;
}

/* A refused change has no effect later. After any other error it may still be under way. */
static bool may_be_in_doubt(const struct weir_req *req, int status)
{
	return weir_req_modifies(req) && status != -ENOTCONN && status != -EACCES;
}

static void trace_req(struct weir_engine *e, const struct weir_req *req,
		      enum weir_trace_event event, int status, uint16_t channel)
{
	weir_trace_note(e->trace, e->window->now_ns,
			&(struct weir_trace_record){ .event = (uint16_t)event,
						     .rc = status,
						     .reqs = 1,
						     .bytes = req->length,
						     .channel = (uint8_t)channel });
}

/*
 * @wr was never posted, so posting elsewhere is safe, except for a change whose later parts were
 * posted. A message cannot move: the only channel for messages failed.
 */
static void req_unsent(struct weir_engine *e, struct weir_req *req, const struct weir_wr *wr)
{
	uint64_t length = wr->nr_reqs > 1 ? req->length : wr->length;

	if (req->op == WEIR_OP_SEND) {
		weir_backlog_end(&e->backlog, req, -ENOTCONN);
	} else if (wr->offset + length == req->posted) {
		trace_req(e, req, WEIR_TRACE_REPEAT, -ENOTCONN, 0);
		weir_backlog_unpost(&e->backlog, req, wr->offset);
	} else if (is_idempotent(req)) {
		trace_req(e, req, WEIR_TRACE_REPEAT, -ENOTCONN, 0);
		weir_backlog_repeat(req);
	} else {
		weir_backlog_end(&e->backlog, req, -ECONNRESET);
	}
}

/*
 * A WR of @req failed and may have taken effect. Reads and exclusive writes may be posted again; a
 * change that may still arrive stays in doubt. After the refusal of a merged WR, each of its
 * requests is posted again alone.
 */
static void req_fail(struct weir_engine *e, struct weir_req *req, const struct weir_wr *wr,
		     int status)
{
	bool spends_retry = status == -ECONNRESET && req->retries && is_idempotent(req);
	bool suspect = wr->nr_reqs > 1 && is_refusal(status);

	if (weir_channels_is_broken(&e->channels, wr->channel) && may_be_in_doubt(req, status)) {
		trace_req(e, req, WEIR_TRACE_IN_DOUBT, status, wr->channel);
		weir_backlog_mark_in_doubt(&e->backlog, req, wr->channel);
	}
	if (spends_retry || suspect) {
		trace_req(e, req, WEIR_TRACE_REPEAT, status, 0);
		req->spends_retry |= spends_retry;
		req->no_merge |= suspect;
		weir_backlog_repeat(req);
	} else {
		weir_backlog_end(&e->backlog, req, status);
	}
}

static void req_completed(struct weir_engine *e, struct weir_req *req, const struct weir_wr *wr,
			  int status)
{
	req->wrs--;
	req->sent |= status != -ENOTCONN;
	if (status == -ENOTCONN)
		req_unsent(e, req, wr);
	else if (status)
		req_fail(e, req, wr, status);
	weir_backlog_settle(&e->backlog, req);
}

static void wr_failed(struct weir_engine *e, const struct weir_wc *wc)
{
	const struct weir_wr *wr = wc->wr;

	weir_fastpath_demote(e);
	weir_trace_note(e->trace, e->window->now_ns,
			&(struct weir_trace_record){ .event = WEIR_TRACE_FAIL,
						     .rc = wc->status,
						     .wrs = 1,
						     .reqs = wr->nr_reqs,
						     .bytes = wr->length,
						     .channel = (uint8_t)wr->channel,
						     .verbs = wc->verbs });
	weir_channels_fail(&e->channels, wr->channel);
}

static void reqs_completed(struct weir_engine *e, const struct weir_wr *wr, int status)
{
	struct weir_req *req, *next;

	for (req = wr->req; req; req = next) {
		next = req->merge_next;
		req_completed(e, req, wr, status);
	}
}

static void wr_succeeded(struct weir_engine *e, const struct weir_wr *wr)
{
	const struct weir_window *w = e->window;
	uint64_t bytes_max = w->bytes_max;
	uint32_t wrs_max = w->wrs_max;

	weir_stall_progressed(e, wr->channel, w->now_ns);
	weir_window_completed(e->window, wr->length, wr->posted_ns);
	if (w->bytes_max != bytes_max || w->wrs_max != wrs_max)
		weir_trace_note(e->trace, w->now_ns,
				&(struct weir_trace_record){ .event = WEIR_TRACE_LIMIT,
							     .bytes = w->bytes_max,
							     .wrs = w->wrs_max });
}

/* The selector learns only from WRs that took the chosen path and succeeded. */
static void wr_probe_done(struct weir_engine *e, const struct weir_wr *wr, int status)
{
	if (status)
		weir_path_abandon_probe(e->selector);
	else
		weir_path_completed(e->selector, wr->path, e->window->now_ns - wr->posted_ns);
}

static struct weir_window_waiter *waiter_of(struct weir_engine *e, const struct weir_wr *wr)
{
	return &e->waiters[weir_backlog_class_of(&e->backlog, wr->req)];
}

void weir_engine_completed(struct weir_engine *e, const struct weir_wc *wc, uint64_t now_ns)
{
	struct weir_wr *wr = wc->wr;

	if (weir_bug(!wr->req))
		return;
	weir_window_tick(e->window, now_ns);
	if (wc->status)
		wr_failed(e, wc);
	else
		wr_succeeded(e, wr);
	if (wr->path & WEIR_PATH_PROBE)
		wr_probe_done(e, wr, wc->status);
	e->channels.channel[wr->channel].in_flight--;
	e->streaming -= wr->in_stream;
	if (wr->has_class)
		weir_window_classes_completed(waiter_of(e, wr), wr->length);
	weir_window_give(e->window, wr->length);
	if (e->fastpath && !wc->status)
		weir_fastpath_succeeded(e);
	else
		reqs_completed(e, wr, wc->status);
	wr->req = NULL;
	wr->next = e->free_wrs;
	e->free_wrs = wr;
}

static bool wr_carries(const struct weir_wr *wr, const struct weir_req *req)
{
	const struct weir_req *carried = wr->req;

	while (carried && carried != req)
		carried = carried->merge_next;
	return carried;
}

/* The NIC may still touch the memory of @req; only a flush of the QP ends that. */
static void fail_channels_of(struct weir_engine *e, const struct weir_req *req)
{
	uint32_t i;

	for (i = 0; i < e->nr_wrs; i++) {
		if (wr_carries(&e->wrs[i], req))
			weir_channels_fail(&e->channels, e->wrs[i].channel);
	}
}

bool weir_engine_expired(struct weir_engine *e, uint64_t now_ns)
{
	struct weir_req *req;
	bool any = false;

	weir_fastpath_demote(e);
	weir_window_tick(e->window, now_ns);
	while ((req = weir_deadline_pop(&e->backlog.deadlines, now_ns))) {
		weir_trace_note(e->trace, e->window->now_ns,
				&(struct weir_trace_record){ .event = WEIR_TRACE_LATE,
							     .rc = -ETIMEDOUT,
							     .wrs = req->wrs,
							     .reqs = 1,
							     .bytes = req->length });
		if (req->wrs)
			fail_channels_of(e, req);
		weir_backlog_end(&e->backlog, req, -ETIMEDOUT);
		any = true;
	}
	return weir_stall_check(e, now_ns) || any;
}

/* Ends requests that have no channel left, and passes the barriers behind them. */
static void end_stranded(struct weir_engine *e)
{
	unsigned int i;
	bool any;

	do {
		weir_backlog_pass_barriers(&e->backlog);
		any = false;
		if (!weir_channels_is_up(&e->channels, 0))
			any |= weir_backlog_end_stranded(&e->backlog, &e->backlog.messages);
		for (i = 0; !weir_channels_any_left(&e->channels) && i < WEIR_WINDOW_CLASSES; i++)
			any |= weir_backlog_end_stranded(&e->backlog, &e->backlog.ready[i]);
	} while (any);
}

static bool next_failed_channel(struct weir_engine *e, struct weir_action *out)
{
	if (!weir_channels_any_failed(&e->channels))
		return false;
	out->type = WEIR_ACTION_FAIL;
	out->channel = weir_channels_pop_failed(&e->channels);
	return true;
}

static bool next_done_req(struct weir_engine *e, struct weir_action *out)
{
	struct weir_req *req = weir_backlog_pop_done(&e->backlog);

	if (!req)
		return false;
	out->type = WEIR_ACTION_DONE;
	out->req = req;
	return true;
}

static bool next_waiting_engine(struct weir_engine *e, struct weir_action *out)
{
	struct weir_window_waiter *waiter = weir_window_next_waiter(e->window);

	if (!waiter)
		return false;
	out->type = WEIR_ACTION_WAKE;
	out->engine = container_of(waiter - waiter->nr, struct weir_engine, waiters[0]);
	return true;
}

/* Usually no request waits for a barrier, and all channels are up. */
static bool may_be_stranded(const struct weir_engine *e)
{
	return !weir_list_is_empty(&e->backlog.behind_barrier) ||
	       !weir_channels_is_up(&e->channels, 0) || !weir_channels_any_left(&e->channels);
}

bool weir_engine_next(struct weir_engine *e, struct weir_action *out)
{
	if (weir_engine_is_quiet(e))
		return false;
	if (may_be_stranded(e))
		end_stranded(e);
	return next_failed_channel(e, out) || weir_batch_next(e, out) || next_done_req(e, out) ||
	       next_waiting_engine(e, out);
}

uint64_t weir_engine_deadline_ns(const struct weir_engine *e)
{
	uint64_t first_ns = e->fastpath ? e->fastpath->deadline_ns :
					  weir_deadline_next_ns(&e->backlog.deadlines);

	return first_ns < e->stall_check_ns ? first_ns : e->stall_check_ns;
}

int weir_engine_cancel(struct weir_engine *e, struct weir_req *req)
{
	weir_fastpath_demote(e);
	if (req->wrs || req->sent || req->state == WEIR_REQ_DONE)
		return -EINPROGRESS;
	weir_backlog_end(&e->backlog, req, -ECANCELED);
	return 0;
}
