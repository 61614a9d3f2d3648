// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Preloaded behind softnic: a kernel with RDMA that takes each request and says nothing. */
#include <dlfcn.h>
#include <linux/netlink.h>
#include <sys/socket.h>

static int silent = -1; /* the newest socket to the kernel */

__attribute__((visibility("default"))) int socket(int domain, int type, int protocol)
{
	int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	int fd;

	if (domain == AF_NETLINK && protocol == NETLINK_RDMA)
		return silent = next(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	fd = next(domain, type, protocol);
	if (fd == silent)
		silent = -1; /* closed, and the number used again */
	return fd;
}

__attribute__((visibility("default"))) ssize_t sendto(int fd, const void *bytes, size_t size,
						      int flags, const struct sockaddr *to,
						      socklen_t length)
{
	ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) =
		(__typeof__(next))dlsym(RTLD_NEXT, "sendto");

	return fd == silent ? (ssize_t)size : next(fd, bytes, size, flags, to, length);
}
