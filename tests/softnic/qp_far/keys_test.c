// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic freed keys; devices: softnic; timeout: 60 */
/*
 * The memory of a queue pair's keys, when softnic gives it back: no key is left in it. Both ends
 * are in this process, and packets between them take the way to other hosts.
 */
#include <sys/mman.h>

#include "tests/support/verbs_puppet.h"
#include "softnic/qp/qp.h"
#include "softnic/qp_far/far.h"

static struct watched_keys {
	const void *at; /* the agreement of a queue pair; set last; atomic: any thread unmaps */
	uint8_t keys[2][SEAL_KEY_BYTES], session[AGREE_SESSION_BYTES];
	unsigned int freed, found;
} watched[2];

int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);

/* Reads memory that threads may use meanwhile, and so neither by memmem() nor seen by TSan. */
__attribute__((no_sanitize("thread")))
static bool holds(const void *at, size_t room, const void *bytes, size_t size)
{
	const uint8_t *from = at, *key = bytes;

	for (size_t i = 0; i + size <= room; i++) {
		size_t same = 0;

		while (same < size && from[i + same] == key[same])
			same++;
		if (same == size)
			return true;
	}
	return false;
}

int __wrap_munmap(void *at, size_t size)
{
	for (struct watched_keys *w = watched; at && w < watched + 2; w++) {
		if (__atomic_load_n(&w->at, __ATOMIC_ACQUIRE) != at)
			continue;
		w->freed++;
		w->found += holds(at, size, w->keys[0], SEAL_KEY_BYTES) +
			    holds(at, size, w->keys[1], SEAL_KEY_BYTES) +
			    holds(at, size, w->session, AGREE_SESSION_BYTES);
		__atomic_store_n(&w->at, NULL, __ATOMIC_RELEASE);
	}
	return __real_munmap(at, size);
}

static void watch(struct watched_keys *w, const struct endpoint *e)
{
	const struct far *f = to_qp(e->qp)->far;

	assert_int_equal(f->agree->state, AGREE_SEALED);
	memcpy(w->keys[0], f->agree->seal.out.bytes, SEAL_KEY_BYTES);
	memcpy(w->keys[1], f->agree->seal.in[0].bytes, SEAL_KEY_BYTES);
	memcpy(w->session, f->agree->session, AGREE_SESSION_BYTES);
	assert_true(holds(f->agree, sizeof(*f->agree), w->keys[0], SEAL_KEY_BYTES));
	assert_true(holds(f->agree, sizeof(*f->agree), w->keys[1], SEAL_KEY_BYTES));
	__atomic_store_n(&w->at, f->agree, __ATOMIC_RELEASE);
}

static void open_sealed(struct endpoint *a, struct endpoint *b)
{
	struct endpoint_name at_a, at_b;
	struct test_wr w;

	for (struct watched_keys *w = watched; w < watched + 2; w++) {
		__atomic_store_n(&w->at, NULL, __ATOMIC_RELEASE);
		w->freed = 0;
		w->found = 0;
	}
	end_open(a, ALL_ACCESS);
	end_open_sharing(b, a);
	at_a = end_name(a);
	at_b = end_name(b);
	end_connect(a, &at_b, &plain);
	end_connect(b, &at_a, &plain);
	do_wr(a, wr_make(&w, a, IBV_WR_RDMA_WRITE, 0, 64, 4096), IBV_WC_SUCCESS);
	watch(&watched[0], a);
	watch(&watched[1], b);
}

static void expect_wiped(void)
{
	for (struct watched_keys *w = watched; w < watched + 2; w++) {
		assert_int_equal(w->freed, 1);
		assert_int_equal(w->found, 0);
	}
}

static void a_destroyed_queue_pair_leaves_no_key(void **state)
{
	struct endpoint a, b;

	(void)state;
	open_sealed(&a, &b);
	end_close(&b);
	end_close(&a);
	expect_wiped();
}

static void a_reset_queue_pair_leaves_no_key(void **state)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct endpoint a, b;

	(void)state;
	open_sealed(&a, &b);
	assert_int_equal(ibv_modify_qp(b.qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(ibv_modify_qp(a.qp, &reset, IBV_QP_STATE), 0);
	expect_wiped();
	end_close(&b);
	end_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_destroyed_queue_pair_leaves_no_key),
		cmocka_unit_test(a_reset_queue_pair_leaves_no_key),
	};

	setenv("WEIR_SOFTNIC", "near=0,encrypt=2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
