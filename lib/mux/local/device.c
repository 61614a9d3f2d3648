/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a mux needs of the machine: an address to listen on, a device, and what all lanes share. */
#include <errno.h>
#include <fcntl.h>

#include "lib/conn/address.h"
#include "lib/conn/listen_device.h"
#include "lib/base/error.h"
#include "lib/mux/local/local.h"

#define BACKLOG 128

static int listener_open(struct weir_hub *hub, struct weir_error *error)
{
	const char *listen = hub->options.listen;
	struct addrinfo *list;
	int rc = weir_address_resolve(listen, "0.0.0.0", &list, error);

	if (rc)
		return rc;
	if (!hub->options.key && !weir_address_is_loopback(list->ai_addr))
		rc = weir_fail(error, -EPERM,
			       "a mux without a key listens on loopback only, not on %s: give it "
			       "a key",
			       listen);
	else if (rdma_create_id(hub->cm, &hub->listener, NULL, RDMA_PS_TCP) ||
		 rdma_bind_addr(hub->listener, list->ai_addr) ||
		 rdma_listen(hub->listener, BACKLOG))
		rc = weir_address_bind_failed(listen, -errno, error);
	else
		weir_address_print(rdma_get_local_addr(hub->listener), hub->address);
	freeaddrinfo(list);
	return rc;
}

static uint8_t reads_of(struct ibv_context *device)
{
	struct ibv_device_attr attr;
	int most = WEIR_READS_MAX;

	if (ibv_query_device(device, &attr))
		return 1;
	if (most > attr.max_qp_rd_atom)
		most = attr.max_qp_rd_atom;
	return (uint8_t)(most > attr.max_qp_init_rd_atom ? attr.max_qp_init_rd_atom : most);
}

/* The first level needs fewer buffers than all others, unless there are none. */
static int intakes_open(struct weir_hub *hub, struct weir_error *error)
{
	unsigned int most = hub->options.buffers, few = most / 4 < 8 ? 8 : most / 4;
	bool has_lower = weir_hub_is_low(hub, (uint8_t)(hub->options.nr_classes - 1));
	int rc = weir_intake_open(&hub->intakes[0], hub->pd, hub->completions,
				  has_lower ? few : most, error);

	if (!rc && has_lower)
		rc = weir_intake_open(&hub->intakes[1], hub->pd, hub->completions, most, error);
	return rc;
}

static int queues_open(struct weir_hub *hub, struct weir_error *error)
{
	hub->reads_max = reads_of(hub->device);
	hub->pd = ibv_alloc_pd(hub->device);
	if (hub->pd)
		hub->completions = ibv_create_comp_channel(hub->device);
	if (!hub->completions)
		return weir_fail(error, -ENOMEM, "no completion channel: %s",
				 weir_strerror(-errno));
	return intakes_open(hub, error);
}

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int weir_hub_device_open(struct weir_hub *hub, struct weir_error *error)
{
	int rc = 0;

	hub->cm = rdma_create_event_channel();
	if (!hub->cm)
		return weir_fail(error, -ENODEV,
				 "no RDMA connection manager (%s): load rdma_ucm, or use softnic "
				 "with 'weir run'",
				 weir_strerror(-errno));
	set_nonblocking(hub->cm->fd);
	if (hub->options.listen)
		rc = listener_open(hub, error);
	if (!rc)
		rc = weir_device_find(hub->listener, hub->options.listen, hub->options.device,
				      &hub->device, error);
	if (!rc)
		rc = queues_open(hub, error);
	if (!rc)
		set_nonblocking(hub->completions->fd);
	return rc;
}

void weir_hub_device_close(struct weir_hub *hub)
{
	if (hub->listener)
		rdma_destroy_id(hub->listener);
	weir_intake_close(&hub->intakes[0]);
	weir_intake_close(&hub->intakes[1]);
	if (hub->completions)
		ibv_destroy_comp_channel(hub->completions);
	if (hub->pd)
		ibv_dealloc_pd(hub->pd);
	if (hub->cm)
		rdma_destroy_event_channel(hub->cm);
}
