/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attacks on weir share, by any local user. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/mux/proxy/ipc.h"
#include "tests/hostile/attacker.h"
#include "tests/support/slow_socket.h"

enum { REQUESTS = 40, HELD = 300, RINGS = 200, TRY_S = 5 };

/* A tenant: its socket; the doorbell page and the bell, or -1. */
struct hostile_tenant {
	int socket, fds[WEIR_MUX_IPC_FDS_MAX];
};

static int ask(struct hostile_tenant *t, const struct weir_mux_ipc_request *request,
	       struct weir_mux_ipc_reply *reply, int *fds)
{
	int rc = weir_mux_ipc_send(t->socket, request, sizeof(*request), NULL, 0);

	return rc ? rc : weir_mux_ipc_recv(t->socket, reply, sizeof(*reply), fds);
}

static void close_all(const int *fds)
{
	int i;

	for (i = 0; i < WEIR_MUX_IPC_FDS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static bool tenant_open(struct attacker *a, struct hostile_tenant *t)
{
	const struct weir_mux_ipc_request hello = { .what = WEIR_MUX_IPC_HELLO,
						    .value = WEIR_MUX_IPC_VERSION };
	struct weir_mux_ipc_reply reply;

	*t = (struct hostile_tenant){ weir_mux_ipc_connect(a->target, NULL), { -1, -1 } };
	if (t->socket < 0)
		return false;
	weir_mux_ipc_set_timeout(t->socket, TRY_S);
	if (!ask(t, &hello, &reply, t->fds) && !reply.status)
		return true;
	close(t->socket);
	return false;
}

static void tenant_close(const struct hostile_tenant *t)
{
	close_all(t->fds);
	close(t->socket);
}

static void make_request(struct attacker *a, struct weir_mux_ipc_request *request)
{
	*request = (struct weir_mux_ipc_request){
		.what = attacker_dice(a, WEIR_MUX_IPC_WEIGH + 3),
		.number = attacker_dice(a, 1000),
		.nr = attacker_dice(a, 6),
		.service = attacker_dice(a, 8),
		.value = attacker_dice(a, 6),
		.class_nr = attacker_dice(a, 4),
		.weight = attacker_dice(a, 100),
		.at = attacker_dice(a, 2) ? attacker_dice(a, 1 << 16) : UINT64_MAX,
		.length = 1ull << attacker_dice(a, 64),
	};
	if (attacker_dice(a, 4))
		snprintf(request->peer, sizeof(request->peer), "%s", a->peer);
	else
		memset(request->peer, 'x', sizeof(request->peer));
}

/* Asks for anything, and seldom reads the answers. */
static void ask_anything(struct attacker *a)
{
	struct weir_mux_ipc_request request;
	struct hostile_tenant t;
	int i;

	if (!tenant_open(a, &t))
		return;
	for (i = 0; i < REQUESTS; i++) {
		make_request(a, &request);
		if (weir_mux_ipc_send(t.socket, &request,
				      attacker_dice(a, 20) ? sizeof(request) : 9, NULL, 0))
			break;
	}
	tenant_close(&t);
}

/* Rings without news, and scribbles over the doorbell page. */
static void ring(struct attacker *a)
{
	const uint64_t one = 1;
	struct hostile_tenant t;
	uint8_t *page;
	int i;

	if (!tenant_open(a, &t))
		return;
	page = mmap(NULL, sizeof(struct weir_mux_ipc_doorbells), PROT_READ | PROT_WRITE, MAP_SHARED,
		    t.fds[0], 0);
	for (i = 0; page != MAP_FAILED && i < RINGS; i++) {
		attacker_noise(a, page, sizeof(struct weir_mux_ipc_doorbells));
		(void)!write(t.fds[1], &one, sizeof(one));
	}
	if (page != MAP_FAILED)
		munmap(page, sizeof(struct weir_mux_ipc_doorbells));
	tenant_close(&t);
}

static void scribble_fd(struct attacker *a, int fd)
{
	struct stat file;
	uint8_t *map;

	if (fd < 0 || fstat(fd, &file) || !file.st_size)
		return;
	map = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return;
	attacker_noise(a, map, file.st_size < 65536 ? (size_t)file.st_size : 65536);
	munmap(map, (size_t)file.st_size);
}

/* Connects to the neighbour's service, and scribbles over the rings of the connection. */
static void scribble(struct attacker *a)
{
	struct weir_mux_ipc_request request = { .what = WEIR_MUX_IPC_CONNECT,
						.service = 1,
						.weight = 1,
						.class_nr = WEIR_MUX_IPC_CLASS_DEFAULT };
	int fds[WEIR_MUX_IPC_FDS_MAX] = { -1, -1 };
	struct weir_mux_ipc_reply reply;
	struct hostile_tenant t;

	if (!tenant_open(a, &t))
		return;
	snprintf(request.peer, sizeof(request.peer), "%s", a->peer);
	if (!ask(&t, &request, &reply, fds) && !reply.status) {
		close_all(fds);
		request = (struct weir_mux_ipc_request){ .what = WEIR_MUX_IPC_RING_SLAB,
							 .nr = reply.slab };
		if (!ask(&t, &request, &reply, fds) && !reply.status)
			scribble_fd(a, fds[0]);
		scribble_fd(a, t.fds[0]);
		(void)!write(t.fds[1], &(uint64_t){ 1 }, sizeof(uint64_t));
	}
	close_all(fds);
	tenant_close(&t);
}

/* Takes memory and services, up to the limits. */
static void take_all(struct attacker *a)
{
	const struct weir_mux_ipc_request region = { .what = WEIR_MUX_IPC_REGION,
						     .length = 1 << 20 };
	int fds[WEIR_MUX_IPC_FDS_MAX] = { -1, -1 }, i;
	struct weir_mux_ipc_reply reply;
	struct hostile_tenant t;

	if (!tenant_open(a, &t))
		return;
	for (i = 0; i < REQUESTS; i++) {
		if (ask(&t, &region, &reply, fds) || reply.status)
			break;
		close_all(fds);
	}
	tenant_close(&t);
}

/* Connections without HELLO, and tenants that stay. */
static void squat(struct attacker *a)
{
	static int held[HELD];
	int *fd = &held[attacker_dice(a, HELD)];
	struct hostile_tenant t;

	if (*fd > 0)
		close(*fd);
	if (attacker_dice(a, 2)) {
		*fd = weir_mux_ipc_connect(a->target, NULL);
		return;
	}
	*fd = tenant_open(a, &t) ? t.socket : -1;
	if (*fd >= 0)
		close_all(t.fds);
}

static void pass_slow_descriptors(struct attacker *a)
{
	int fd = weir_mux_ipc_connect(a->target, NULL);

	if (fd < 0)
		return;
	slow_socket_send(fd);
	close(fd);
	usleep(2000);
}

const struct attack share_attacks[] = {
	{ "tenant-anything", ask_anything }, { "tenant-ring", ring },
	{ "tenant-scribble", scribble },     { "tenant-take", take_all },
	{ "tenant-squat", squat },	     { "tenant-slow", pass_slow_descriptors },
	{ 0 },
};
