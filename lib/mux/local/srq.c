/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/mux/local/srq.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/error.h"
#include "lib/mux/local/memory.h"
#include "wire/mux.h"

static int queues_open(struct weir_intake *intake, struct ibv_pd *pd,
		       struct ibv_comp_channel *completions, struct weir_error *error)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = intake->nr_buffers, .max_sge = 1 },
	};

	intake->cq = ibv_create_cq(pd->context, (int)intake->nr_buffers, intake, completions, 0);
	if (intake->cq)
		intake->srq = ibv_create_srq(pd, &attr);
	if (!intake->srq)
		return weir_fail(error, -ENOMEM, "no shared receive queue of %u: %s",
				 intake->nr_buffers, weir_strerror(-errno));
	return 0;
}

static int memory_open(struct weir_intake *intake, struct ibv_pd *pd, struct weir_error *error)
{
	size_t bytes = (size_t)intake->nr_buffers * WIRE_PIECE_MAX;
	int rc = 0, fd;

	intake->memory = weir_rings_map(bytes, &fd);
	intake->wrs = calloc(intake->nr_buffers, sizeof(*intake->wrs));
	intake->sges = calloc(intake->nr_buffers, sizeof(*intake->sges));
	if (!intake->memory || !intake->wrs || !intake->sges)
		rc = weir_fail(error, -ENOMEM, "no memory for %u receive buffers",
			       intake->nr_buffers);
	if (!rc)
		intake->mr = ibv_reg_mr(pd, intake->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!rc && !intake->mr)
		rc = weir_fail_memlock(error, "the receive buffers", bytes, -errno);
	weir_fd_close(&fd);
	return rc;
}

static char *buffer_of(const struct weir_intake *intake, uint64_t number)
{
	return intake->memory + number * WIRE_PIECE_MAX;
}

static void buffer_free(struct weir_intake *intake, uint64_t number)
{
	struct ibv_sge *sge = &intake->sges[intake->nr_wrs];
	struct ibv_recv_wr *wr = &intake->wrs[intake->nr_wrs];

	*sge = (struct ibv_sge){ (uintptr_t)buffer_of(intake, number), WIRE_PIECE_MAX,
				 intake->mr->lkey };
	*wr = (struct ibv_recv_wr){ .wr_id = number, .sg_list = sge, .num_sge = 1 };
	if (intake->nr_wrs++)
		wr[-1].next = wr;
}

int weir_intake_open(struct weir_intake *intake, struct ibv_pd *pd,
		     struct ibv_comp_channel *completions, unsigned int nr_buffers,
		     struct weir_error *error)
{
	unsigned int i;
	int rc;

	intake->nr_buffers = nr_buffers;
	rc = queues_open(intake, pd, completions, error);
	if (!rc)
		rc = memory_open(intake, pd, error);
	for (i = 0; !rc && i < nr_buffers; i++)
		buffer_free(intake, i);
	if (!rc)
		weir_intake_post(intake);
	return rc;
}

void weir_intake_close(struct weir_intake *intake)
{
	if (intake->srq)
		ibv_destroy_srq(intake->srq);
	if (intake->cq) {
		ibv_ack_cq_events(intake->cq, intake->cq_events);
		ibv_destroy_cq(intake->cq);
	}
	if (intake->mr)
		ibv_dereg_mr(intake->mr);
	if (intake->memory)
		munmap(intake->memory, (size_t)intake->nr_buffers * WIRE_PIECE_MAX);
	free(intake->wrs);
	free(intake->sges);
}

int weir_intake_poll(struct weir_intake *intake, struct ibv_wc *wcs)
{
	int n = intake->cq ? ibv_poll_cq(intake->cq, WEIR_INTAKE_BATCH, wcs) : 0;

	return n > 0 ? n : 0;
}

const void *weir_intake_data(const struct weir_intake *intake, const struct ibv_wc *wc)
{
	return buffer_of(intake, wc->wr_id);
}

void weir_intake_free(struct weir_intake *intake, const struct ibv_wc *wc)
{
	buffer_free(intake, wc->wr_id);
}

void weir_intake_post(struct weir_intake *intake)
{
	struct ibv_recv_wr *bad;

	if (intake->nr_wrs)
		ibv_post_srq_recv(intake->srq, intake->wrs, &bad);
	intake->nr_wrs = 0;
}

void weir_intake_arm(struct weir_intake *intake)
{
	if (!intake->cq || intake->is_armed)
		return;
	ibv_req_notify_cq(intake->cq, 0);
	intake->is_armed = true;
}

void weir_intake_take_event(struct ibv_comp_channel *completions)
{
	struct weir_intake *intake;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(completions, &cq, &context))
		return;
	intake = context;
	intake->cq_events++;
	intake->is_armed = false;
}
