/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The CQs of what a session's channels send: one each, or fewer that they share. They live as long
 * as the session, whatever becomes of its channels, and are spread over the device's completion
 * vectors. What is received comes by others.
 */
#ifndef WEIR_LIB_CQ_H
#define WEIR_LIB_CQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <weir/error.h>

struct weir_session;

/**
 * struct weir_cq - guarded by the NIC's lock
 * @ibv: the device's
 * @in_flight: WRs that will complete here
 * @armed: it will raise an event, or has raised one that nobody took yet
 */
struct weir_cq {
	struct ibv_cq *ibv;
	uint32_t in_flight;
	bool armed;
};

/* Makes those that the options ask for. The NIC is known. Return: 0; -ENOMEM; -EINVAL too large. */
int weir_cqs_make(struct weir_session *session, struct weir_error *error);

/* No QP is left that uses them. */
void weir_cqs_free(struct weir_session *session);

#endif
