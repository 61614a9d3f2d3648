// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * librspreload before rdma-core 63 replaces accept(), but not accept4(), so the kernel is asked for
 * a descriptor that is no socket. Then accept() may know the descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "softnic/sysfs/hook.h"

_Static_assert(SOCK_NONBLOCK == O_NONBLOCK, "flags of accept4() are flags of the file");

int rsocket_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
	HOOK(accept4);

int rsocket_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	int s = HOOK_NEXT_AS(__typeof__(&rsocket_accept4), "accept4")(fd, address, length, flags);

	if (s >= 0 || errno != ENOTSOCK)
		return s;
	s = accept(fd, address, length);
	if (s >= 0 && (flags & SOCK_NONBLOCK))
		fcntl(s, F_SETFL, O_NONBLOCK);
	if (s >= 0 && (flags & SOCK_CLOEXEC))
		fcntl(s, F_SETFD, FD_CLOEXEC);
	return s;
}
