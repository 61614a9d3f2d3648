// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softnic/shm/shared.h"
#include "squatter.h"

/* A refused connect means a free name, or a name without a listener: only a bind can tell. */
static bool is_bound(const struct sockaddr_un *addr, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool bound = fd >= 0 && bind(fd, (const struct sockaddr *)addr, len) && errno == EADDRINUSE;

	if (fd >= 0)
		close(fd);
	return bound;
}

/* Return: the user that holds a slot; SQUATTER_UNKNOWN; our own if the slot is free. */
static uid_t holder_of(uint32_t slot)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred cred = { .uid = geteuid() };
	socklen_t length = sizeof(cred);
	struct sockaddr_un addr;
	socklen_t len = shared_address(slot, &addr);

	if (fd < 0)
		return cred.uid;
	if (!connect(fd, (struct sockaddr *)&addr, len))
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length);
	else if (errno == EAGAIN || is_bound(&addr, len))
		cred.uid = SQUATTER_UNKNOWN;
	close(fd);
	return cred.uid;
}

bool softnic_squatter_find(uid_t *uid)
{
	bool is_silent = false;
	uint32_t slot;

	for (slot = 1; slot < SOFTNIC_SLOTS; slot++) {
		*uid = holder_of(slot);
		if (*uid != geteuid() && *uid != SQUATTER_UNKNOWN)
			return true;
		is_silent |= *uid == SQUATTER_UNKNOWN;
	}
	*uid = SQUATTER_UNKNOWN;
	return is_silent;
}
