/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Three workers, here threads of one program, add up their vectors after a step of training. Each
 * worker adds one part of all vectors, and then sends its sums to the others.
 */
#include <pthread.h>
#include "example.h"

#define SIZE 3
#define PART 1000

struct group_member {
	pthread_t thread;
	struct weir_exchange_listener *listener; /* of member 0 */
	const char *address; /* where that is, for the others */
	unsigned int number;
	float sum[SIZE * PART];
};

static void add(void *into, const void *from, size_t length, void *arg)
{
	const float *more = from;
	float *sum = into;
	size_t i;

	(void)arg;
	for (i = 0; i < length / sizeof(*sum); i++)
		sum[i] += more[i];
}

static struct weir_group *meet(const struct group_member *m)
{
	const uint64_t patience_ns = 30000000000;
	struct weir_group *group;
	struct weir_error error;
	int rc;

	if (m->number)
		rc = weir_group_join(m->address, NULL, m->number, SIZE, NULL, &group, &error);
	else
		rc = weir_group_lead(m->listener, SIZE, patience_ns, &group, &error);
	if (rc) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	return group;
}

static void *work(void *arg)
{
	struct group_member *m = arg;
	struct weir_group *group = meet(m);
	float mine[SIZE * PART], part[PART];
	int i;

	for (i = 0; i < SIZE * PART; i++)
		mine[i] = (float)(i * (int)(m->number + 1));
	check(weir_group_reduce_scatter(group, mine, sizeof(part), part, add, NULL), "reduce");
	check(weir_group_wait(group, WEIR_EXCHANGE_FOREVER), "wait for the sum");
	check(weir_group_all_gather(group, part, sizeof(part), m->sum), "gather");
	check(weir_group_wait(group, WEIR_EXCHANGE_FOREVER), "wait for all sums");
	check(weir_group_finish(group), "finish");
	check(weir_group_wait(group, WEIR_EXCHANGE_FOREVER), "wait for the others");
	weir_group_close(group);
	return NULL;
}

int main(void)
{
	static struct group_member members[SIZE];
	struct weir_exchange_listener *listener;
	struct weir_error error;
	int i, wrong = 0;

	if (weir_exchange_listen("127.0.0.1:0", NULL, &listener, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	for (i = 0; i < SIZE; i++) {
		members[i].number = (unsigned int)i;
		members[i].listener = listener;
		members[i].address = weir_exchange_address(listener);
		pthread_create(&members[i].thread, NULL, work, &members[i]);
	}
	for (i = 0; i < SIZE; i++)
		pthread_join(members[i].thread, NULL);
	for (i = 0; i < SIZE * SIZE * PART; i++)
		wrong += members[i / (SIZE * PART)].sum[i % (SIZE * PART)] !=
			 (float)(i % (SIZE * PART) * (1 + 2 + 3));
	printf("%d members, %d sums each, %d wrong\n", SIZE, SIZE * PART, wrong);
	weir_exchange_unlisten(listener);
	return wrong != 0;
}
