/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where messages arrive: a shared receive queue, its completion queue, and the buffers. A hub has
 * one for its first level and one for all below, so that what is urgent waits neither behind the
 * others' messages nor for a buffer that they have.
 */
#ifndef WEIR_LIB_MUX_LOCAL_SRQ_H
#define WEIR_LIB_MUX_LOCAL_SRQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <weir/mux.h>

#define WEIR_MUX_SRQ_BATCH 32 /* completions taken at once */

/**
 * struct weir_mux_srq - one
 * @cq: NULL: there is none, and nothing arrives
 * @is_armed: and the event has not been taken
 * @nr_buffers: of WIRE_MUX_SEGMENT_MAX bytes, in @memory
 * @wrs, @sges, @nr_wrs: of buffers that are free and not posted yet
 *
 * The poller's, once it is open.
 */
struct weir_mux_srq {
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	bool is_armed;
	unsigned int cq_events, nr_buffers;
	char *memory;
	struct ibv_mr *mr;
	struct ibv_recv_wr *wrs;
	struct ibv_sge *sges;
	unsigned int nr_wrs;
};

/**
 * weir_mux_srq_open() - make one, and post all its buffers
 * @srq: all zero; also what is left after an error is for weir_mux_srq_close()
 * @pd, @completions: kept until then
 *
 * Return: 0; -ENOMEM.
 */
int weir_mux_srq_open(struct weir_mux_srq *srq, struct ibv_pd *pd,
		      struct ibv_comp_channel *completions, unsigned int nr_buffers,
		      struct weir_error *error);
/* No queue pair receives from it any more. */
void weir_mux_srq_close(struct weir_mux_srq *srq);

/* Return: how many completions it has put into @wcs, which has room for WEIR_MUX_SRQ_BATCH. */
int weir_mux_srq_poll(struct weir_mux_srq *srq, struct ibv_wc *wcs);
/* What has arrived. */
const void *weir_mux_srq_data(const struct weir_mux_srq *srq, const struct ibv_wc *wc);
/* It has been dealt with: weir_mux_srq_post() posts its buffer, and all others that are free. */
void weir_mux_srq_free(struct weir_mux_srq *srq, const struct ibv_wc *wc);
void weir_mux_srq_post(struct weir_mux_srq *srq);
/* An event is raised by what comes next. */
void weir_mux_srq_arm(struct weir_mux_srq *srq);
/* Takes an event; if intakes that share the channel raised another, it is readable still. */
void weir_mux_srq_take_event(struct ibv_comp_channel *completions);

#endif
