/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The mux worker: takes connections with news from the inbox, posts the segments that the scheduler
 * picks, polls the CQ, and sleeps when the poller says so.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/host/mux.h"

#define POLL_WCS 32
#define WAKE_NS 5000 /* cost of a wake-up, until idle times were measured */

static uint64_t now_ns(const struct sim_mux *mux)
{
	return mux->node->host.clock->now_ps / SIM_PS_PER_NS;
}

static void pay_for_waking(struct sim_thread *self)
{
	sim_thread_call(self, self->host->profile->wake_call_ps);
}

void sim_mux_send(struct sim_thread *self, struct sim_mux_message *message)
{
	struct sim_mux_conn *conn = message->conn;
	struct sim_mux *mux = conn->mux;

	message->posted = message->sent = 0;
	weir_list_add_tail(&conn->messages, &message->link);
	if (conn->has_news)
		return;
	conn->has_news = true;
	weir_inbox_push(&mux->inbox, &conn->news);
	sim_thread_run(self, self->host->profile->lock_ps); /* one atomic exchange */
	sim_thread_poke(&mux->worker, 0);
	if (!mux->is_asleep)
		return;
	mux->is_asleep = false;
	sim_thread_wake(&mux->worker);
	pay_for_waking(self);
}

static void ring_doorbell(struct sim_thread *self, struct sim_mux *mux, struct sim_mux_qp *lane)
{
	if (!lane->nr_chain)
		return;
	if (sim_post_send(self, &mux->node->device, lane->qp, lane->chain, lane->nr_chain) !=
	    lane->nr_chain)
		abort(); /* the scheduler never picks more WRs than the QP holds */
	lane->nr_chain = 0;
}

static void append_wr(struct sim_thread *self, struct sim_mux *mux, struct sim_mux_qp *lane,
		      struct sim_mux_message *message, uint32_t bytes)
{
	struct sim_wr *wr = &lane->chain[lane->nr_chain++];

	*wr = (struct sim_wr){ .id = (uintptr_t)lane,
			       .op = SIM_OP_SEND,
			       .nr_sge = 1,
			       .sge = &mux->sge,
			       .bytes = bytes };
	wr->is_inline = bytes <= mux->node->host.profile->inline_max;
	lane->posted[(lane->first + lane->count++) % SIM_MUX_QP_DEPTH] =
		(struct sim_mux_wr){ message, bytes };
	if (lane->nr_chain == SIM_MUX_QP_CHAIN)
		ring_doorbell(self, mux, lane);
}

/* Posts a segment of the connection's oldest message that is not fully posted. */
static void take_segment(struct sim_thread *self, struct sim_mux *mux, struct sim_mux_conn *conn)
{
	struct sim_mux_message *message =
		weir_list_entry(conn->messages.next, struct sim_mux_message, link);
	uint64_t bytes = message->bytes - message->posted;
	uint32_t segment = mux->sched.classes[conn->flow.bundle->class].config.segment_bytes;

	sim_thread_run(self, mux->settings->core_ps);
	if (bytes > segment)
		bytes = segment;
	weir_sched_posted(&mux->sched, &conn->flow, (uint32_t)bytes);
	message->posted += bytes;
	if (message->posted == message->bytes)
		weir_list_del(&message->link);
	if (weir_list_is_empty(&conn->messages))
		weir_sched_idle(&mux->sched, &conn->flow);
	append_wr(self, mux, &mux->qps[conn->flow.bundle->class], message, (uint32_t)bytes);
}

static uint32_t classes_with_room(const struct sim_mux *mux)
{
	uint32_t classes = 0, i;

	for (i = 0; i < SIM_CLASSES; i++) {
		if (mux->qps[i].count < SIM_MUX_QP_DEPTH)
			classes |= 1u << i;
	}
	return classes;
}

static void post_turns(struct sim_thread *self, struct sim_mux *mux)
{
	struct weir_flow *flow;
	uint32_t i;

	while ((flow = weir_sched_next(&mux->sched, classes_with_room(mux))) != NULL)
		take_segment(self, mux, container_of(flow, struct sim_mux_conn, flow));
	for (i = 0; i < SIM_CLASSES; i++)
		ring_doorbell(self, mux, &mux->qps[i]);
}

static void take_inbox(struct sim_thread *self, struct sim_mux *mux)
{
	struct weir_inbox_node *news = weir_inbox_take(&mux->inbox);

	while (news) {
		struct sim_mux_conn *conn = container_of(news, struct sim_mux_conn, news);

		news = news->next;
		conn->has_news = false;
		sim_thread_run(self, mux->settings->core_ps);
		if (!weir_list_is_empty(&conn->messages))
			weir_sched_ready(&mux->sched, &conn->flow);
	}
}

static void complete_wrs(struct sim_thread *self, struct sim_mux *mux, struct sim_mux_qp *lane)
{
	struct sim_mux_wr posted = lane->posted[lane->first];
	struct sim_mux_message *message = posted.message;

	lane->first = (lane->first + 1) % SIM_MUX_QP_DEPTH;
	lane->count--;
	sim_thread_run(self, mux->settings->core_ps);
	weir_sched_completed(&mux->sched, &message->conn->flow, posted.bytes);
	message->sent += posted.bytes;
	if (message->sent == message->bytes && message->done(message))
		pay_for_waking(self);
}

static uint32_t take_completions(struct sim_thread *self, struct sim_mux *mux)
{
	struct sim_wc wcs[POLL_WCS];
	uint32_t i, taken = sim_poll_cq(self, &mux->cq, wcs, POLL_WCS);

	for (i = 0; i < taken; i++)
		complete_wrs(self, mux, (struct sim_mux_qp *)(uintptr_t)wcs[i].id);
	return taken;
}

/* The CQ is armed, and a poll found nothing: sleeps until a completion or news. */
static void sleep_until_event(struct sim_thread *self, struct sim_mux *mux)
{
	mux->is_asleep = true;
	if (weir_inbox_is_empty(&mux->inbox))
		sim_get_cq_event(self, &mux->events);
	mux->is_asleep = false;
}

static void worker_main(void *arg)
{
	struct sim_mux *mux = arg;
	struct sim_thread *self = &mux->worker;
	enum weir_poll_verdict verdict = weir_poll_woken(&mux->poll, now_ns(mux));

	for (;;) {
		uint32_t taken;
		bool has_news;

		if (mux->settings->poll == WEIR_POLL_BUSY && weir_inbox_is_empty(&mux->inbox))
			sim_await_cq(self, &mux->cq, SIM_NEVER);
		if (verdict == WEIR_POLL_SLEEP) {
			sleep_until_event(self, mux);
			verdict = weir_poll_woken(&mux->poll, now_ns(mux));
		}
		if (verdict == WEIR_POLL_ARM)
			sim_req_notify_cq(self, &mux->cq);
		taken = take_completions(self, mux);
		has_news = !weir_inbox_is_empty(&mux->inbox);
		take_inbox(self, mux);
		post_turns(self, mux);
		verdict = weir_poll_polled(&mux->poll, taken + has_news, now_ns(mux));
	}
}

static int sched_init(struct sim_mux *mux)
{
	const struct sim_load_settings *s = mux->settings;
	struct weir_sched_config configs[SIM_CLASSES];
	uint8_t i;

	for (i = 0; i < SIM_CLASSES; i++) {
		configs[i] = (struct weir_sched_config){
			.level = i,
			.weight = 1,
			.policy = (enum weir_sched_policy)s->policy,
			.segment_bytes = (uint32_t)s->segment,
			.wrs_max = (uint32_t)s->flow_wrs,
		};
		weir_sched_bundle_init(&mux->bundles[i], i, 1);
	}
	return weir_sched_init(&mux->sched, configs, SIM_CLASSES, s->low_bytes);
}

/* The QP for @class. */
static int qp_init(struct sim_mux *mux, struct sim_world *world, struct sim_node *peer,
		   uint8_t class)
{
	struct sim_load_settings settings = *mux->settings;

	settings.op = SIM_OP_SEND;
	settings.class = class;
	mux->qps[class].qp =
		sim_world_connect(world, mux->node, peer, &mux->cq, &settings, SIM_MUX_QP_DEPTH);
	return mux->qps[class].qp ? 0 : -ENOMEM;
}

int sim_mux_init(struct sim_mux *mux, struct sim_world *world, struct sim_node *node,
		 const struct sim_load_settings *settings)
{
	const struct weir_poll_config config = { (enum weir_poll_mode)settings->poll, POLL_WCS,
						 (uint32_t)settings->poll_retries, 100 };
	struct sim_node *peer = sim_world_next_peer(world, node);
	uint8_t i;
	int rc;

	*mux = (struct sim_mux){ .node = node, .settings = settings };
	mux->sge = (struct sim_sge){ 0, (uint32_t)settings->segment, 1u << 31 };
	weir_inbox_init(&mux->inbox);
	sim_channel_init(&mux->events, &node->host.cores[0]);
	weir_idle_time_init(&mux->idle_time, WAKE_NS, WAKE_NS);
	weir_poll_init(&mux->poll, &config, &mux->idle_time, now_ns(mux));
	rc = sched_init(mux);
	if (!rc)
		rc = sim_cq_init(&mux->cq, &mux->events, SIM_CLASSES * SIM_MUX_QP_DEPTH);
	for (i = 0; i < SIM_CLASSES && !rc; i++)
		rc = qp_init(mux, world, peer, i);
	return rc ? rc : sim_thread_init(&mux->worker, &node->host, -1, worker_main, mux);
}

void sim_mux_fini(struct sim_mux *mux)
{
	if (mux->worker.host)
		sim_thread_fini(&mux->worker);
	sim_cq_fini(&mux->cq);
}

void sim_mux_conn_init(struct sim_mux_conn *conn, struct sim_mux *mux, uint8_t class)
{
	*conn = (struct sim_mux_conn){ .mux = mux };
	weir_sched_flow_init(&conn->flow, &mux->bundles[class], 1);
	weir_list_init(&conn->messages);
}
