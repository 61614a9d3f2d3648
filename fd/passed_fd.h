/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that a peer passed to us. A descriptor may be a pipe, a directory, a socket whose
 * close() blocks, or a file of a FUSE file system that the peer runs and that never answers. So
 * these functions first ask questions that the kernel answers without the file system.
 *
 * Threads of leaver.h close sockets, and no unsent data holds these threads up (Linux 5.9). A few
 * threads of closer.h close other descriptors. A thread closes a descriptor at a time, and the
 * rest waits in a queue, full at CLOSER_FULL if all threads are stalled. While the queue is full,
 * this process takes no further descriptors from anybody, and neither leaks nor blocks:
 * - To receive a message with descriptors fails with EMFILE. The message stays in the queue, where
 *   the kernel counts its descriptors against the sender. Callers end the connection.
 * - To accept a connection, or to open a socket for a call, fails with EMFILE, too, because the
 *   threads may have to close the socket. So strangers can hold up new connections.
 * - Connections go on with messages that bring no descriptors.
 *
 * Only passed_fd_refuse() helps a process without a free descriptor number (RLIMIT_NOFILE): the
 * kernel closes the message's descriptors, in the receiving thread.
 */
#ifndef WEIR_FD_PASSED_FD_H
#define WEIR_FD_PASSED_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/** passed_fd_is_sealed() - true for a memfd of ordinary pages that cannot shrink */
bool passed_fd_is_sealed(int fd);

/** passed_fd_is_procfs() - true for a file of procfs, such as /proc/self/mem */
bool passed_fd_is_procfs(int fd);

/** passed_fd_is_socket() - true for a local socket of that type, which obeys MSG_DONTWAIT */
bool passed_fd_is_socket(int fd, int type);

/**
 * passed_fd_close() - close a descriptor without blocking
 *
 * close() may ask a file system, or wait for a socket's unsent data. Except for memory and procfs,
 * a thread calls close(), and closer.h's threads may block for ever.
 */
void passed_fd_close(int fd);

/* Room for all descriptors of a message (SCM_MAX_FD), and the sender's credentials. */
enum { PASSED_FD_MAX = 253 };

union passed_fd_control {
	struct cmsghdr head;
	char room[CMSG_SPACE(PASSED_FD_MAX * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

/**
 * passed_fd_refuse() - let nobody send descriptors to a local socket, from Linux 6.16 on
 * @socket: not yet bound or connected; sockets accepted from it refuse, too
 */
void passed_fd_refuse(int socket);

/** passed_fd_is_full() - the process takes no descriptors now: see above */
bool passed_fd_is_full(void);

/**
 * passed_fd_socket() - a local socket that refuses descriptors, as socket()
 *
 * For calls to names that strangers may have bound. passed_fd_close_socket() closes it.
 */
int passed_fd_socket(int type);

/** passed_fd_accept() - as accept4(), for a socket that passed_fd_close_socket() closes */
int passed_fd_accept(int listener, int flags);

/**
 * passed_fd_close_socket() - close an own socket without blocking
 * @socket: local; connected, bound or listening; no other process uses the socket
 *
 * Shuts the socket down. Unread messages and connections not yet accepted may hold descriptors,
 * which close() would close too: passed_fd_close() closes such descriptors first.
 */
void passed_fd_close_socket(int socket);

/**
 * passed_fd_recvmsg() - as recvmsg(); passed_fd_take() must follow
 * @message: with a union passed_fd_control; or without control data, if no descriptor is due. Then
 *	a message with descriptors fails with EBADMSG, and stays in the queue: close the socket
 */
ssize_t passed_fd_recvmsg(int socket, struct msghdr *message, int flags);

/**
 * passed_fd_take() - the descriptors of a message, received with a union passed_fd_control
 * @fds: gets the first @nr_max descriptors; passed_fd_close() closes the others
 *
 * Return: the number of descriptors in the message.
 */
unsigned int passed_fd_take(struct msghdr *message, int *fds, unsigned int nr_max);

/**
 * passed_fd_recv() - as recv(), and close a datagram's descriptors without blocking
 *
 * On a connection, a message with descriptors fails as with passed_fd_recvmsg().
 */
ssize_t passed_fd_recv(int socket, void *buf, size_t size, int flags);

#endif
