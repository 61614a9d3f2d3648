/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The verbs objects of a mux: listener, device, and the objects shared by all QPs. */
#include <errno.h>
#include <fcntl.h>

#include "lib/conn/address.h"
#include "lib/conn/listen_device.h"
#include "lib/base/error.h"
#include "lib/mux/local/local.h"

#define BACKLOG 128

static int listener_open(struct weir_mux_local *mux, struct weir_error *error)
{
	const char *listen = mux->options.listen;
	struct addrinfo *list;
	int rc = weir_address_resolve(listen, "0.0.0.0", &list, error);

	if (rc)
		return rc;
	if (!mux->options.key && !weir_address_is_loopback(list->ai_addr))
		rc = weir_error_set(
			error, -EPERM,
			"a mux without a key listens on loopback only, not on %s: give it "
			"a key",
			listen);
	else if (rdma_create_id(mux->cm, &mux->listener, NULL, RDMA_PS_TCP) ||
		 rdma_bind_addr(mux->listener, list->ai_addr) ||
		 rdma_listen(mux->listener, BACKLOG))
		rc = weir_address_explain_bind(listen, -errno, error);
	else
		weir_address_format(rdma_get_local_addr(mux->listener), mux->address);
	freeaddrinfo(list);
	return rc;
}

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

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int weir_mux_local_device_open(struct weir_mux_local *mux, struct weir_error *error)
{
	int rc = 0;

	mux->cm = rdma_create_event_channel();
	if (!mux->cm)
		return weir_error_set(
			error, -ENODEV,
			"no RDMA connection manager (%s): load rdma_ucm, or use softnic "
			"with 'weir run'",
			weir_strerror(-errno));
	set_nonblocking(mux->cm->fd);
	if (mux->options.listen)
		rc = listener_open(mux, error);
	if (!rc)
		rc = weir_listen_device_find(mux->listener, mux->options.listen,
					     mux->options.device, &mux->device, error);
	if (!rc)
		rc = queues_open(mux, error);
	if (!rc)
		set_nonblocking(mux->completions->fd);
	return rc;
}

void weir_mux_local_device_close(struct weir_mux_local *mux)
{
	if (mux->listener)
		rdma_destroy_id(mux->listener);
	weir_mux_srq_close(&mux->srqs[0]);
	weir_mux_srq_close(&mux->srqs[1]);
	if (mux->completions)
		ibv_destroy_comp_channel(mux->completions);
	if (mux->pd)
		ibv_dealloc_pd(mux->pd);
	if (mux->cm)
		rdma_destroy_event_channel(mux->cm);
}
