/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages between two programs, here two threads of one: the sender writes them in slots that lie
 * in
 * the receiver's memory as soon as they are committed, and the receiver takes them where they lie.
 */
#include <pthread.h>
#include "example.h"

#define MESSAGES 10000
#define TOGETHER 16

static void *send_all(void *address)
{
	struct weir_exchange_slot slots[TOGETHER];
	struct weir_exchange *x;
	struct weir_error error;
	int i, n, next = 0;

	if (weir_exchange_connect(address, NULL, &x, &error)) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	while (next < MESSAGES) {
		n = weir_exchange_acquire(x, slots, TOGETHER, WEIR_EXCHANGE_FOREVER);
		check(n, "acquire slots");
		for (i = 0; i < n && next < MESSAGES; i++) {
			*(int *)slots[i].data = next++;
			slots[i].length = sizeof(int);
		}
		check(weir_exchange_commit(x, slots, i), "commit slots");
		check(weir_exchange_abandon(x, slots + i, n - i), "abandon slots");
	}
	check(weir_exchange_finish(x, WEIR_EXCHANGE_FOREVER), "finish");
	weir_exchange_close(x);
	return NULL;
}

static long take_all(struct weir_exchange *x, struct weir_exchange_info *info)
{
	struct weir_exchange_slot slots[TOGETHER];
	long sum = 0;
	int i, n;

	while ((n = weir_exchange_take(x, slots, TOGETHER, WEIR_EXCHANGE_FOREVER)) > 0) {
		for (i = 0; i < n; i++)
			sum += *(int *)slots[i].data;
		check(weir_exchange_release(x, slots, n), "release slots");
	}
	check(n, "take");
	weir_exchange_info(x, info, sizeof(*info));
	return sum;
}

int main(void)
{
	struct weir_exchange_listener *listener;
	struct weir_exchange_info info;
	struct weir_exchange *x;
	struct weir_error error;
	pthread_t sender;
	long sum;

	if (weir_exchange_listen("127.0.0.1:0", NULL, &listener, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	pthread_create(&sender, NULL, send_all, (char *)weir_exchange_address(listener));
	check(weir_exchange_accept(listener, WEIR_EXCHANGE_FOREVER, &x, NULL), "accept");
	sum = take_all(x, &info);
	weir_exchange_close(x);
	pthread_join(sender, NULL);
	weir_exchange_unlisten(listener);
	printf("%lu messages, their sum is %ld\nwith %lu completions here\n",
	       (unsigned long)info.taken, sum, (unsigned long)info.completions);
	return sum != (long)MESSAGES * (MESSAGES - 1) / 2;
}
