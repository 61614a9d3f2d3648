/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a mux needs of the machine: an address to listen on, a device, and what all lanes share. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/address.h"
#include "lib/device.h"
#include "lib/error.h"
#include "lib/mux/mux.h"

#define BACKLOG 128

static int listener_open(struct weir_mux *mux, struct weir_error *error)
{
	const char *listen = mux->options.listen;
	struct addrinfo *list;
	int rc = weir_address_resolve(listen, "0.0.0.0", &list, error);

	if (rc)
		return rc;
	if (!mux->options.key && !weir_address_is_loopback(list->ai_addr))
		rc = weir_fail(error, -EPERM,
			       "a mux without a key listens on loopback only, not on %s: give it "
			       "a key",
			       listen);
	else if (rdma_create_id(mux->cm, &mux->listener, NULL, RDMA_PS_TCP) ||
		 rdma_bind_addr(mux->listener, list->ai_addr) ||
		 rdma_listen(mux->listener, BACKLOG))
		rc = weir_address_bind_failed(listen, -errno, error);
	else
		weir_address_print(rdma_get_local_addr(mux->listener), mux->address);
	freeaddrinfo(list);
	return rc;
}

static int queues_open(struct weir_mux *mux, struct weir_error *error)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = mux->options.buffers, .max_sge = 1 },
	};

	mux->pd = ibv_alloc_pd(mux->device);
	if (mux->pd)
		mux->completions = ibv_create_comp_channel(mux->device);
	if (mux->completions)
		mux->cq = ibv_create_cq(mux->device, (int)mux->options.buffers, mux,
					mux->completions, 0);
	if (mux->cq)
		mux->srq = ibv_create_srq(mux->pd, &attr);
	if (!mux->srq)
		return weir_fail(error, -ENOMEM, "no shared receive queue of %u: %s",
				 mux->options.buffers, weir_strerror(-errno));
	return 0;
}

static int memory_open(struct weir_mux *mux, struct weir_error *error)
{
	size_t bytes = (size_t)mux->options.buffers * WIRE_PIECE_MAX;

	mux->recv_memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);
	mux->recv_wrs = calloc(mux->options.buffers, sizeof(*mux->recv_wrs));
	mux->recv_sges = calloc(mux->options.buffers, sizeof(*mux->recv_sges));
	if (mux->recv_memory == MAP_FAILED)
		mux->recv_memory = NULL;
	if (!mux->recv_memory || !mux->recv_wrs || !mux->recv_sges)
		return weir_fail(error, -ENOMEM, "no memory for %u receive buffers",
				 mux->options.buffers);
	mux->recv_mr = ibv_reg_mr(mux->pd, mux->recv_memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!mux->recv_mr)
		return weir_fail_memlock(error, "the receive buffers", bytes, -errno);
	return 0;
}

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int weir_mux_device_open(struct weir_mux *mux, struct weir_error *error)
{
	int rc = 0;

	mux->cm = rdma_create_event_channel();
	if (!mux->cm)
		return weir_fail(error, -ENODEV,
				 "no RDMA connection manager (%s): load rdma_ucm, or use softnic "
				 "with 'weir run'",
				 weir_strerror(-errno));
	set_nonblocking(mux->cm->fd);
	if (mux->options.listen)
		rc = listener_open(mux, error);
	if (!rc)
		rc = weir_device_find(mux->listener, mux->options.listen, mux->options.device,
				      &mux->device, error);
	if (!rc)
		rc = queues_open(mux, error);
	if (!rc)
		rc = memory_open(mux, error);
	if (!rc)
		set_nonblocking(mux->completions->fd);
	return rc;
}

void weir_mux_device_close(struct weir_mux *mux)
{
	if (mux->listener)
		rdma_destroy_id(mux->listener);
	if (mux->srq)
		ibv_destroy_srq(mux->srq);
	if (mux->cq)
		ibv_destroy_cq(mux->cq);
	if (mux->completions)
		ibv_destroy_comp_channel(mux->completions);
	if (mux->recv_mr)
		ibv_dereg_mr(mux->recv_mr);
	if (mux->recv_memory)
		munmap(mux->recv_memory, (size_t)mux->options.buffers * WIRE_PIECE_MAX);
	free(mux->recv_wrs);
	free(mux->recv_sges);
	if (mux->pd)
		ibv_dealloc_pd(mux->pd);
	if (mux->cm)
		rdma_destroy_event_channel(mux->cm);
}
