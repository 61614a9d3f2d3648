/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/mux/local/srq.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/error.h"
#include "lib/mux/local/memory.h"
#include "wire/mux.h"

static int queues_open(struct weir_mux_srq *srq, struct ibv_pd *pd,
		       struct ibv_comp_channel *completions, struct weir_error *error)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = srq->nr_buffers, .max_sge = 1 },
	};

	srq->cq = ibv_create_cq(pd->context, (int)srq->nr_buffers, srq, completions, 0);
	if (srq->cq)
		srq->srq = ibv_create_srq(pd, &attr);
	if (!srq->srq)
		return weir_error_set(error, -ENOMEM, "no shared receive queue of %u: %s",
				      srq->nr_buffers, weir_strerror(-errno));
	return 0;
}

static int memory_open(struct weir_mux_srq *srq, struct ibv_pd *pd, struct weir_error *error)
{
	size_t bytes = (size_t)srq->nr_buffers * WIRE_MUX_SEGMENT_MAX;
	int rc = 0, fd;

	srq->memory = weir_mux_ring_slab_map(bytes, &fd);
	srq->wrs = calloc(srq->nr_buffers, sizeof(*srq->wrs));
	srq->sges = calloc(srq->nr_buffers, sizeof(*srq->sges));
	if (!srq->memory || !srq->wrs || !srq->sges)
		rc = weir_error_set(error, -ENOMEM, "no memory for %u receive buffers",
				    srq->nr_buffers);
	if (!rc)
		srq->mr = ibv_reg_mr(pd, srq->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!rc && !srq->mr)
		rc = weir_error_set_memlock(error, "the receive buffers", bytes, -errno);
	weir_mux_fd_close(&fd);
	return rc;
}

static char *buffer_of(const struct weir_mux_srq *srq, uint64_t number)
{
	return srq->memory + number * WIRE_MUX_SEGMENT_MAX;
}

static void buffer_free(struct weir_mux_srq *srq, uint64_t number)
{
	struct ibv_sge *sge = &srq->sges[srq->nr_wrs];
	struct ibv_recv_wr *wr = &srq->wrs[srq->nr_wrs];

	*sge = (struct ibv_sge){ (uintptr_t)buffer_of(srq, number), WIRE_MUX_SEGMENT_MAX,
				 srq->mr->lkey };
	*wr = (struct ibv_recv_wr){ .wr_id = number, .sg_list = sge, .num_sge = 1 };
	if (srq->nr_wrs++)
		wr[-1].next = wr;
}

int weir_mux_srq_open(struct weir_mux_srq *srq, struct ibv_pd *pd,
		      struct ibv_comp_channel *completions, unsigned int nr_buffers,
		      struct weir_error *error)
{
	unsigned int i;
	int rc;

	srq->nr_buffers = nr_buffers;
	rc = queues_open(srq, pd, completions, error);
	if (!rc)
		rc = memory_open(srq, pd, error);
	for (i = 0; !rc && i < nr_buffers; i++)
		buffer_free(srq, i);
	if (!rc)
		weir_mux_srq_post(srq);
	return rc;
}

void weir_mux_srq_close(struct weir_mux_srq *srq)
{
	if (srq->srq)
		ibv_destroy_srq(srq->srq);
	if (srq->cq) {
		ibv_ack_cq_events(srq->cq, srq->cq_events);
		ibv_destroy_cq(srq->cq);
	}
	if (srq->mr)
		ibv_dereg_mr(srq->mr);
	if (srq->memory)
		munmap(srq->memory, (size_t)srq->nr_buffers * WIRE_MUX_SEGMENT_MAX);
	free(srq->wrs);
	free(srq->sges);
}

int weir_mux_srq_poll(struct weir_mux_srq *srq, struct ibv_wc *wcs)
{
	int n = srq->cq ? ibv_poll_cq(srq->cq, WEIR_MUX_SRQ_BATCH, wcs) : 0;

	return n > 0 ? n : 0;
}

const void *weir_mux_srq_data(const struct weir_mux_srq *srq, const struct ibv_wc *wc)
{
	return buffer_of(srq, wc->wr_id);
}

void weir_mux_srq_free(struct weir_mux_srq *srq, const struct ibv_wc *wc)
{
	buffer_free(srq, wc->wr_id);
}

void weir_mux_srq_post(struct weir_mux_srq *srq)
{
	struct ibv_recv_wr *bad;

	if (srq->nr_wrs)
		ibv_post_srq_recv(srq->srq, srq->wrs, &bad);
	srq->nr_wrs = 0;
}

void weir_mux_srq_arm(struct weir_mux_srq *srq)
{
	if (!srq->cq || srq->is_armed)
		return;
	ibv_req_notify_cq(srq->cq, 0);
	srq->is_armed = true;
}

void weir_mux_srq_take_event(struct ibv_comp_channel *completions)
{
	struct weir_mux_srq *srq;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(completions, &cq, &context))
		return;
	srq = context;
	srq->cq_events++;
	srq->is_armed = false;
}
