/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages between a tenant and weir share. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "lib/base/error.h"
#include "lib/mux/proxy/ipc.h"

int weir_mux_ipc_send(int socket, const void *data, size_t length, const int *fds, unsigned int nr)
{
	struct iovec part = { (void *)data, length };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(WEIR_MUX_IPC_FDS_MAX * sizeof(int))];
	} control = { 0 };
	ssize_t n;

	if (nr) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(nr * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, nr * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(nr * sizeof(int));
	}
	do {
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int weir_mux_ipc_recv(int socket, void *data, size_t length, int *fds)
{
	struct iovec part = { data, length };
	union passed_fd_control control;
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	unsigned int i;
	ssize_t n;

	do {
		n = passed_fd_recvmsg(socket, &message, 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? -ETIMEDOUT : -ECONNRESET;
	for (i = 0; fds && i < WEIR_MUX_IPC_FDS_MAX; i++)
		fds[i] = -1;
	passed_fd_take(&message, fds, fds ? WEIR_MUX_IPC_FDS_MAX : 0);
	return (size_t)n == length && !(message.msg_flags & MSG_TRUNC) ? 0 : -ECONNRESET;
}

void weir_mux_ipc_set_timeout(int socket, unsigned int seconds)
{
	const struct timeval limit = { .tv_sec = seconds };

	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

int weir_mux_ipc_connect(const char *path, struct weir_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int rc, fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return weir_error_set(error, -EINVAL, "%s is too long for a socket's name", path);
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return weir_error_set(error, -ENOMEM, "no socket: %s", weir_strerror(-errno));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	rc = -errno;
	close(fd);
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return weir_error_set(error, -ECONNREFUSED,
				      "nobody shares a mux at %s: is 'weir share' running?", path);
	return weir_error_set(error, rc, "cannot connect to %s: %s", path, strerror(-rc));
}
