/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program with a loop of its own: weir starts no thread (but one to mend a channel that broke),
 * its descriptor goes into the program's poll(2) beside all others, and callbacks run in
 * weir_session_process(). Here the donor is the one in donor.c.
 */
#include <poll.h>
#include "example.h"

static void answered(void *arg, int status, const void *reply, size_t length)
{
	int *left = arg;

	check(status, "call");
	printf("answer: %.*s\n", (int)length, (const char *)reply);
	--*left;
}

int main(int argc, char **argv)
{
	struct weir_session_options options = { .size = sizeof(options), .no_thread = true };
	struct weir_session *session = example_session(argc, argv, &options);
	struct pollfd fds[] = { { .fd = weir_session_fd(session), .events = POLLIN } };
	int left = 2;

	check(weir_call_async(session, "first", 5, 0, answered, &left), "call");
	check(weir_call_async(session, "second", 6, 0, answered, &left), "call");
	while (left) {
		poll(fds, 1, -1);
		weir_session_process(session);
	}
	weir_session_close(session);
	return 0;
}
