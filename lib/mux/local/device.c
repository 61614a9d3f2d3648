/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The verbs objects of a mux: listener, device, and the objects shared by all QPs. */
#include <errno.h>
#include <fcntl.h>

#include "lib/base/error.h"
#include "lib/mux/local/local.h"

#define BACKLOG 128

static uint8_t query_reads_max(struct ibv_context *device)
{
	struct ibv_device_attr attr;
	int most = WEIR_MUX_QP_READS_MAX;

	if (ibv_query_device(device, &attr))
		return 1;
	if (most > attr.max_qp_rd_atom)
		most = attr.max_qp_rd_atom;
	return (uint8_t)(most > attr.max_qp_init_rd_atom ? attr.max_qp_init_rd_atom : most);
}

/* The first level gets fewer buffers than the rest, unless there are no other levels. */
static int srqs_open(struct weir_mux_local *mux, struct weir_error *error)
{
	unsigned int most = mux->options.buffers, few = most / 4 < 8 ? 8 : most / 4;
	bool has_lower = weir_mux_local_is_low(mux, (uint8_t)(mux->options.nr_classes - 1));
	int rc = weir_mux_srq_open(&mux->srqs[0], mux->pd, mux->completions, has_lower ? few : most,
				   error);

	if (!rc && has_lower)
		rc = weir_mux_srq_open(&mux->srqs[1], mux->pd, mux->completions, most, error);
	return rc;
}

static int queues_open(struct weir_mux_local *mux, struct weir_error *error)
{
	mux->reads_max = query_reads_max(mux->device);
	mux->pd = ibv_alloc_pd(mux->device);
	if (mux->pd)
		mux->completions = ibv_create_comp_channel(mux->device);
	if (!mux->completions)
		return weir_error_set(error, -ENOMEM, "no completion channel: %s",
				      weir_strerror(-errno));
	return srqs_open(mux, error);
}

int weir_mux_local_device_open(struct weir_mux_local *mux, struct weir_error *error)
{
	int rc = weir_listener_open(&mux->listener, mux->options.listen, "a mux", mux->options.key,
				    BACKLOG, error);

	if (!rc)
		rc = weir_listener_find_device(&mux->listener, mux->options.device, &mux->device,
					       error);
	if (!rc)
		rc = queues_open(mux, error);
	if (!rc)
		fcntl(mux->completions->fd, F_SETFL,
		      fcntl(mux->completions->fd, F_GETFL) | O_NONBLOCK);
	return rc;
}

void weir_mux_local_device_close(struct weir_mux_local *mux)
{
	weir_listener_close(&mux->listener);
	weir_mux_srq_close(&mux->srqs[0]);
	weir_mux_srq_close(&mux->srqs[1]);
	if (mux->completions)
		ibv_destroy_comp_channel(mux->completions);
	if (mux->pd)
		ibv_dealloc_pd(mux->pd);
}
