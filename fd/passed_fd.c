// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * close() of a socket may wait until unsent data is sent (SO_LINGER). A local socket may hold such
 * a socket in its queue, and closes that socket too. So leaver.h closes foreign sockets. Own
 * sockets lose their queue first, after a shutdown(): the peer's later send() fails, under the lock
 * that guards the queue. From the first message with descriptors on, leaver.h closes the queue,
 * too: without a number in this process, a file's close() asks no file system for a flush. Linux
 * 6.16 can refuse descriptors (SO_PASSRIGHTS). Before, the kernel closes a descriptor that does not
 * fit the control buffer, in the receiving thread. So the buffer here has room for the most that
 * one message can bring.
 *
 * Nearly every call on a file asks the file system: fstat(), fstatfs(), even close(). So we first
 * ask for properties that the kernel itself knows: the seals, which only memfds have; the domain
 * of a socket; the block size, which is the same in each procfs, but differs in any file system
 * that a user may mount.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fd/closer.h"
#include "fd/leaver.h"
#include "fd/passed_fd.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16, asm-generic/socket.h */
#endif

enum {
	PROC_BLOCK_SIZE = 1024,
	QUEUED_MAX = 4096, /* a socket's buffer holds fewer messages, connections, and errors */
};

static bool is_on_filesystem(int fd, unsigned long magic)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == magic;
}

static bool is_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

/* No huge pages: after a hole is punched, a fault may find no free huge page and raise SIGBUS. */
bool passed_fd_is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && is_on_filesystem(fd, TMPFS_MAGIC);
}

bool passed_fd_is_procfs(int fd)
{
	int block = 0;

	return ioctl(fd, FIGETBSZ, &block) == 0 && block == PROC_BLOCK_SIZE &&
	       is_on_filesystem(fd, PROC_SUPER_MAGIC);
}

static bool has_sockopt(int fd, int option, int value)
{
	int found;
	socklen_t len = sizeof(found);

	return getsockopt(fd, SOL_SOCKET, option, &found, &len) == 0 && found == value;
}

bool passed_fd_is_socket(int fd, int type)
{
	return has_sockopt(fd, SO_DOMAIN, AF_UNIX) && has_sockopt(fd, SO_TYPE, type);
}

static bool is_any_socket(int fd)
{
	int type;
	socklen_t len = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
}

void passed_fd_close(int fd)
{
	if (fd < 0)
		return;
	if (is_memory(fd) || passed_fd_is_procfs(fd))
		close(fd);
	else if (!is_any_socket(fd) || !leaver_give(fd))
		closer_give(fd);
}

void passed_fd_refuse(int socket)
{
	const int off = 0;

	setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

bool passed_fd_is_full(void)
{
	return closer_is_full();
}

int passed_fd_socket(int type)
{
	int fd;

	if (closer_is_full()) {
		errno = EMFILE;
		return -1;
	}
	fd = socket(AF_UNIX, type, 0);
	if (fd >= 0)
		passed_fd_refuse(fd);
	return fd;
}

int passed_fd_accept(int listener, int flags)
{
	if (!closer_is_full())
		return accept4(listener, NULL, NULL, flags);
	errno = EMFILE;
	return -1;
}

/*
 * Looks at the next message, with room for credentials at most, so that no descriptor arrives. The
 * queue keeps a reference, so the kernel closes nothing.
 */
static bool brings_descriptors(int socket, int flags)
{
	char room[CMSG_SPACE(sizeof(struct ucred))];
	struct msghdr message = { 0 };

	if (has_sockopt(socket, SO_PASSCRED, 1)) {
		message.msg_control = room;
		message.msg_controllen = sizeof(room);
	}
	return recvmsg(socket, &message, flags | MSG_PEEK) >= 0 && message.msg_flags & MSG_CTRUNC;
}

ssize_t passed_fd_recvmsg(int socket, struct msghdr *message, int flags)
{
	bool has_room = message->msg_control;

	if ((has_room && !closer_is_full()) || !brings_descriptors(socket, flags))
		return recvmsg(socket, message, flags | MSG_CMSG_CLOEXEC);
	errno = has_room ? EMFILE : EBADMSG;
	return -1;
}

unsigned int passed_fd_take(struct msghdr *message, int *fds, unsigned int nr_max)
{
	unsigned int nr = 0, i, here;
	struct cmsghdr *c;
	int fd;

	for (c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < here; i++, nr++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (nr < nr_max)
				fds[nr] = fd;
			else
				passed_fd_close(fd);
		}
	}
	return nr;
}

/* A datagram socket serves other senders, too, so the message must leave the queue. */
ssize_t passed_fd_recv(int socket, void *buf, size_t size, int flags)
{
	union passed_fd_control control;
	struct iovec iov = { buf, size };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (has_sockopt(socket, SO_TYPE, SOCK_DGRAM)) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	n = passed_fd_recvmsg(socket, &message, flags);
	if (n >= 0)
		passed_fd_take(&message, NULL, 0);
	return n;
}

/*
 * Any message brings the sender's credentials, even an empty message; the end of the queue brings
 * nothing. Return: false at the end of the queue. After another error, messages may be left.
 */
static bool drop_message(int socket)
{
	union passed_fd_control control;
	struct msghdr message = { .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = passed_fd_recvmsg(socket, &message, MSG_DONTWAIT);

	if (n < 0)
		return errno != EAGAIN && errno != ENOTCONN;
	passed_fd_take(&message, NULL, 0);
	return message.msg_controllen;
}

/* Return: the same. Without a free descriptor, the connections stay. */
static bool drop_connection(int listener)
{
	int fd = passed_fd_accept(listener, SOCK_CLOEXEC);

	if (fd < 0)
		return errno != EAGAIN && errno != EINVAL;
	passed_fd_close_socket(fd);
	return true;
}

void passed_fd_close_socket(int socket)
{
	bool is_listener = has_sockopt(socket, SO_ACCEPTCONN, 1);
	bool (*const drop)(int) = is_listener ? drop_connection : drop_message;
	const int on = 1;
	int i = 0;

	setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	shutdown(socket, SHUT_RD);
	do {
		if (!is_listener && brings_descriptors(socket, MSG_DONTWAIT) && leaver_give(socket))
			return;
	} while (i < QUEUED_MAX && drop(socket) && ++i);
	if (i < QUEUED_MAX)
		close(socket);
	else
		closer_give(socket);
}
