/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The messages of the handshake, over a QP private to the attempt, and the opening of the QP. */
#include <errno.h>
#include <unistd.h>

#include "lib/client/connect_attempt.h"
#include "lib/conn/endpoint.h"
#include "lib/base/error.h"
#include "lib/conn/qp.h"

#define NAP_US 50

static int send_handshake(const struct weir_connect_attempt *a, const void *message, size_t length)
{
	struct ibv_sge sge = { (uintptr_t)message, (uint32_t)length,
			       a->session->messages.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	int rc = -ibv_post_send(a->qp, &wr, &bad);

	return rc ? weir_error_set(a->error, rc, "cannot send to %s: %s", a->session->peer,
				   weir_strerror(rc)) :
		    0;
}

static int fail_ended(const struct weir_connect_attempt *a)
{
	return weir_error_set(a->error, -EPROTO,
			      "%s ended the connection during the proof of the key",
			      a->session->peer);
}

/*
 * Takes one completion of the handshake; the CQ may still hold completions of an earlier QP. Failed
 * sends show here too, because receives are flushed.
 * Return: 1 a message, in @wc; 0 none yet; or an error.
 */
static int poll_handshake(const struct weir_connect_attempt *a, struct ibv_wc *wc)
{
	while (ibv_poll_cq(a->recv_cq, 1, wc) > 0) {
		if (wc->qp_num != a->qp->qp_num || (!wc->status && !(wc->opcode & IBV_WC_RECV)))
			continue;
		return wc->status == IBV_WC_SUCCESS ? 1 : fail_ended(a);
	}
	return 0;
}

/* If the donor disconnects, a refusal received before explains more than the disconnect. */
static int wait_handshake(const struct weir_connect_attempt *a, struct ibv_wc *wc)
{
	int rc;

	while (!(rc = poll_handshake(a, wc))) {
		rc = weir_connect_attempt_get_event(a, RDMA_CM_EVENT_TIMEWAIT_EXIT);
		if (rc < 0)
			return poll_handshake(a, wc) > 0 ? 0 : rc;
		rc = weir_connect_attempt_check_time(a);
		if (rc)
			return rc;
		usleep(NAP_US);
	}
	return rc < 0 ? rc : 0;
}

static int begin_handshake(const struct weir_connect_attempt *a, struct weir_handshake *h,
			   void *out, size_t *out_length)
{
	struct weir_handshake_setup setup = {
		.key = a->session->options.key,
		.session_id = a->session->id,
		.channel = weir_unload_tx_channel(a->link),
		.credits = WEIR_MESSAGE_RECVS,
	};
	int rc = weir_endpoint_query(a->id, &setup.local, &setup.remote);

	if (rc)
		return weir_error_set(a->error, rc, "cannot query the queue pair: %s",
				      weir_strerror(rc));
	weir_handshake_nonce(setup.nonce);
	weir_handshake_client(h, &setup, out, out_length);
	return 0;
}

/*
 * On channel 0 the donor writes only its keep-alives, which are empty: lib/donor/keepalive.h. The
 * other channels stay closed to RDMA. Opening fails on a broken QP.
 */
static int open_qp(const struct weir_connect_attempt *a)
{
	if (a->link->number || !weir_qp_open(a->qp, IBV_ACCESS_REMOTE_WRITE))
		return 0;
	return fail_ended(a);
}

int weir_connect_attempt_prove(const struct weir_connect_attempt *a, struct weir_handshake *h)
{
	struct weir_handshake_buffers *buffers =
		weir_messages_handshake(a->session, a->link->number);
	struct ibv_wc wc;
	size_t length;
	int i, rc;

	rc = begin_handshake(a, h, buffers->sends[0], &length);
	for (i = 0; !rc && i < WEIR_HANDSHAKE_SENDS; i++) {
		rc = send_handshake(a, buffers->sends[i], length);
		if (!rc)
			rc = wait_handshake(a, &wc);
		if (rc)
			return rc;
		rc = weir_handshake_input(h, buffers->recvs[wc.wr_id - 1], wc.byte_len,
					  buffers->sends[i + 1], &length);
		if (rc)
			return weir_error_set(a->error, rc, "%s: %s", a->session->peer,
					      h->error.text);
	}
	return rc ? rc : open_qp(a);
}
