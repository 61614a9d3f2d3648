/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The inbox: order, and the protocol with real threads. tests/model/inbox.pml checks every
 * interleaving of a few threads; this test exercises the real barriers.
 */
#include <pthread.h>

#include "core/base/combine.h"
#include "tests/support/engine_bench.h"

#define THREADS 4
#define PUSHES 5000
#define CHAIN 4

struct letter {
	struct weir_inbox_node node;
	int from;
	int number;
};

static struct letter *letter_of(struct weir_inbox_node *node)
{
	return container_of(node, struct letter, node);
}

static void comes_out_as_it_went_in(void **state)
{
	struct letter letters[3] = { { .number = 0 }, { .number = 1 }, { .number = 2 } };
	struct weir_inbox_node *node;
	struct weir_inbox inbox;
	int i;

	(void)state;
	weir_inbox_init(&inbox);
	assert_true(weir_inbox_is_empty(&inbox));
	assert_null(weir_inbox_take(&inbox));
	for (i = 0; i < 3; i++)
		weir_inbox_push(&inbox, &letters[i].node);
	assert_false(weir_inbox_is_empty(&inbox));
	node = weir_inbox_take(&inbox);
	for (i = 0; i < 3; i++, node = node->next)
		assert_int_equal(letter_of(node)->number, i);
	assert_null(node);
	assert_true(weir_inbox_is_empty(&inbox));
}

static void a_chain_pushed_at_once_stays_together(void **state)
{
	struct letter letters[5] = {
		{ .number = 0 }, { .number = 1 }, { .number = 2 }, { .number = 3 }, { .number = 4 }
	};
	struct weir_inbox_node *node;
	struct weir_inbox inbox;
	int i;

	(void)state;
	weir_inbox_init(&inbox);
	weir_inbox_push(&inbox, &letters[0].node);
	letters[3].node.next = &letters[2].node;
	letters[2].node.next = &letters[1].node;
	weir_inbox_push_all(&inbox, &letters[3].node, &letters[1].node);
	weir_inbox_push(&inbox, &letters[4].node);
	node = weir_inbox_take(&inbox);
	for (i = 0; i < 5; i++, node = node->next)
		assert_int_equal(letter_of(node)->number, i);
	assert_null(node);
}

/* A NIC: @is_locked guards the fields below. */
struct inbox_nic {
	struct weir_inbox inbox;
	bool is_locked; /* atomic; ordered as core/base/combine.h demands */
	int taken, posted;
	int next[THREADS]; /* the letter number expected next from each thread */
	int disorder;
};

static void take_all(struct inbox_nic *nic)
{
	struct weir_inbox_node *node = weir_inbox_take(&nic->inbox), *next;

	for (; node; node = next) {
		struct letter *letter = letter_of(node);

		next = node->next;
		nic->disorder += letter->number != nic->next[letter->from]++;
		nic->taken++;
		free(letter);
	}
}

/* The protocol, with chains of CHAIN letters. */
static void serve(struct inbox_nic *nic)
{
	bool has_more;

	do {
		if (__atomic_exchange_n(&nic->is_locked, true, __ATOMIC_SEQ_CST))
			return;
		take_all(nic);
		nic->posted += nic->taken - nic->posted < CHAIN ? nic->taken - nic->posted : CHAIN;
		has_more = nic->posted < nic->taken;
		__atomic_store_n(&nic->is_locked, false, __ATOMIC_SEQ_CST);
	} while (!weir_combine_may_leave(&nic->inbox, has_more));
}

struct pusher {
	pthread_t thread;
	struct inbox_nic *nic;
	int number;
};

static void *push_all(void *arg)
{
	const struct pusher *p = arg;
	int i;

	for (i = 0; i < PUSHES; i++) {
		struct letter *letter = malloc(sizeof(*letter));

		if (!letter)
			abort();
		letter->from = p->number;
		letter->number = i;
		weir_inbox_push(&p->nic->inbox, &letter->node);
		serve(p->nic);
	}
	return NULL;
}

static void no_node_is_forgotten(void **state)
{
	struct inbox_nic nic = { .is_locked = false };
	struct pusher pushers[THREADS];
	int i;

	(void)state;
	weir_inbox_init(&nic.inbox);
	for (i = 0; i < THREADS; i++) {
		pushers[i].nic = &nic;
		pushers[i].number = i;
		assert_int_equal(pthread_create(&pushers[i].thread, NULL, push_all, &pushers[i]),
				 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(pushers[i].thread, NULL);
	assert_int_equal(nic.taken, THREADS * PUSHES);
	assert_int_equal(nic.posted, THREADS * PUSHES);
	assert_int_equal(nic.disorder, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("the first node pushed is taken first", comes_out_as_it_went_in),
		SAYS("a chain pushed at once stays together, in order",
		     a_chain_pushed_at_once_stays_together),
		SAYS("when all have returned, all has been taken once, in order, and posted",
		     no_node_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
