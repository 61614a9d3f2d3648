/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The send CQs of a session's channels: one each, or fewer and shared, or shared by all sessions of
 * the NIC (scq.h). The CQs live as long as the session, even if channels fail, and are spread over
 * the device's completion vectors. Receives use other CQs.
 */
#ifndef WEIR_LIB_CLIENT_CHANNEL_CQ_H
#define WEIR_LIB_CLIENT_CHANNEL_CQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <weir/error.h>

struct weir_scq;
struct weir_session;

/**
 * struct weir_cq - guarded by the NIC's lock
 * @ibv: the device's CQ
 * @scq: the shared CQs that this one belongs to; NULL: a session's own
 * @wcs_max: completions polled at a time
 * @in_flight: WRs that will complete here
 * @armed: will raise an event, or has raised one that no thread has taken yet
 * @is_posting: a thread posts without nic->lock to the only QP that sends here, and no other thread
 *	polls or arms: weir_link_begin_post()
 */
struct weir_cq {
	struct ibv_cq *ibv;
	struct weir_scq *scq;
	uint32_t wcs_max;
	uint32_t in_flight;
	bool armed;
	bool is_posting;
};

/* Creates the CQs of the options; the NIC is known. Return: 0; -ENOMEM; -EINVAL too large. */
int weir_cqs_create(struct weir_session *session, struct weir_error *error);

/* Return: CQ entries that @channels of a session need: all in flight, keep-alives, handshakes. */
uint32_t weir_cq_entries(const struct weir_session *session, unsigned int channels);

/* Explains errno of a failed creation of a CQ. Return: -EINVAL too large; -ENOMEM. */
int weir_cq_explain(struct weir_error *error, uint32_t entries);

/* Destroys the CQs, after all QPs on them. */
void weir_cqs_destroy(struct weir_session *session);

#endif
