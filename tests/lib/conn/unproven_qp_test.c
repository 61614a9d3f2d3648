/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib unproven qp; devices: softnic rxe; timeout: 120 */
/*
 * Until a peer has proven the key, its queue pair admits no RDMA, neither at the listening end
 * nor at the connecting end.
 *
 * The stranger here uses bare verbs and knows addresses and rkeys. The test registers
 * unrestricted memory in each protection domain of weir, so that only the queue pair can
 * refuse.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/conn/endpoint.h"
#include "lib/conn/key.h"
#include "lib/conn/proof.h"
#include "tests/support/raw_client.h"
#include "tests/lib/mux/ends.h"
#include "wire/exchange.h"

#define EXPOSED_MAX 256
#define EXPOSED_BYTES 64u
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define QUIET_MS 100

static const struct weir_key key = { .length = WEIR_KEY_MIN, .bytes = "a key of proofs." };
static const uint8_t mux_id[WIRE_MUX_ID] = "a mux of verbs";

/* Memory of a protection domain. @mr: NULL after the domain has gone. */
struct exposed {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint64_t at;
	uint32_t rkey;
	char bytes[EXPOSED_BYTES];
};

static struct exposed all_exposed[EXPOSED_MAX], *last_exposed;
static unsigned int nr_exposed;
static pthread_mutex_t exposed_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t stranger; /* the thread whose own domains do not count as the last */

struct ibv_pd *__real_ibv_alloc_pd(struct ibv_context *context);
struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *context);
int __real_ibv_dealloc_pd(struct ibv_pd *pd);
int __wrap_ibv_dealloc_pd(struct ibv_pd *pd);

struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = __real_ibv_alloc_pd(context);
	struct exposed *e;

	if (!pd)
		return NULL;
	pthread_mutex_lock(&exposed_lock);
	assert_true(nr_exposed < EXPOSED_MAX);
	e = &all_exposed[nr_exposed++];
	e->pd = pd;
	e->mr = ibv_reg_mr(pd, e->bytes, sizeof(e->bytes), ALL);
	assert_non_null(e->mr);
	e->at = (uintptr_t)e->bytes;
	e->rkey = e->mr->rkey;
	if (!pthread_equal(pthread_self(), stranger))
		last_exposed = e;
	pthread_mutex_unlock(&exposed_lock);
	return pd;
}

int __wrap_ibv_dealloc_pd(struct ibv_pd *pd)
{
	unsigned int i;

	pthread_mutex_lock(&exposed_lock);
	for (i = 0; i < nr_exposed; i++)
		if (all_exposed[i].pd == pd && all_exposed[i].mr) {
			ibv_dereg_mr(all_exposed[i].mr);
			all_exposed[i].mr = NULL;
		}
	pthread_mutex_unlock(&exposed_lock);
	return __real_ibv_dealloc_pd(pd);
}

static struct exposed *exposed_of(const struct ibv_pd *pd)
{
	struct exposed *found = NULL;
	unsigned int i;

	pthread_mutex_lock(&exposed_lock);
	for (i = 0; i < nr_exposed; i++)
		if (all_exposed[i].pd == pd && all_exposed[i].mr)
			found = &all_exposed[i];
	pthread_mutex_unlock(&exposed_lock);
	assert_non_null(found);
	return found;
}

/* The memory of the domain last created by weir, in a thread of its own. */
static struct exposed *exposed_last(void)
{
	struct exposed *e;

	pthread_mutex_lock(&exposed_lock);
	e = last_exposed;
	pthread_mutex_unlock(&exposed_lock);
	assert_non_null(e);
	return e;
}

/* Attempts of a stranger. A failed attempt kills the connection, so each gets a new connection. */
enum attempt { WRITE, READ, ADD, WRITE_WITH_IMMEDIATE, EMPTY_WRITE, NR_ATTEMPTS };

static const char *const names[NR_ATTEMPTS] = {
	[WRITE] = "a write",
	[READ] = "a read",
	[ADD] = "an atomic",
	[WRITE_WITH_IMMEDIATE] = "a write with an immediate",
	[EMPTY_WRITE] = "an empty write",
};

static int attempt(struct raw_client *raw, enum attempt what, const struct exposed *e)
{
	memset(raw->data, 0xee, EXPOSED_BYTES);
	switch (what) {
	case WRITE:
		return raw_write(raw, e->at, e->rkey, EXPOSED_BYTES);
	case READ:
		return raw_read(raw, e->at, e->rkey, EXPOSED_BYTES);
	case ADD:
		return raw_add(raw, e->at, e->rkey, 1);
	case WRITE_WITH_IMMEDIATE:
		return raw_write_imm(raw, e->at, e->rkey, EXPOSED_BYTES);
	default:
		return raw_write(raw, 0, 0, 0);
	}
}

/* @rc: of the attempt. */
static void assert_kept_out(enum attempt what, int rc, const struct exposed *e)
{
	static const char untouched[EXPOSED_BYTES];

	if (!rc)
		fail_msg("%s succeeds before the proof", names[what]);
	assert_memory_equal(e->bytes, untouched, EXPOSED_BYTES);
}

static void stranger_connect(struct raw_client *raw, const char *address)
{
	const struct wire_handshake_connect connect = raw_request(&key, 0, 0);

	assert_int_equal(raw_connect(raw, address, &connect, sizeof(connect)), 0);
}

static int ends_open(void **state)
{
	static struct mux_ends_pair pair;

	*state = &pair;
	end_open_at(&pair.a, fixture_address(), &key, 0);
	end_open_at(&pair.b, fixture_address(), &key, 0);
	return 0;
}

static int ends_close(void **state)
{
	struct mux_ends_pair *pair = *state;

	end_close(&pair->a);
	end_close(&pair->b);
	return 0;
}

static void a_stranger_reaches_nothing_of_a_mux_it_connects_to(void **state)
{
	const struct mux_end *end = &((struct mux_ends_pair *)*state)->a;
	struct exposed *e = exposed_of(end->mux->pd);
	struct raw_client raw;
	int what, rc;

	for (what = 0; what < NR_ATTEMPTS; what++) {
		stranger_connect(&raw, end->address);
		rc = attempt(&raw, what, e);
		raw_close(&raw);
		assert_kept_out(what, rc, e);
	}
}

/* The domain of an established connection really holds rings and regions. */
static void a_stranger_reaches_neither_rings_nor_regions(void **state)
{
	const struct mux_ends_pair *pair = *state;
	struct weir_mux_conn *near = connect_to(&pair->a, &pair->b), *far = accept_at(&pair->b);
	const struct weir_mux_account *account = &pair->b.mux->self;
	const struct weir_mux_ring_slab *slab;
	struct weir_mux_mr *mr;
	struct raw_client raw;

	assert_int_equal(weir_mux_mr_new(&pair->b.mux->self, 4096, &mr), 0);
	slab = weir_list_entry(account->slabs.next, struct weir_mux_ring_slab, link);
	stranger_connect(&raw, pair->b.address);
	memset(raw.data, 0xee, 64);
	assert_int_not_equal(raw_write(&raw, (uintptr_t)slab->mr_in->addr, slab->mr_in->rkey, 64),
			     0);
	raw_close(&raw);
	assert_int_equal(*(unsigned char *)slab->mr_in->addr, 0);
	stranger_connect(&raw, pair->b.address);
	assert_int_not_equal(raw_read(&raw, (uintptr_t)mr->base, mr->mr->rkey, 64), 0);
	raw_close(&raw);
	pass(near, far);
	pass(far, near);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	weir_mux_mr_free(mr);
}

static void a_peer_that_has_proven_the_key_to_a_mux_writes_and_reads(void **state)
{
	const struct mux_end *end = &((struct mux_ends_pair *)*state)->a;
	struct exposed *e = exposed_of(end->mux->pd);
	struct raw_client raw;

	stranger_connect(&raw, end->address);
	memcpy(raw.mux, mux_id, sizeof(raw.mux));
	raw_prove(&raw, &key, 0, 0); /* fails after the proof: a mux grants no credits */
	assert_int_equal(raw.handshake.state, WEIR_HANDSHAKE_DONE);
	assert_int_equal(attempt(&raw, WRITE, e), 0);
	assert_int_equal((unsigned char)e->bytes[0], 0xee);
	memset(e->bytes, 0x11, EXPOSED_BYTES);
	assert_int_equal(attempt(&raw, READ, e), 0);
	assert_int_equal(raw.data[0], 0x11);
	raw_close(&raw);
}

/* The mux sends the reason before the connection ends, and serves the next peer. */
static void a_peer_that_makes_up_a_proof_hears_the_mux_refuse_it(void **state)
{
	union wire_handshake_message made_up = { 0 };
	char message[WIRE_CONTROL_MESSAGE_BYTES];
	union wire_handshake_message answer;
	size_t length;
	static const struct weir_key other = { .length = WEIR_KEY_MIN,
					       .bytes = "another key....." };
	const struct mux_ends_pair *pair = *state;
	struct weir_mux_conn *near, *far;
	struct raw_client raw;

	stranger_connect(&raw, pair->a.address);
	memcpy(raw.mux, mux_id, sizeof(raw.mux));
	assert_int_equal(raw_prove(&raw, &other, 0, 0), -EKEYREJECTED);
	length = wire_handshake_encode(&made_up, WIRE_PROOF);
	assert_int_equal(raw_send(&raw, &made_up, length), 0);
	assert_int_equal(raw_receive(&raw, message, &length, 10000), 0);
	assert_int_equal(wire_handshake_decode(message, length, &answer), 0);
	assert_int_equal(answer.head.type, WIRE_REFUSAL);
	assert_int_equal(answer.refusal.status, EKEYREJECTED);
	raw_close(&raw);
	near = connect_to(&pair->b, &pair->a);
	far = accept_at(&pair->a);
	pass(near, far);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
}

/* CHALLENGE holds keys, a GID and a QPN. Nothing else follows, and the QP is still closed. */
static void a_client_that_says_hello_hears_a_challenge_alone(void **state)
{
	const struct mux_end *end = &((struct mux_ends_pair *)*state)->a;
	struct weir_handshake_setup setup = { .key = &key, .service.magic = WIRE_MAGIC };
	struct exposed *e = exposed_of(end->mux->pd);
	char message[WIRE_CONTROL_MESSAGE_BYTES];
	struct raw_client raw;
	size_t length;
	int rc;

	stranger_connect(&raw, end->address);
	assert_int_equal(raw_receive(&raw, message, &length, QUIET_MS), -ETIMEDOUT);
	assert_int_equal(weir_endpoint_query(raw.id, &setup.local, &setup.remote), 0);
	weir_handshake_secrets(&setup, setup.key, true);
	weir_handshake_client(&raw.handshake, &setup, message, &length);
	assert_int_equal(raw_send(&raw, message, length), 0);
	assert_int_equal(raw_receive(&raw, message, &length, 10000), 0);
	assert_int_equal(length, sizeof(struct wire_handshake_sealed_challenge));
	assert_int_equal(raw_receive(&raw, message, &length, QUIET_MS), -ETIMEDOUT);
	rc = attempt(&raw, WRITE, e);
	raw_close(&raw);
	assert_kept_out(WRITE, rc, e);
}

/* An end of weir, in its own thread, connects to a listening stranger. */
struct caller {
	int (*call)(struct caller *caller);
	struct mux_end *end; /* of a mux */
	char address[64];
	pthread_t thread;
	int rc;
};

static int call_mux(struct caller *caller)
{
	struct weir_mux_conn *conn;

	return weir_mux_connect(&caller->end->mux->mux, caller->address, SERVICE, NULL, &conn,
				NULL);
}

static int call_session(struct caller *caller)
{
	const struct weir_session_options options = { .size = sizeof(options), .key = &key };
	struct weir_session *session;

	return weir_session_open(caller->address, &options, &session, NULL);
}

static int call_exchange(struct caller *caller)
{
	const struct weir_exchange_options options = { .size = sizeof(options), .key = &key };
	struct weir_exchange *x;

	return weir_exchange_connect(caller->address, &options, &x, NULL);
}

static void *caller_run(void *arg)
{
	struct caller *caller = arg;

	caller->rc = caller->call(caller);
	return NULL;
}

static void caller_begin(struct caller *caller, struct raw_client *raw)
{
	assert_int_equal(
		raw_listen(raw, fixture_address(), caller->address, sizeof(caller->address)), 0);
	assert_int_equal(pthread_create(&caller->thread, NULL, caller_run, caller), 0);
	assert_int_equal(raw_accept(raw), 0);
}

static void caller_end(struct caller *caller, struct raw_client *raw)
{
	raw_close(raw);
	assert_int_equal(pthread_join(caller->thread, NULL), 0);
	assert_int_not_equal(caller->rc, 0);
}

/* HELLO holds a key, a GID, a QPN and ids. Nothing else follows before the stranger answers. */
static void caller_says_hello_alone(struct caller *caller)
{
	char message[WIRE_CONTROL_MESSAGE_BYTES];
	struct raw_client raw;
	size_t length;
	int rc;

	caller_begin(caller, &raw);
	assert_int_equal(raw_receive(&raw, message, &length, 10000), 0);
	rc = raw_receive(&raw, message, &length, QUIET_MS);
	caller_end(caller, &raw);
	assert_int_equal(length, sizeof(struct wire_handshake_sealed_hello));
	assert_int_equal(rc, -ETIMEDOUT);
}

static void caller_keeps_a_stranger_out(int (*call)(struct caller *caller), struct mux_end *end)
{
	struct caller caller = { .call = call, .end = end };
	struct exposed *e;
	struct raw_client raw;
	int what, rc;

	for (what = 0; what < NR_ATTEMPTS; what++) {
		caller_begin(&caller, &raw);
		e = end ? exposed_of(end->mux->pd) : exposed_last();
		rc = attempt(&raw, what, e);
		caller_end(&caller, &raw);
		assert_kept_out(what, rc, e);
	}
	caller_says_hello_alone(&caller);
}

static void a_stranger_reaches_nothing_of_a_mux_that_connects_to_it(void **state)
{
	caller_keeps_a_stranger_out(call_mux, &((struct mux_ends_pair *)*state)->a);
}

static void a_stranger_reaches_nothing_of_a_session(void **state)
{
	(void)state;
	caller_keeps_a_stranger_out(call_session, NULL);
}

static void a_stranger_reaches_nothing_of_an_exchange_that_connects(void **state)
{
	(void)state;
	caller_keeps_a_stranger_out(call_exchange, NULL);
}

struct listening {
	struct weir_exchange_listener *listener;
	struct weir_exchange *x;
	int rc;
};

static void *accept_run(void *arg)
{
	struct listening *l = arg;

	l->rc = weir_exchange_accept(l->listener, PATIENCE_NS, &l->x, NULL);
	return NULL;
}

/* A later peer that proves the key gets access. */
static void a_stranger_reaches_nothing_of_an_exchange_it_connects_to(void **state)
{
	const struct wire_exchange_connect connect = {
		.magic = WIRE_EXCHANGE_MAGIC,
		.version = WIRE_EXCHANGE_VERSION,
		.key_id = weir_key_id(&key),
	};
	const struct weir_exchange_options options = { .size = sizeof(options),
						       .key = &key,
						       .timeout_ns = PATIENCE_NS };
	struct listening l = { 0 };
	struct exposed *e[NR_ATTEMPTS];
	struct weir_exchange *x;
	int what, rc[NR_ATTEMPTS];
	pthread_t thread;
	char address[64];
	struct raw_client raw;

	(void)state;
	snprintf(address, sizeof(address), "%s:0", fixture_address());
	assert_int_equal(weir_exchange_listen(address, &options, &l.listener, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, accept_run, &l), 0);
	for (what = 0; what < NR_ATTEMPTS; what++) {
		assert_int_equal(raw_connect(&raw, weir_exchange_address(l.listener), &connect,
					     sizeof(connect)),
				 0);
		e[what] = exposed_last();
		rc[what] = attempt(&raw, what, e[what]);
		raw_close(&raw);
	}
	assert_int_equal(
		weir_exchange_connect(weir_exchange_address(l.listener), &options, &x, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(l.rc, 0);
	weir_exchange_close(x);
	weir_exchange_close(l.x);
	weir_exchange_unlisten(l.listener);
	for (what = 0; what < NR_ATTEMPTS; what++)
		assert_kept_out(what, rc[what], e[what]);
}

#define mux_test(f) cmocka_unit_test_setup_teardown(f, ends_open, ends_close)

/* A QP that may be opened would reach the device, which does not know this one. */
static void a_qp_opens_only_for_a_proof_over_itself(void **state)
{
	struct weir_handshake h = { .setup.local.qpn = 7 };
	struct ibv_qp qp = { .qp_num = 7 };

	(void)state;
	for (h.state = WEIR_HANDSHAKE_FAILED; h.state < WEIR_HANDSHAKE_PROVEN; h.state++)
		assert_int_equal(weir_proof_open(&h, &qp, ALL), -EKEYREJECTED);
	qp.qp_num = 8;
	for (; h.state <= WEIR_HANDSHAKE_DONE; h.state++)
		assert_int_equal(weir_proof_open(&h, &qp, ALL), -EKEYREJECTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		mux_test(a_stranger_reaches_nothing_of_a_mux_it_connects_to),
		mux_test(a_stranger_reaches_neither_rings_nor_regions),
		mux_test(a_peer_that_has_proven_the_key_to_a_mux_writes_and_reads),
		mux_test(a_peer_that_makes_up_a_proof_hears_the_mux_refuse_it),
		mux_test(a_client_that_says_hello_hears_a_challenge_alone),
		mux_test(a_stranger_reaches_nothing_of_a_mux_that_connects_to_it),
		cmocka_unit_test(a_stranger_reaches_nothing_of_a_session),
		cmocka_unit_test(a_stranger_reaches_nothing_of_an_exchange_that_connects),
		cmocka_unit_test(a_stranger_reaches_nothing_of_an_exchange_it_connects_to),
		cmocka_unit_test(a_qp_opens_only_for_a_proof_over_itself),
	};

	stranger = pthread_self();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
