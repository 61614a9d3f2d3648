/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A descriptor whose last close() takes a minute: a TCP socket with SO_LINGER and unsent data. */
#ifndef WEIR_TESTS_SUPPORT_SLOW_SOCKET_H
#define WEIR_TESTS_SUPPORT_SLOW_SOCKET_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * Whoever closes the socket waits for SLOW_SOCKET_S. A wait shorter than SLOW_WAIT_MS shows that
 * no thread waited for the socket, however slow the machine.
 */
enum { SLOW_SOCKET_S = 60, SLOW_WAIT_MS = 20000 };

/* The close() ends once the test closes the listener, which never accepts. */
static inline int slow_socket_open_to(int *to)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct linger linger = { 1, SLOW_SOCKET_S };
	socklen_t size = sizeof(at);
	static char bytes[65536];

	if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &size) ||
	    connect(fd, (struct sockaddr *)&at, size))
		return -1;
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	*to = listener;
	return fd;
}

static inline int slow_socket_open(void)
{
	int never_closed;

	return slow_socket_open_to(&never_closed);
}

/* Sends one descriptor. Return: false if the kernel refuses. */
static inline bool slow_socket_pass(int to, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec part = { "", 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* Sends a slow socket, so that the receiver has the last descriptor. */
static inline bool slow_socket_send(int to)
{
	const struct linger off = { 0, 0 };
	int fd = slow_socket_open();
	bool sent = slow_socket_pass(to, fd);

	if (!sent)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(fd);
	return sent;
}

static inline long slow_socket_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
