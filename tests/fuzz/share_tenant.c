/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A hostile tenant of weir share writes anything into the memory shared with the daemon, and
 * sends any request. Only this tenant may be harmed. Another tenant's messages pass before,
 * after and meanwhile.
 *
 * The daemon, both tenants and the mux at the other end are in this process; the daemon
 * connects to itself.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/share/daemon.h"
#include "lib/mux/proxy/proxy.h"

#define SERVICE 1
#define TIMEOUT_NS 5000000000 /* of the mux: how long it waits for a hostile tenant */
#define WAIT_MS 60000
#define STEPS_MAX 64 /* of an input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static struct {
	struct share_daemon share;
	char path[64], address[64];
	struct weir_mux *steady;
	struct weir_mux_listener *listener;
	struct weir_mux_conn *near, *far;
} world;

/* A tenant controlled by the input. */
struct hostile {
	struct weir_mux_proxy *tenant;
	struct weir_mux_conn *near, *far; /* the other end belongs to the steady tenant */
	uint32_t region, handle;
};

/* Beyond its end the input is zero. */
static void take_input(struct input *in, void *to, size_t n)
{
	size_t have = n < in->left ? n : in->left;

	memset(to, 0, n);
	memcpy(to, in->at, have);
	in->at += have;
	in->left -= have;
}

static uint8_t take_byte(struct input *in)
{
	uint8_t byte;

	take_input(in, &byte, 1);
	return byte;
}

static struct weir_mux *tenant_open(void)
{
	const struct weir_mux_options options = { .size = sizeof(options), .share = world.path };
	struct weir_mux *mux = NULL;
	int rc = weir_mux_open(&options, &mux, NULL);

	assert(!rc);
	return mux;
}

/* A connection of @mux, with its other end at the steady tenant. */
static void connect_to(struct weir_mux *mux, struct weir_mux_conn **near,
		       struct weir_mux_conn **far)
{
	struct pollfd in = { .fd = weir_mux_listener_fd(world.listener), .events = POLLIN };
	int rc;

	/*
	 * All tenants have the same user, and objects of earlier tenants are still being
	 * released.
	 */
	while ((rc = weir_mux_connect(mux, world.address, SERVICE, NULL, near, NULL)) == -EDQUOT)
		sched_yield();
	assert(!rc);
	while ((rc = weir_mux_listener_accept(world.listener, far)) == -EAGAIN)
		assert(poll(&in, 1, WAIT_MS) == 1);
	assert(!rc);
}

static void world_close(void)
{
	weir_mux_conn_close(world.near);
	weir_mux_conn_close(world.far);
	weir_mux_listener_close(world.listener);
	weir_mux_close(world.steady);
	share_daemon_close(&world.share);
}

static void world_open(void)
{
	static const char terms[] = "default memory 64M connections 64";
	const struct weir_mux_options options = {
		.listen = "127.0.0.1:0", .ring_bytes = 4096, .timeout_ns = TIMEOUT_NS, .buffers = 8
	};
	struct weir_mux_info info;
	int rc;

	snprintf(world.path, sizeof(world.path), "/tmp/weir-fuzz-%d.sock", getpid());
	rc = share_config_parse(terms, sizeof(terms) - 1, &world.share.config, NULL);
	assert(!rc);
	rc = weir_mux_local_open(&options, &world.share.mux, NULL);
	assert(!rc);
	rc = share_daemon_open(&world.share, world.path, NULL);
	assert(!rc);
	weir_mux_local_info(world.share.mux, &info);
	memcpy(world.address, info.address, sizeof(world.address));
	world.steady = tenant_open();
	rc = weir_mux_listen(world.steady, SERVICE, 64, &world.listener);
	assert(!rc);
	connect_to(world.steady, &world.near, &world.far);
	atexit(world_close);
}

static void steady_passes(void)
{
	char data[300], got[300];
	size_t length;
	int rc;

	memset(data, 7, sizeof(data));
	rc = weir_mux_conn_send(world.near, data, sizeof(data), 0);
	assert(!rc);
	rc = weir_mux_conn_recv(world.far, got, sizeof(got), &length, 0);
	assert(!rc && length == sizeof(got) && !memcmp(got, data, length));
}

/* Change a word of memory that the daemon reads: near the old value, or to anything. */
static void scribble(struct input *in, void *memory, size_t bytes)
{
	uint32_t *words = memory, place, value;

	take_input(in, &place, 2);
	take_input(in, &value, 4);
	words += place % (bytes / sizeof(*words));
	if (value & 1)
		value = __atomic_load_n(words, __ATOMIC_RELAXED) + (value >> 1) % 9 - 4;
	__atomic_store_n(words, value, __ATOMIC_RELAXED);
}

/* An RDMA operation with small errors. */
static void order(struct hostile *h, struct input *in)
{
	struct weir_mux_rdma_op_desc *o = &h->near->shm->rdma_op;

	o->is_read = take_byte(in) & 1;
	o->handle = h->handle + take_byte(in) % 3;
	o->region = h->region + take_byte(in) % 3;
	take_input(in, &o->there, 2);
	take_input(in, &o->at, 2);
	take_input(in, &o->length, 3);
	__atomic_store_n(&o->state, WEIR_MUX_RDMA_OP_SUBMITTED, __ATOMIC_RELEASE);
	h->near->host->news(h->near);
}

/* The same for a zc_send. */
static void lend(struct hostile *h, struct input *in)
{
	struct weir_mux_rdma_op_desc *zc_send = &h->near->shm->zc_send;

	zc_send->region = h->region + take_byte(in) % 3;
	take_input(in, &zc_send->at, 2);
	take_input(in, &zc_send->length, 2);
	__atomic_store_n(&zc_send->state, WEIR_MUX_RDMA_OP_SUBMITTED, __ATOMIC_SEQ_CST);
	h->near->host->news(h->near);
}

/*
 * A request with small errors. Requests for foreign addresses are left out, because they would
 * wait for a timeout.
 */
static void send_request(struct hostile *h, struct input *in)
{
	struct weir_mux_ipc_request a = { .number = UINT32_MAX };
	uint8_t length = take_byte(in);

	a.what = take_byte(in) % 20;
	a.nr = take_byte(in) % 4;
	take_input(in, &a.value, 1 + take_byte(in) % 4);
	a.service = SERVICE + 1;
	a.class_nr = take_byte(in) % 4;
	take_input(in, &a.weight, 2);
	take_input(in, &a.at, 3);
	take_input(in, &a.length, take_byte(in) % 9);
	snprintf(a.peer, sizeof(a.peer), "%s", world.address);
	if (a.what == WEIR_MUX_IPC_DRAIN && take_byte(in) % 16)
		return; /* takes the whole timeout */
	weir_mux_ipc_send(h->tenant->socket, &a, length ? sizeof(a) : 5, NULL, 0);
}

static void grant(struct hostile *h)
{
	struct weir_mux_ipc_request a = { .what = WEIR_MUX_IPC_REGION, .length = 4096 };
	struct weir_mux_ipc_reply answer;
	int fds[WEIR_MUX_IPC_FDS_MAX];

	if (weir_mux_proxy_call(h->tenant, &a, &answer, fds))
		return;
	close(fds[0]);
	h->region = answer.nr;
	a = (struct weir_mux_ipc_request){
		.what = WEIR_MUX_IPC_GRANT, .nr = 0, .value = h->region, .length = 4096, .weight = 3
	};
	if (!weir_mux_proxy_call(h->tenant, &a, &answer, NULL))
		h->handle = answer.nr;
}

static void messages(struct hostile *h)
{
	char data[256] = "";
	size_t length;

	/*
	 * Always the same length: the same call must finish a message that the ring took in
	 * part.
	 */
	weir_mux_conn_send(h->near, data, 200, WEIR_MUX_CONN_DONTWAIT);
	weir_mux_conn_send(h->far, data, 200, WEIR_MUX_CONN_DONTWAIT);
	weir_mux_conn_recv(h->near, data, sizeof(data), &length, WEIR_MUX_CONN_DONTWAIT);
	weir_mux_conn_recv(h->far, data, sizeof(data), &length, WEIR_MUX_CONN_DONTWAIT);
}

static void step(struct hostile *h, struct input *in)
{
	switch (take_byte(in) % 9) {
	case 0:
	case 1:
		scribble(in, h->near->shm, sizeof(*h->near->shm));
		break;
	case 2:
		scribble(in, h->tenant->doorbells, sizeof(*h->tenant->doorbells));
		break;
	case 3:
		order(h, in);
		break;
	case 4:
		send_request(h, in);
		break;
	case 5:
		messages(h);
		break;
	case 6:
		grant(h);
		break;
	case 7:
		lend(h, in);
		break;
	default:
		sched_yield();
		break;
	}
	h->near->host->news(h->near);
}

/* Leave without a word, as if killed; then release everything held. */
static void hostile_end(struct hostile *h)
{
	shutdown(h->tenant->socket, SHUT_RDWR);
	weir_mux_conn_close(h->far);
	weir_mux_close(&h->tenant->mux);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct hostile h = { 0 };
	struct weir_mux *mux;
	int steps = 0;

	if (!world.steady)
		world_open();
	steady_passes();
	mux = tenant_open();
	h.tenant = container_of(mux, struct weir_mux_proxy, mux);
	connect_to(mux, &h.near, &h.far);
	while (in.left && steps++ < STEPS_MAX)
		step(&h, &in);
	steady_passes();
	hostile_end(&h);
	steady_passes();
	return 0;
}
