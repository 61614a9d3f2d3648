/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The handshake of handshake.h over a connected QP, and the only place that opens the QP to RDMA.
 *
 * Ends that must not block drive the handshake themselves, with the functions down to
 * weir_proof_open(). An end that connects and may block calls weir_proof_run().
 */
#ifndef WEIR_LIB_CONN_PROOF_H
#define WEIR_LIB_CONN_PROOF_H

#include "lib/conn/dialer.h"
#include "lib/conn/handshake.h"

#define WEIR_PROOF_SENDS 2 /* of a connecting end: HELLO, PROOF */
#define WEIR_PROOF_WR 1 /* the wr_id of the first receive that weir_proof_run() expects */

/**
 * weir_proof_post_recvs() - post @count receives, with wr_ids from @wr_id on
 * @lkey: of @buffers
 *
 * Return: 0 or a negative errno.
 */
int weir_proof_post_recvs(struct ibv_qp *qp, uint32_t lkey, char (*buffers)[WIRE_HANDSHAKE_MAX],
			  unsigned int count, uint64_t wr_id);

/* Sends a message, signalled. Return: 0 or a negative errno. */
int weir_proof_send(struct ibv_qp *qp, uint32_t lkey, const void *message, size_t length,
		    uint64_t wr_id);

/**
 * weir_proof_setup() - fill in the service's port, both ends of the QP, and fresh secrets
 * @id: connected
 * @is_client: this end has dialled the port; otherwise it listens there
 * @setup: the caller sets service.magic, key and version
 *
 * With a key, asks the device to encrypt.
 *
 * Return: as weir_endpoint_query().
 */
int weir_proof_setup(struct rdma_cm_id *id, bool is_client, struct weir_handshake_setup *setup);

/**
 * weir_proof_open() - admit the peer once the peer has proven the key
 * @h: the handshake over @qp, in state PROVEN or DONE
 * @access: IBV_ACCESS_REMOTE_*; 0: messages alone, for which some devices must admit the peer too
 *
 * Context: before the peer learns any address or rkey.
 * Return: 0; -EKEYREJECTED no proof of the key over this very QP; or the negative errno of
 * ibv_modify_qp(): a broken QP cannot be opened.
 */
int weir_proof_open(const struct weir_handshake *h, struct ibv_qp *qp, unsigned int access);

/**
 * struct weir_proof - the handshake of a connecting end
 * @setup: service.magic, key, session_id, channel and credits are set by the caller; version, too,
 *	unless it is the one that @d has asked for
 * @recvs: WIRE_HANDSHAKE_RECVS buffers, posted with wr_ids from WEIR_PROOF_WR on
 * @sends: WEIR_PROOF_SENDS + 1 buffers. Each message has a buffer of its own: an answer may arrive
 *	before the device has released the buffer of the message answered. No message follows the
 *	last
 * @lkey: of @recvs and @sends
 * @wr_id: of the sends, whose completions the caller ignores; they may come after the proof
 * @access: to admit after the proof; 0: the QP stays closed to RDMA
 * @welcome: valid after success
 */
struct weir_proof {
	struct weir_handshake_setup setup;
	char (*recvs)[WIRE_HANDSHAKE_MAX], (*sends)[WIRE_HANDSHAKE_MAX];
	uint32_t lkey;
	uint64_t wr_id;
	unsigned int access;
	struct wire_handshake_welcome welcome;
};

/**
 * weir_proof_run() - prove the key at both ends, then open the QP
 * @d: connected
 *
 * Polls the QP's receive CQ, which other QPs may share, for the few messages. Blocks, as the
 * functions of @d do.
 *
 * Return: 0; -EKEYREJECTED; -EPROTO; -ETIMEDOUT the devices encrypt, but did not agree on it; the
 * status of the peer's refusal; or as weir_dialer_check().
 */
int weir_proof_run(struct weir_dialer *d, struct weir_proof *p);

/**
 * weir_proof_wait_message() - wait for a further message, after the proof
 * @wc: receives its completion
 *
 * Return: 0; -EPROTO the peer has left; or as weir_dialer_check().
 */
int weir_proof_wait_message(struct weir_dialer *d, struct ibv_wc *wc);

#endif
