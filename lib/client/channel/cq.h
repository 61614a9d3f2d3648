/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The CQs of what a session's channels send: one each, or fewer that they share, or some that all
 * sessions of the NIC share (scq.h). They live as long as the session, whatever becomes of its
 * channels, and are spread over the device's completion vectors. What is received comes by others.
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
 * @ibv: the device's
 * @scq: what it is one of, or NULL: a session's own
 * @wcs_max: completions to take at a time
 * @in_flight: WRs that will complete here
 * @armed: it will raise an event, or has raised one that nobody took yet
 */
struct weir_cq {
	struct ibv_cq *ibv;
	struct weir_scq *scq;
	uint32_t wcs_max;
	uint32_t in_flight;
	bool armed;
};

/* Makes those that the options ask for. The NIC is known. Return: 0; -ENOMEM; -EINVAL too large. */
int weir_cqs_create(struct weir_session *session, struct weir_error *error);

/* What @channels of a session may leave in CQs at once: all in flight, keep-alives, handshakes'. */
uint32_t weir_cq_entries(const struct weir_session *session, unsigned int channels);

/* There is no CQ of so many, as errno says. Return: -EINVAL too large; -ENOMEM. */
int weir_cq_explain(struct weir_error *error, uint32_t entries);

/* No QP is left that uses them. */
void weir_cqs_destroy(struct weir_session *session);

#endif
