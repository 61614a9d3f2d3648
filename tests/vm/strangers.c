/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * strangers ADDRESS KEY: more connections than a donor has places for newcomers of a key. No
 * stranger proves the key, and each comes back after a refusal or an eviction. So no place is free
 * or old, and the donor admits newcomers with a cookie only.
 *
 * Prints "ready" at the first refusal, and ends with the input.
 */
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/conn/address.h"
#include "lib/conn/key.h"
#include "wire/handshake.h"

enum { STRANGERS = 64, TIMEOUT_MS = 10000 };

static struct wire_handshake_connect request = { .magic = WIRE_MAGIC, .version = WIRE_VERSION };
static struct rdma_event_channel *events;
static struct addrinfo *donor;

static int come(void)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
		return -errno;
	return rdma_resolve_addr(id, NULL, donor->ai_addr, TIMEOUT_MS) ? -errno : 0;
}

static int ask_for_place(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_conn_param param = {
		.private_data = &request,
		.private_data_len = sizeof(request),
		.retry_count = 7,
	};

	return rdma_create_qp(id, NULL, &init) || rdma_connect(id, &param) ? -errno : 0;
}

static void leave(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

/* Return: whether the stranger is gone. */
static bool handle(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(id, TIMEOUT_MS);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return ask_for_place(id);
	case RDMA_CM_EVENT_ESTABLISHED:
		return false;
	default:
		return true;
	}
}

static void tell_once(void)
{
	static bool is_told;

	if (!is_told)
		puts("ready");
	is_told = true;
	fflush(stdout);
}

/* The donor must be able to answer others in between. */
static void pause_briefly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

int main(int argc, char **argv)
{
	struct pollfd in[2] = { { .fd = STDIN_FILENO, .events = POLLIN } };
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct weir_key *key;
	int rc;

	if (argc != 3 || weir_key_load(argv[2], &key, NULL) ||
	    weir_address_resolve(argv[1], NULL, &donor, NULL))
		return 2;
	request.key_id = weir_key_id(key);
	events = rdma_create_event_channel();
	for (int i = 0; events && i < STRANGERS; i++)
		if ((rc = come()))
			return fprintf(stderr, "strangers: %s\n", strerror(-rc)), 1;
	in[1] = (struct pollfd){ .fd = events->fd, .events = POLLIN };
	while (poll(in, 2, -1) > 0 && !in[0].revents) {
		if (rdma_get_cm_event(events, &event))
			return 1;
		id = event->id;
		type = event->event;
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_REJECTED)
			tell_once();
		if (!handle(id, type))
			continue;
		leave(id);
		pause_briefly();
		come();
	}
	return 0;
}
