/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Talking to the donor's application: a call is answered, a message is not, and the donor
 * may send one unasked. Here the donor is the one in donor.c.
 */
#include <string.h>
#include <unistd.h>
#include "example.h"

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	int *heard = arg;

	(void)peer;
	(void)call;
	printf("the donor says %.*s\n", (int)length, (const char *)data);
	__atomic_store_n(heard, 1, __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
	int heard = 0, waited_ms = 0;
	struct weir_session_options options = { .size = sizeof(options),
						.on_message = on_message,
						.arg = &heard };
	struct weir_session *session = example_session(argc, argv, &options);
	char reply[64];
	size_t length;

	check(weir_call(session, "a question", 10, reply, sizeof(reply), &length), "call");
	printf("the donor answers %.*s\n", (int)length, reply);

	check(weir_send(session, "a remark", 8), "send");
	while (!__atomic_load_n(&heard, __ATOMIC_ACQUIRE) && waited_ms++ < 5000)
		usleep(1000);
	weir_session_close(session);
	return !heard;
}
