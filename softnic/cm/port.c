// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The port space: the owner of each address and port.
 *
 * A port is the name of an abstract Unix socket. The kernel keeps such names unique, and frees a
 * name when its process dies. The name contains the user, so each user has separate port spaces,
 * also separate from TCP's, as on real RDMA. Any process may bind any name, so only the socket's
 * credentials prove the user.
 *
 * A listener on the wildcard binds the wildcard's name, so a caller tries the called address, then
 * the wildcard. The IPv6 wildcard takes the IPv4 wildcard, too. A call to ::1 tries the IPv4
 * wildcard last: a stock host resolves "localhost" to ::1 first, while a listener without an
 * address gets the IPv4 wildcard.
 *
 * The kernel does not enforce that a wildcard and an address exclude each other. claims.c checks,
 * after the name is bound. If two ids try at the same moment, at least one sees the other. So
 * neither may get the port, but never both.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include "fd/passed_fd.h"
#include "cm.h"
#include "claims.h"

enum {
	/* Range for port 0: Linux's default for TCP. */
	PORT_EPHEMERAL_MIN = 32768,
	PORT_EPHEMERAL_MAX = 60999,
};

static const char *space_name(enum rdma_port_space ps)
{
	switch (ps) {
	case RDMA_PS_UDP:
		return "udp";
	case RDMA_PS_IPOIB:
		return "ipoib";
	case RDMA_PS_IB:
		return "ib";
	default:
		return "tcp";
	}
}

static void claim_init(struct cm_claim *claim, uint32_t token, const union cm_addr *addr)
{
	union cm_addr plain = *addr;
	size_t len;

	memset(claim, 0, sizeof(*claim));
	cm_addr_unmap(&plain);
	claim->port = ntohs(cm_addr_port(&plain));
	claim->token = token;
	if (plain.sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &plain.in.sin_addr, claim->addr, sizeof(claim->addr));
		return;
	}
	inet_ntop(AF_INET6, &plain.in6.sin6_addr, claim->addr, sizeof(claim->addr));
	len = strlen(claim->addr);
	if (IN6_IS_ADDR_LINKLOCAL(&plain.in6.sin6_addr))
		snprintf(claim->addr + len, sizeof(claim->addr) - len, "%%%u",
			 plain.in6.sin6_scope_id);
}

/* Return: the length of the name. */
static socklen_t socket_name(struct sockaddr_un *un, enum rdma_port_space ps,
			     const struct cm_claim *claim)
{
	size_t room = sizeof(un->sun_path) - 1;
	int len;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	len = cm_claim_name(un->sun_path + 1, room, space_name(ps), claim);
	return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

static int open_claimed(const struct cm_id *id, const union cm_addr *addr)
{
	struct cm_claim claim;
	struct sockaddr_un un;
	socklen_t len;
	int s, rc;

	claim_init(&claim, id->reuse, addr);
	len = socket_name(&un, id->id.ps, &claim);
	s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return -errno;
	passed_fd_refuse(s);
	if (bind(s, (struct sockaddr *)&un, len) < 0) {
		rc = errno == EADDRINUSE ? cm_claim_conflict(&claim, &claim) : -errno;
		close(s);
		return rc;
	}
	return s;
}

static bool covers_ipv4(const struct cm_id *id, const union cm_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 && cm_addr_is_any(addr) && !id->afonly;
}

static int open_both(const struct cm_id *id, const union cm_addr *addr, int fd[2])
{
	union cm_addr ipv4 = { .in = { .sin_family = AF_INET, .sin_port = cm_addr_port(addr) } };

	fd[1] = -1;
	fd[0] = open_claimed(id, addr);
	if (fd[0] < 0)
		return fd[0];
	if (!covers_ipv4(id, addr))
		return 0;
	fd[1] = open_claimed(id, &ipv4);
	if (fd[1] >= 0)
		return 0;
	close(fd[0]);
	return fd[1];
}

static int check_others(const struct cm_id *id, const union cm_addr *addr, uint32_t own_token)
{
	union cm_addr ipv4 = { .in = { .sin_family = AF_INET, .sin_port = cm_addr_port(addr) } };
	struct cm_claim claim;
	int rc;

	claim_init(&claim, id->reuse, addr);
	rc = cm_claims_check(space_name(id->id.ps), &claim, own_token);
	if (rc || !covers_ipv4(id, addr))
		return rc;
	claim_init(&claim, id->reuse, &ipv4);
	return cm_claims_check(space_name(id->id.ps), &claim, own_token);
}

static void close_both(const int fd[2])
{
	close(fd[0]);
	if (fd[1] >= 0)
		close(fd[1]);
}

static int take_port(struct cm_id *id, const union cm_addr *addr)
{
	int fd[2];
	int rc;

	rc = open_both(id, addr, fd);
	if (rc)
		return rc;
	rc = check_others(id, addr, id->reuse);
	if (rc) {
		close_both(fd);
		return rc;
	}
	id->fd = fd[0];
	id->fd_ipv4 = fd[1];
	return 0;
}

/* The wildcard's name excludes all other claims on the port, so no search is needed. */
static int take_wildcard(struct cm_id *id, const union cm_addr *addr)
{
	union cm_addr any = { .sa.sa_family = addr->sa.sa_family };
	int fd;

	cm_addr_set_port(&any, cm_addr_port(addr));
	fd = open_claimed(id, &any);
	if (fd < 0)
		return fd;
	id->fd = fd;
	return 0;
}

static int take_free(struct cm_id *id, union cm_addr *addr,
		     int (*take_one)(struct cm_id *id, const union cm_addr *addr))
{
	const unsigned int nr = PORT_EPHEMERAL_MAX - PORT_EPHEMERAL_MIN + 1;
	unsigned int start = 0, i;
	int rc = -EADDRNOTAVAIL;

	if (getrandom(&start, sizeof(start), 0) < 0)
		start = (unsigned int)softnic_loop_now_ns();
	for (i = 0; i < nr && (rc == -EADDRINUSE || rc == -EADDRNOTAVAIL); i++) {
		cm_addr_set_port(addr, htons(PORT_EPHEMERAL_MIN + (start % nr + i) % nr));
		rc = take_one(id, addr);
	}
	return rc;
}

int cm_port_take(struct cm_id *id, union cm_addr *addr)
{
	return cm_addr_port(addr) ? take_port(id, addr) : take_free(id, addr, take_port);
}

int cm_port_take_source(struct cm_id *id, union cm_addr *addr)
{
	return take_free(id, addr, take_wildcard);
}

int cm_port_make_unique(struct cm_id *id)
{
	const uint32_t token = id->reuse;
	union cm_addr addr;
	int fd[2];
	int rc;

	if (!token)
		return 0;
	cm_id_src(id, &addr);
	id->reuse = 0;
	rc = open_both(id, &addr, fd);
	if (rc)
		goto shared;
	rc = check_others(id, &addr, token);
	if (rc) {
		close_both(fd);
		goto shared;
	}
	close(id->fd);
	if (id->fd_ipv4 >= 0)
		close(id->fd_ipv4);
	id->fd = fd[0];
	id->fd_ipv4 = fd[1];
	return 0;
shared:
	id->reuse = token;
	return rc;
}

uint32_t cm_port_token(void)
{
	uint32_t token = 0;

	while (!token)
		if (getrandom(&token, sizeof(token), 0) < 0)
			token = (uint32_t)softnic_loop_now_ns();
	return token;
}

bool cm_port_peer_is_ours(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == geteuid();
}

static int connect_claimed(int fd, enum rdma_port_space ps, const union cm_addr *addr)
{
	struct cm_claim claim;
	struct sockaddr_un un;
	socklen_t len;

	claim_init(&claim, 0, addr);
	len = socket_name(&un, ps, &claim);
	if (connect(fd, (struct sockaddr *)&un, len) < 0)
		return errno == EAGAIN ? -EAGAIN : -ECONNREFUSED;
	return cm_port_peer_is_ours(fd) ? 0 : -ECONNREFUSED;
}

int cm_port_connect(int fd, enum rdma_port_space ps, const union cm_addr *addr)
{
	union cm_addr plain = *addr, any = { 0 };
	int rc;

	cm_addr_unmap(&plain);
	rc = connect_claimed(fd, ps, &plain);
	if (rc != -ECONNREFUSED)
		return rc;
	any.sa.sa_family = plain.sa.sa_family;
	cm_addr_set_port(&any, cm_addr_port(&plain));
	rc = connect_claimed(fd, ps, &any);
	if (rc != -ECONNREFUSED || plain.sa.sa_family != AF_INET6 || !cm_addr_is_loopback(&plain))
		return rc;
	any = (union cm_addr){ .in = { .sin_family = AF_INET, .sin_port = cm_addr_port(&plain) } };
	return connect_claimed(fd, ps, &any);
}

int cm_port_open(enum rdma_port_space ps, const union cm_addr *addr)
{
	int s = passed_fd_socket(SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK);
	int rc = s < 0 ? -errno : cm_port_connect(s, ps, addr);

	if (rc && s >= 0)
		passed_fd_close_socket(s);
	return rc ? rc : s;
}
