// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The port space: who has which address and port.
 *
 * A port is the name of an abstract Unix socket. The kernel keeps such names unique, which gives
 * EADDRINUSE, and forgets them when their process dies, however it dies. The name carries the user:
 * each has a port space of its own, apart also from TCP's, as on real RDMA. Only the credentials of
 * the socket prove the user, for anybody may bind any name.
 *
 * A listener on the wildcard has the wildcard's own name, so a caller tries the address it calls
 * and then the wildcard. The IPv6 wildcard takes the IPv4 one too.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include "cm.h"

enum {
	/* Where port 0 is looked for: Linux's default for TCP. */
	PORT_EPHEMERAL_MIN = 32768,
	PORT_EPHEMERAL_MAX = 60999,
};

/* Return: the length of the name. */
static socklen_t name(struct sockaddr_un *un, const union cm_addr *addr)
{
	union cm_addr plain = *addr;
	char text[INET6_ADDRSTRLEN];
	uint32_t scope = 0;
	int len;

	cm_addr_unmap(&plain);
	if (plain.sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &plain.in.sin_addr, text, sizeof(text));
	} else {
		inet_ntop(AF_INET6, &plain.in6.sin6_addr, text, sizeof(text));
		if (IN6_IS_ADDR_LINKLOCAL(&plain.in6.sin6_addr))
			scope = plain.in6.sin6_scope_id;
	}

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "weir-softnic-cm-%u-tcp-%s",
		       geteuid(), text);
	if (scope)
		len += snprintf(un->sun_path + 1 + len, sizeof(un->sun_path) - 1 - len, "%%%u",
				scope);
	len += snprintf(un->sun_path + 1 + len, sizeof(un->sun_path) - 1 - len, "-%u",
			ntohs(cm_addr_port(&plain)));
	return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

static int open_named(const union cm_addr *addr, int *fd)
{
	struct sockaddr_un un;
	socklen_t len = name(&un, addr);
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (s < 0)
		return -errno;
	if (bind(s, (struct sockaddr *)&un, len) < 0) {
		err = -errno;
		close(s);
		return err;
	}
	*fd = s;
	return 0;
}

static bool covers_ipv4(const struct cm_id *id, const union cm_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 && cm_addr_is_any(addr) && !id->afonly;
}

static int take(struct cm_id *id, const union cm_addr *addr)
{
	union cm_addr ipv4 = { .in = { .sin_family = AF_INET, .sin_port = cm_addr_port(addr) } };
	int fd, fd_ipv4 = -1;
	int err;

	err = open_named(addr, &fd);
	if (err)
		return err;
	if (covers_ipv4(id, addr)) {
		err = open_named(&ipv4, &fd_ipv4);
		if (err) {
			close(fd);
			return err;
		}
	}
	id->fd = fd;
	id->fd_ipv4 = fd_ipv4;
	return 0;
}

int cm_port_take(struct cm_id *id, union cm_addr *addr)
{
	const unsigned int nr = PORT_EPHEMERAL_MAX - PORT_EPHEMERAL_MIN + 1;
	unsigned int start = 0, i;
	int err = -EADDRINUSE;

	if (cm_addr_port(addr))
		return take(id, addr);

	if (getrandom(&start, sizeof(start), 0) < 0)
		start = (unsigned int)softnic_now_ns();
	for (i = 0; i < nr && err == -EADDRINUSE; i++) {
		cm_addr_set_port(addr, htons(PORT_EPHEMERAL_MIN + (start % nr + i) % nr));
		err = take(id, addr);
	}
	return err;
}

bool cm_port_peer_is_ours(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == geteuid();
}

static int call(int fd, const union cm_addr *addr)
{
	struct sockaddr_un un;
	socklen_t len = name(&un, addr);

	if (connect(fd, (struct sockaddr *)&un, len) < 0)
		return errno == EAGAIN ? -EAGAIN : -ECONNREFUSED;
	return cm_port_peer_is_ours(fd) ? 0 : -ECONNREFUSED;
}

int cm_port_call(int fd, const union cm_addr *addr)
{
	union cm_addr plain = *addr, any = { 0 };
	int err;

	cm_addr_unmap(&plain);
	err = call(fd, &plain);
	if (err != -ECONNREFUSED)
		return err;
	any.sa.sa_family = plain.sa.sa_family;
	cm_addr_set_port(&any, cm_addr_port(&plain));
	return call(fd, &any);
}
