/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux dedup; devices: softnic rxe; timeout: 180 */
/* Two muxes share a single remote, in whatever way they meet. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/mux/ends.h"

#define ADDRESSES 40

static unsigned int queue_pairs(const struct mux_end *end)
{
	struct weir_mux_info info;

	weir_mux_local_info(end->mux, &info);
	return info.queue_pairs;
}

/* A key: a mux that listens beyond loopback needs one. */
static struct weir_key *key_make(void)
{
	char path[] = "/tmp/weir-meet-XXXXXX/key", *slash = strrchr(path, '/');
	struct weir_error error = { "" };
	struct weir_key *key = NULL;

	*slash = '\0';
	assert_non_null(mkdtemp(path));
	*slash = '/';
	if (weir_key_create(path, &error) || weir_key_load(path, &key, &error))
		fail_msg("%s", error.text);
	unlink(path);
	*slash = '\0';
	rmdir(path);
	return key;
}

/* Address @nr of a mux that listens everywhere. */
static const char *address_of(const struct mux_end *end, int nr)
{
	static char text[96];

	snprintf(text, sizeof(text), "127.0.0.%d%s", nr, strrchr(end->address, ':'));
	return text;
}

static bool has_many_addresses(void)
{
	return !strcmp(fixture_address(), "127.0.0.1");
}

static void all_addresses_of_a_mux_lead_to_one_remote(void **state)
{
	struct weir_mux_conn *near[ADDRESSES], *far[ADDRESSES];
	struct weir_key *key;
	struct mux_end a, b;
	int i;

	(void)state;
	if (!has_many_addresses())
		skip();
	key = key_make();
	end_open_at(&a, "0.0.0.0", key, 0);
	end_open_at(&b, "0.0.0.0", key, 0);
	for (i = 0; i < ADDRESSES; i++) {
		near[i] = connect_at(&a, address_of(&b, i + 1), WEIR_MUX_CLASS_NORMAL);
		far[i] = accept_at(&b);
		pass(near[i], far[i]);
		assert_ptr_equal(node_of(near[i]), node_of(near[0]));
		assert_ptr_equal(node_of(far[i]), node_of(far[0]));
	}
	assert_int_equal(queue_pairs(&a), 2);
	assert_int_equal(queue_pairs(&b), 2);
	for (i = 0; i < ADDRESSES; i++) {
		weir_mux_conn_close(near[i]);
		weir_mux_conn_close(far[i]);
	}
	/* The spare QPs are destroyed, too. */
	wait_nodes(&a, 1);
	wait_nodes(&b, 1);
	end_close(&a);
	end_close(&b);
	weir_key_free(key);
}

static void a_connect_back_uses_the_same_remote(void **state)
{
	struct mux_end *a = &((struct mux_ends_pair *)*state)->a,
		       *b = &((struct mux_ends_pair *)*state)->b;
	struct weir_mux_conn *near, *far, *back, *there;

	/* So far only a QP of class 0 exists; the connect back dials the other class. */
	near = connect_at(a, b->address, WEIR_MUX_CLASS_URGENT);
	far = accept_at(b);
	back = connect_to(b, a);
	there = accept_at(a);
	assert_ptr_equal(node_of(near), node_of(there));
	assert_ptr_equal(node_of(far), node_of(back));
	assert_int_equal(queue_pairs(a), 2);
	assert_int_equal(queue_pairs(b), 2);
	pass(near, far);
	pass(far, near);
	pass(back, there);
	pass(there, back);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	weir_mux_conn_close(back);
	weir_mux_conn_close(there);
	wait_nodes(a, 1);
	wait_nodes(b, 1);
}

struct mux_meet_caller {
	pthread_t thread;
	pthread_barrier_t *start;
	const struct mux_end *from, *to;
	unsigned int class_nr;
	struct weir_mux_conn *conn;
	struct weir_error error;
};

static void *call(void *arg)
{
	struct mux_meet_caller *caller = arg;
	const struct weir_mux_conn_options options = { .size = sizeof(options),
						       .class_nr = caller->class_nr };

	pthread_barrier_wait(caller->start);
	weir_mux_connect(&caller->from->mux->mux, caller->to->address, SERVICE, &options,
			 &caller->conn, &caller->error);
	return NULL;
}

/* All connects succeed, over a single remote. */
static void both_connect_at_once(struct mux_end *const ends[2])
{
	struct mux_meet_caller callers[4];
	struct weir_mux_conn *accepted[4];
	pthread_barrier_t start;
	int i;

	assert_int_equal(pthread_barrier_init(&start, NULL, 4), 0);
	for (i = 0; i < 4; i++) {
		callers[i] = (struct mux_meet_caller){ .start = &start,
						       .from = ends[i % 2],
						       .to = ends[1 - i % 2],
						       .class_nr = i / 2 };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
		if (!callers[i].conn)
			fail_msg("%s", callers[i].error.text);
		accepted[i] = accept_at(callers[i].to);
	}
	for (i = 0; i < 4; i++)
		assert_ptr_equal(node_of(callers[i].conn), node_of(accepted[1 - i % 2]));
	for (i = 0; i < 4; i++) {
		weir_mux_conn_close(callers[i].conn);
		weir_mux_conn_close(accepted[i]);
	}
	for (i = 0; i < 2; i++) {
		wait_nodes(ends[i], 1);
		assert_int_equal(queue_pairs(ends[i]), 2);
	}
	pthread_barrier_destroy(&start);
}

static void simultaneous_connects_agree_on_one_remote(void **state)
{
	int i, rounds = fixture_rounds(30);
	struct mux_ends_pair *pair;

	for (i = 0; i < rounds; i++) {
		pair_open(state);
		pair = *state;
		both_connect_at_once((struct mux_end *[]){ &pair->a, &pair->b });
		pair_close(state);
	}
}

static void a_mux_that_connects_to_itself_is_both_ends(void **state)
{
	struct weir_mux_conn *near, *far, *other;
	struct weir_key *key = NULL;
	struct mux_end a;

	(void)state;
	if (has_many_addresses()) {
		key = key_make();
		end_open_at(&a, "0.0.0.0", key, 20 * WEIR_NS_PER_MS);
		near = connect_at(&a, address_of(&a, 1), WEIR_MUX_CLASS_NORMAL);
	} else {
		end_open(&a, 20 * WEIR_NS_PER_MS);
		near = connect_to(&a, &a);
	}
	far = accept_at(&a);
	pass(near, far);
	pass(far, near);
	assert_int_equal(nodes_of(a.mux), 2);
	if (key) {
		other = connect_at(&a, address_of(&a, 2), WEIR_MUX_CLASS_NORMAL);
		assert_ptr_equal(node_of(other), node_of(near));
		weir_mux_conn_close(accept_at(&a));
		weir_mux_conn_close(other);
	}
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	wait_nodes(&a, 0);
	end_close(&a);
	weir_key_free(key);
}

/* The peer may not have noticed the loss, and reports the remote as known. */
static void an_end_that_lost_a_remote_creates_another(void **state)
{
	struct mux_end *a = &((struct mux_ends_pair *)*state)->a,
		       *b = &((struct mux_ends_pair *)*state)->b;
	int i, rounds = fixture_rounds(30);
	struct weir_mux_conn *near, *far;

	for (i = 0; i < rounds; i++) {
		near = connect_to(a, b);
		far = accept_at(b);
		pass(near, far);
		weir_mux_remote_fail(node_of(near), -ECONNRESET);
		weir_mux_conn_close(near);
		weir_mux_conn_close(far);
	}
	wait_nodes(a, 0);
	wait_nodes(b, 0);
}

/* With the key, an impostor cuts off the real mux, but no other. */
static void a_false_id_hurts_only_the_claimed_mux(void **state)
{
	struct weir_mux_conn *near[3], *far[3];
	struct mux_end ends[3], b;
	size_t length;
	char byte;
	int i;

	(void)state;
	end_open(&b, 0);
	for (i = 0; i < 3; i++)
		end_open(&ends[i], 0);
	memcpy(ends[2].mux->id, ends[0].mux->id, sizeof(ends[2].mux->id));
	for (i = 0; i < 3; i++) {
		near[i] = connect_to(&ends[i], &b);
		far[i] = accept_at(&b);
	}
	assert_int_equal(weir_mux_conn_recv(near[0], &byte, 1, &length, 0), -ECONNRESET);
	assert_int_equal(weir_mux_conn_recv(far[0], &byte, 1, &length, 0), -ECONNRESET);
	pass(near[1], far[1]);
	pass(near[2], far[2]);
	for (i = 0; i < 3; i++) {
		weir_mux_conn_close(near[i]);
		weir_mux_conn_close(far[i]);
		end_close(&ends[i]);
	}
	end_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_addresses_of_a_mux_lead_to_one_remote),
		pair_test(a_connect_back_uses_the_same_remote),
		cmocka_unit_test(simultaneous_connects_agree_on_one_remote),
		cmocka_unit_test(a_mux_that_connects_to_itself_is_both_ends),
		pair_test(an_end_that_lost_a_remote_creates_another),
		cmocka_unit_test(a_false_id_hurts_only_the_claimed_mux),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
