/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Closes sockets by threads that exit. close() of a socket may wait until unsent data is sent
 * (SO_LINGER), and so may close() of a socket that holds another one in its queue. The kernel does
 * not wait if the thread that closes is exiting.
 */
#ifndef WEIR_FD_LEAVER_H
#define WEIR_FD_LEAVER_H

#include <stdbool.h>

enum {
	LEAVERS_MAX = 8, /* exiting threads at a time */
	LEAVER_BATCH = 64, /* sockets of a thread */
	LEAVER_FAILURES_MAX = 20, /* to start a thread; then the sockets are closed without */
	LEAVER_START_S = 2,
	LEAVER_RETRY_S = 4, /* after the start of threads that failed */
};

/**
 * leaver_give() - let an exiting thread close a socket
 * @socket: closed on success
 *
 * Needs Linux 5.9. Does not block for the socket. If no thread is there to serve all callers, the
 * first caller waits for one, at most LEAVER_START_S; meanwhile other calls return false at once.
 *
 * Return: false: nothing is done. The threads have much to do, or cannot be made.
 */
bool leaver_give(int socket);

#endif
