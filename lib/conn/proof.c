/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/conn/endpoint.h"
#include "lib/conn/proof.h"
#include "lib/conn/qp.h"
#include "lib/conn/encryption.h"

#define NAP_US 50

int weir_proof_post_recvs(struct ibv_qp *qp, uint32_t lkey, char (*buffers)[WIRE_HANDSHAKE_MAX],
			  unsigned int count, uint64_t wr_id)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < count; i++) {
		struct ibv_sge sge = { (uintptr_t)buffers[i], WIRE_HANDSHAKE_MAX, lkey };
		struct ibv_recv_wr *bad, wr = { .wr_id = wr_id + i, .sg_list = &sge, .num_sge = 1 };

		rc = -ibv_post_recv(qp, &wr, &bad);
	}
	return rc;
}

int weir_proof_send(struct ibv_qp *qp, uint32_t lkey, const void *message, size_t length,
		    uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)message, (uint32_t)length, lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	return -ibv_post_send(qp, &wr, &bad);
}

int weir_proof_setup(struct rdma_cm_id *id, bool is_client, struct weir_handshake_setup *setup)
{
	int rc = weir_endpoint_query(id, &setup->local, &setup->remote);

	if (rc)
		return rc;
	if (!setup->version_max)
		setup->version_max = weir_handshake_versions.max;
	setup->service.port = be16toh(is_client ? rdma_get_dst_port(id) : rdma_get_src_port(id));
	weir_handshake_secrets(setup, setup->key, is_client);
	setup->qp = id->qp;
	if (setup->key)
		weir_encryption_ask(id->qp);
	weir_encryption_bind(setup);
	return 0;
}

static bool is_proven(const struct weir_handshake *h, const struct ibv_qp *qp)
{
	return (h->state == WEIR_HANDSHAKE_PROVEN || h->state == WEIR_HANDSHAKE_DONE) &&
	       h->setup.local.qpn == qp->qp_num;
}

int weir_proof_open(const struct weir_handshake *h, struct ibv_qp *qp, unsigned int access)
{
	return is_proven(h, qp) ? weir_qp_open(qp, access) : -EKEYREJECTED;
}

static int fail_ended(const struct weir_dialer *d)
{
	return weir_error_set(d->error, -EPROTO,
			      "%s ended the connection during the proof of the key", d->peer);
}

/*
 * Takes one completion of the handshake; the CQ may still hold completions of an earlier QP. Failed
 * sends show here too, because receives are flushed.
 * Return: 1 a message, in @wc; 0 none yet; or an error.
 */
static int poll_message(const struct weir_dialer *d, struct ibv_wc *wc)
{
	while (ibv_poll_cq(d->qp->recv_cq, 1, wc) > 0) {
		if (wc->qp_num != d->qp->qp_num || (!wc->status && wc->opcode != IBV_WC_RECV))
			continue;
		return wc->status == IBV_WC_SUCCESS ? 1 : fail_ended(d);
	}
	return 0;
}

/* If the peer disconnects, a refusal received before explains more than the disconnect. */
int weir_proof_wait_message(struct weir_dialer *d, struct ibv_wc *wc)
{
	int rc;

	while (!(rc = poll_message(d, wc))) {
		rc = weir_dialer_step(d, RDMA_CM_EVENT_TIMEWAIT_EXIT);
		if (rc < 0)
			return poll_message(d, wc) > 0 ? 0 : rc;
		rc = weir_dialer_check(d);
		if (rc)
			return rc;
		usleep(NAP_US);
	}
	return rc < 0 ? rc : 0;
}

/* Sends a message of @length bytes, and takes the answer. @length: of the next message. */
static int exchange_messages(struct weir_dialer *d, struct weir_proof *p, struct weir_handshake *h,
			     unsigned int i, size_t *length)
{
	struct ibv_wc wc;
	int rc = weir_proof_send(d->qp, p->lkey, p->sends[i], *length, p->wr_id);

	if (rc)
		return weir_error_set(d->error, rc, "cannot send to %s: %s", d->peer,
				      weir_strerror(rc));
	rc = weir_proof_wait_message(d, &wc);
	if (rc)
		return rc;
	rc = weir_handshake_input(h, p->recvs[wc.wr_id - WEIR_PROOF_WR], wc.byte_len,
				  p->sends[i + 1], length);
	return rc ? weir_handshake_explain(h, rc, d->peer, d->error) : 0;
}

static int run(struct weir_dialer *d, struct weir_proof *p, struct weir_handshake *h)
{
	unsigned int i;
	size_t length;
	int rc = weir_proof_setup(d->id, true, &p->setup);

	if (!p->setup.version)
		p->setup.version = weir_dialer_version(&d->again);

	if (rc)
		return weir_error_set(d->error, rc, "cannot query the queue pair: %s",
				      weir_strerror(rc));
	weir_handshake_client(h, &p->setup, p->sends[0], &length);
	for (i = 0; !rc && i < WEIR_PROOF_SENDS; i++)
		rc = exchange_messages(d, p, h, i, &length);
	p->welcome = h->welcome;
	if (rc)
		return rc;
	return weir_proof_open(h, d->qp, p->access) ? fail_ended(d) : 0;
}

int weir_proof_run(struct weir_dialer *d, struct weir_proof *p)
{
	struct weir_handshake *h = weir_handshake_new();
	int rc = h ? run(d, p, h) : weir_error_set(d->error, -ENOMEM, "out of memory");

	weir_handshake_free(h);
	return rc;
}
