/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whatever a tenant of weir share writes into the memory that it shares with the daemon, and
 * whatever it asks: it harms itself alone. Another tenant's messages pass before, after and
 * meanwhile.
 *
 * The daemon, both tenants and the mux at the other end are in this process; the daemon connects to
 * itself.
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
#define TIMEOUT_NS 5000000000 /* of the mux: who waits for what a hostile tenant owes waits so long */
#define WAIT_MS 60000
#define STEPS_MAX 64 /* of an input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

static struct {
	struct share share;
	char path[64], address[64];
	struct weir_mux *steady;
	struct weir_listener *listener;
	struct weir_conn *near, *far;
} world;

/* A tenant that does as the input says. */
struct hostile {
	struct weir_tenant *tenant;
	struct weir_conn *near, *far; /* the other end is the steady tenant's */
	uint32_t region, handle;
};

/* What the input has no more of is zero. */
static void take(struct input *in, void *to, size_t n)
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

	take(in, &byte, 1);
	return byte;
}

static struct weir_mux *tenant_open(void)
{
	const struct weir_mux_options options = { .share = world.path };
	struct weir_mux *mux = NULL;
	int rc = weir_mux_open(&options, &mux, NULL);

	assert(!rc);
	return mux;
}

/* A connection of @mux, and its other end, which the steady tenant has. */
static void connect_to(struct weir_mux *mux, struct weir_conn **near, struct weir_conn **far)
{
	struct pollfd in = { .fd = weir_listener_fd(world.listener), .events = POLLIN };
	int rc;

	/* What those before had is still being given back: all are of one user. */
	while ((rc = weir_mux_connect(mux, world.address, SERVICE, NULL, near, NULL)) == -EDQUOT)
		sched_yield();
	assert(!rc);
	while ((rc = weir_listener_accept(world.listener, far)) == -EAGAIN)
		assert(poll(&in, 1, WAIT_MS) == 1);
	assert(!rc);
}

static void world_close(void)
{
	weir_conn_close(world.near);
	weir_conn_close(world.far);
	weir_listener_close(world.listener);
	weir_mux_close(world.steady);
	share_close(&world.share);
}

static void world_open(void)
{
	static const char terms[] = "default memory 64M connections 64";
	const struct weir_mux_options options = { .listen = "127.0.0.1:0", .ring_bytes = 4096,
						  .timeout_ns = TIMEOUT_NS, .buffers = 8 };
	struct weir_mux_info info;
	int rc;

	snprintf(world.path, sizeof(world.path), "/tmp/weir-fuzz-%d.sock", getpid());
	rc = config_parse(terms, sizeof(terms) - 1, &world.share.config, NULL);
	assert(!rc);
	rc = weir_hub_open(&options, &world.share.hub, NULL);
	assert(!rc);
	rc = share_open(&world.share, world.path, NULL);
	assert(!rc);
	weir_hub_info(world.share.hub, &info);
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
	rc = weir_conn_send(world.near, data, sizeof(data), 0);
	assert(!rc);
	rc = weir_conn_recv(world.far, got, sizeof(got), &length, 0);
	assert(!rc && length == sizeof(got) && !memcmp(got, data, length));
}

/* A word of memory that the daemon reads: near what it is, or anything. */
static void scribble(struct input *in, void *memory, size_t bytes)
{
	uint32_t *words = memory, place, value;

	take(in, &place, 2);
	take(in, &value, 4);
	words += place % (bytes / sizeof(*words));
	if (value & 1)
		value = __atomic_load_n(words, __ATOMIC_RELAXED) + (value >> 1) % 9 - 4;
	__atomic_store_n(words, value, __ATOMIC_RELAXED);
}

/* An order that is nearly right. */
static void order(struct hostile *h, struct input *in)
{
	struct weir_order *o = &h->near->door->order;

	o->is_read = take_byte(in) & 1;
	o->handle = h->handle + take_byte(in) % 3;
	o->region = h->region + take_byte(in) % 3;
	take(in, &o->there, 2);
	take(in, &o->at, 2);
	take(in, &o->length, 3);
	__atomic_store_n(&o->state, WEIR_ORDER_GIVEN, __ATOMIC_RELEASE);
	h->near->host->news(h->near);
}

/* The same, of a loan. */
static void lend(struct hostile *h, struct input *in)
{
	struct weir_order *loan = &h->near->door->loan;

	loan->region = h->region + take_byte(in) % 3;
	take(in, &loan->at, 2);
	take(in, &loan->length, 2);
	__atomic_store_n(&loan->state, WEIR_ORDER_GIVEN, __ATOMIC_SEQ_CST);
	h->near->host->news(h->near);
}

/* A question that is nearly right; what is asked of others' addresses would wait for them. */
static void ask(struct hostile *h, struct input *in)
{
	struct weir_share_ask a = { .number = UINT32_MAX };
	uint8_t length = take_byte(in);

	a.what = take_byte(in) % 20;
	a.nr = take_byte(in) % 4;
	take(in, &a.value, 1 + take_byte(in) % 4);
	a.service = SERVICE + 1;
	a.class_nr = take_byte(in) % 4;
	take(in, &a.weight, 2);
	take(in, &a.at, 3);
	take(in, &a.length, take_byte(in) % 9);
	snprintf(a.peer, sizeof(a.peer), "%s", world.address);
	if (a.what == WEIR_SHARE_DRAIN && take_byte(in) % 16)
		return; /* it takes the timeout */
	weir_share_send(h->tenant->socket, &a, length ? sizeof(a) : 5, NULL, 0);
}

static void grant(struct hostile *h)
{
	struct weir_share_ask a = { .what = WEIR_SHARE_REGION, .length = 4096 };
	struct weir_share_answer answer;
	int fds[WEIR_SHARE_FDS_MAX];

	if (weir_tenant_ask(h->tenant, &a, &answer, fds))
		return;
	close(fds[0]);
	h->region = answer.nr;
	a = (struct weir_share_ask){ .what = WEIR_SHARE_GRANT, .nr = 0, .value = h->region,
				     .length = 4096, .weight = 3 };
	if (!weir_tenant_ask(h->tenant, &a, &answer, NULL))
		h->handle = answer.nr;
}

static void messages(struct hostile *h)
{
	char data[256] = "";
	size_t length;

	/* Always as long: what a ring has taken in part is owed by the same call. */
	weir_conn_send(h->near, data, 200, WEIR_CONN_DONTWAIT);
	weir_conn_send(h->far, data, 200, WEIR_CONN_DONTWAIT);
	weir_conn_recv(h->near, data, sizeof(data), &length, WEIR_CONN_DONTWAIT);
	weir_conn_recv(h->far, data, sizeof(data), &length, WEIR_CONN_DONTWAIT);
}

static void step(struct hostile *h, struct input *in)
{
	switch (take_byte(in) % 9) {
	case 0:
	case 1:
		scribble(in, h->near->door, sizeof(*h->near->door));
		break;
	case 2:
		scribble(in, h->tenant->board, sizeof(*h->tenant->board));
		break;
	case 3:
		order(h, in);
		break;
	case 4:
		ask(h, in);
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

/* It goes without a word, as if it had been killed; then what it holds is let go of. */
static void hostile_end(struct hostile *h)
{
	shutdown(h->tenant->socket, SHUT_RDWR);
	weir_conn_close(h->far);
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
	h.tenant = container_of(mux, struct weir_tenant, mux);
	connect_to(mux, &h.near, &h.far);
	while (in.left && steps++ < STEPS_MAX)
		step(&h, &in);
	steady_passes();
	hostile_end(&h);
	steady_passes();
	return 0;
}
