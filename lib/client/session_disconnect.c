/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The end of channels: destroying their QPs, and handling disconnects. */
#include <errno.h>

#include "lib/base/clock.h"
#include "lib/client/session_reconnect.h"
#include "lib/client/session.h"
#include "lib/conn/event_channel.h"

void weir_session_destroy_qp(struct weir_session *session, uint16_t number)
{
	struct weir_session_link *link = &session->links[number];
	struct ibv_cq *recv_cq = number ? link->recv_cq : NULL;
	struct ibv_wc wc;

	while (link->core.is_posting)
		weir_waitqueue_wait(&session->idle, session->nic, UINT64_MAX);
	link->recv_cq = NULL;
	weir_session_unlock(session);
	if (link->id && link->id->qp)
		rdma_destroy_qp(link->id);
	if (recv_cq)
		ibv_destroy_cq(recv_cq);
	weir_session_lock(session);
	/* The next QP may get the same number: no completion of the old one may remain. */
	if (link->cq)
		weir_session_links_poll(session, link->cq, weir_now_ns());
	while (!number && session->recv_cq && ibv_poll_cq(session->recv_cq, 1, &wc) > 0)
		; /* flushed receives: their buffers are free */
}

void weir_session_disconnect(struct weir_session *session, uint16_t number)
{
	struct weir_session_link *link = &session->links[number];

	if (link->id)
		rdma_disconnect(link->id);
	if (!session->nic)
		return; /* and no QP */
	weir_session_lock(session);
	weir_session_destroy_qp(session, number);
	weir_link_close(&link->core);
	weir_session_unlock(session);
}

static void handle_disconnect(struct weir_session_link *link, enum rdma_cm_event_type type)
{
	if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		weir_session_reconnect_give_up(link->session, -ENODEV);
	else
		weir_session_link_fail(link);
}

/* A donor that ends before receiving the RTU rejects the connection after all. */
static bool is_disconnect(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_REJECTED ||
	       type == RDMA_CM_EVENT_DEVICE_REMOVAL;
}

void weir_session_poll_cm(struct weir_session *session)
{
	struct weir_cm_event event;

	while (weir_event_channel_get(session->cm, &event) > 0) {
		struct weir_session_link *link = event.context;

		if (event.id == link->id && is_disconnect(event.type))
			handle_disconnect(link, event.type);
	}
}
