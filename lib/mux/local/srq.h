/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A shared receive queue with a CQ and buffers. A mux has an SRQ for the first level and another
 * for all below, so urgent messages never wait behind low-level messages or for low-level
 * buffers.
 */
#ifndef WEIR_LIB_MUX_LOCAL_SRQ_H
#define WEIR_LIB_MUX_LOCAL_SRQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <weir/mux.h>

#define WEIR_MUX_SRQ_BATCH 32 /* completions polled at once */

/**
 * struct weir_mux_srq - a shared receive queue
 * @cq: NULL if absent: nothing arrives
 * @is_armed: the CQ is armed and its event not yet taken
 * @nr_buffers: in @memory, of WIRE_MUX_SEGMENT_MAX bytes each
 * @wrs, @sges, @nr_wrs: free buffers that are not posted yet
 *
 * Poller only, once open.
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
 * weir_mux_srq_open() - create an SRQ and post all buffers
 * @srq: all zero; call weir_mux_srq_close() after an error, too
 * @pd, @completions: kept until then
 *
 * Return: 0; -ENOMEM.
 */
int weir_mux_srq_open(struct weir_mux_srq *srq, struct ibv_pd *pd,
		      struct ibv_comp_channel *completions, unsigned int nr_buffers,
		      struct weir_error *error);
/* No QP may still use the SRQ. */
void weir_mux_srq_close(struct weir_mux_srq *srq);

/* Return: the number of completions put into @wcs, which has room for WEIR_MUX_SRQ_BATCH. */
int weir_mux_srq_poll(struct weir_mux_srq *srq, struct ibv_wc *wcs);
/* The bytes received. */
const void *weir_mux_srq_data(const struct weir_mux_srq *srq, const struct ibv_wc *wc);
/* Frees the buffer of @wc, to be posted by the next weir_mux_srq_post(). */
void weir_mux_srq_free(struct weir_mux_srq *srq, const struct ibv_wc *wc);
/* Posts all free buffers. */
void weir_mux_srq_post(struct weir_mux_srq *srq);
/* The next completion raises an event. */
void weir_mux_srq_arm(struct weir_mux_srq *srq);
/*
 * Takes a single event. If another SRQ on the channel raised an event as well, the channel stays
 * readable.
 */
void weir_mux_srq_take_event(struct ibv_comp_channel *completions);

#endif
