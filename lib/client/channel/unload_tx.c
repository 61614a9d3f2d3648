/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The completion of an unloaded write only says that it has arrived in the buffer, so only failures
 * matter. When the link fails, the donor may have copied some of the writes in flight, and may yet
 * copy others.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/client/session.h"
#include "lib/client/channel/unload_tx.h"

#define SHOW_EVERY 1024 /* decisions: take longer than copying a histogram */

bool weir_unload_tx_is(const struct weir_session_link *link)
{
	return link->session->options.unload > WEIR_UNLOAD_OFF &&
	       link->number == link->session->options.channels;
}

uint16_t weir_unload_tx_channel(const struct weir_session_link *link)
{
	return weir_unload_tx_is(link) ? WIRE_CHANNEL_UNLOAD : link->number;
}

static enum weir_path_policy policy_of(enum weir_unloading unloading)
{
	switch (unloading) {
	case WEIR_UNLOAD_ALWAYS:
		return WEIR_PATH_POLICY_UNLOAD;
	case WEIR_UNLOAD_HINTS:
		return WEIR_PATH_POLICY_HINTS;
	case WEIR_UNLOAD_FREQUENCY:
		return WEIR_PATH_POLICY_FREQUENCY;
	case WEIR_UNLOAD_MEASURED:
		return WEIR_PATH_POLICY_MEASURED;
	case WEIR_UNLOAD_DEFAULT:
	case WEIR_UNLOAD_OFF:
		break;
	}
	return WEIR_PATH_POLICY_OFFLOAD;
}

int weir_unload_tx_init(struct weir_session *session)
{
	struct weir_unload_tx *u = &session->unload;
	struct weir_path_config config = {
		.policy = policy_of(session->options.unload),
		.bytes_max = WEIR_UNLOAD_WR_DATA_MAX,
		.hot_pages = session->tuning.unload_hot_pages,
		.nr_counters = WEIR_PATH_COUNTERS_DEFAULT,
	};

	if (session->options.unload <= WEIR_UNLOAD_OFF)
		return 0;
	if (weir_path_policy_counts(config.policy)) {
		u->counters = calloc(WEIR_PATH_BYTES(WEIR_PATH_COUNTERS_DEFAULT), 1);
		if (!u->counters)
			return -ENOMEM;
	}
	weir_engine_unload(&session->engine, &u->route, (uint16_t)session->options.channels);
	return weir_path_init(&u->route, &config, u->counters);
}

void weir_unload_tx_fini(struct weir_session *session)
{
	free(session->unload.counters);
}

static int recv_post(struct ibv_qp *qp)
{
	struct ibv_recv_wr *bad, wr = { .wr_id = WEIR_RETURN_WR };

	return -ibv_post_recv(qp, &wr, &bad);
}

int weir_unload_tx_post_recvs(struct ibv_qp *qp)
{
	int i, rc = 0;

	for (i = 0; !rc && i < WIRE_UNLOAD_SLOTS; i++)
		rc = recv_post(qp);
	return rc;
}

int weir_unload_tx_up(struct weir_session *session, const struct wire_handshake_welcome *welcome,
		      uint32_t inline_max)
{
	struct weir_unload_tx *u = &session->unload;
	uint32_t bytes_max = inline_max < WIRE_UNLOAD_SLOT_BYTES ? inline_max :
								   WIRE_UNLOAD_SLOT_BYTES;

	if (!welcome->buffer || welcome->credits != WIRE_UNLOAD_SLOTS)
		return -EPROTO;
	u->buffer = (struct weir_unload_buffer){ .addr = welcome->buffer, .rkey = welcome->rkey };
	weir_unload_slots_init(&u->buffer.slots, WIRE_UNLOAD_SLOTS);
	u->route.config.bytes_max =
		bytes_max > WEIR_UNLOAD_WR_HEAD ? bytes_max - WEIR_UNLOAD_WR_HEAD : 0;
	return 0;
}

void weir_unload_tx_fill(struct weir_session_link *link, struct ibv_send_wr *out,
			 const struct weir_wr *wr, struct weir_unload_tx_sges *sges)
{
	uint8_t i;

	sges->remote = wr->req->remote + wr->offset;
	sges->sge[0] =
		(struct ibv_sge){ .addr = (uintptr_t)&sges->remote, .length = WEIR_UNLOAD_WR_HEAD };
	for (i = 0; i < wr->nr_sge; i++)
		sges->sge[1 + i] =
			(struct ibv_sge){ .addr = wr->sge[i].addr, .length = wr->sge[i].length };
	out->sg_list = sges->sge;
	out->num_sge = 1 + wr->nr_sge;
	out->send_flags = IBV_SEND_INLINE;
	weir_unload_wr_write(&link->session->unload.buffer, wr->req->rkey, out);
	link->session->counters->unloaded++;
}

static void handle_return(struct weir_session_link *link, const struct wire_unload_return *report,
			  uint64_t now_ns)
{
	struct weir_unload_tx *u = &link->session->unload;
	/* A refused write is in flight, too. */
	int count =
		weir_unload_slots_returned(&u->buffer.slots, report->done,
					   (int)link->core.in_flight.count - report->is_refused);

	if (count < 0) {
		weir_session_link_fail(link); /* more writes returned than sent */
		return;
	}
	if (report->pause_ms)
		weir_path_pause(&u->route, now_ns + report->pause_ms * WEIR_NS_PER_MS);
	for (; count; count--)
		weir_session_link_retire(link, 0, now_ns);
	if (report->is_refused)
		weir_session_link_retire(link, -EACCES, now_ns);
}

void weir_unload_tx_completed(struct weir_session_link *link, const struct ibv_wc *wc,
			      uint64_t now_ns)
{
	struct wire_unload_return report;

	if (wc->status != IBV_WC_SUCCESS) {
		weir_session_link_fail(link);
		/* Failed sends, and the drain behind, complete after all returns. */
		if (wc->wr_id != WEIR_RETURN_WR)
			weir_session_link_forget(link);
	} else if (wc->opcode & IBV_WC_RECV) {
		report = wire_unload_return_decode(ntohl(wc->imm_data));
		if (!(wc->wc_flags & IBV_WC_WITH_IMM) || recv_post(link->id->qp))
			weir_session_link_fail(link);
		else
			handle_return(link, &report, now_ns);
	}
}

static void publish_page_heat(const struct weir_path_selector *route,
			      struct weir_stats_shm_page_heat *pressure)
{
	int i;

	for (i = 0; i < WEIR_PAGE_HEAT_COUNTS; i++) {
		pressure->pages[i] = route->pages.histogram[i];
		pressure->huge[i] = route->huge.histogram[i];
	}
	pressure->entries = route->config.hot_pages;
}

/* Often at first, later at least every SHOW_EVERY decisions. */
static bool is_publish_due(struct weir_unload_tx *u)
{
	uint64_t since = u->route.decided - u->shown;

	if (!since || (since < SHOW_EVERY && since < u->shown))
		return false;
	u->shown = u->route.decided;
	return true;
}

void weir_unload_tx_publish(struct weir_session *session)
{
	const struct weir_path_selector *route = &session->unload.route;

	session->counters->small = route->decided;
	session->counters->hot = route->hot;
	session->counters->pages = route->pages.count;
	session->counters->unload_full = session->engine.unload_full;
	if (weir_path_policy_counts(route->config.policy) && is_publish_due(&session->unload))
		publish_page_heat(route, &session->stats_shm->pressure);
}
