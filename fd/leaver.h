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
};

/**
 * leaver_give() - let an exiting thread close a socket
 * @socket: closed on success
 *
 * Needs Linux 5.9. Blocks neither for the socket nor for the thread.
 *
 * Return: false: nothing is done. The threads have much to do, or cannot be made.
 */
bool leaver_give(int socket);

#endif
