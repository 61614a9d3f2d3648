// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softnic/control/config.h"
#include "softnic/loop/fork.h"
#include "softnic/loop/loop.h"
#include "softnic/verbs/nic.h"
#include "softnic/tap/capture.h"
#include "softnic/tap/delay.h"
#include "softnic/udp/neighbor.h"
#include "softnic/udp/poller.h"
#include "softnic/udp/socket.h"

enum { BUFFER_BYTES = 4 << 20 };

struct udp_sockets udp = { .lock = PTHREAD_MUTEX_INITIALIZER, .own = -1, .roce = -1 };

bool socket_is_ipv4(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw);
}

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/* The kernel grants less than asked for without privilege. */
static void ask_for_buffers(int fd)
{
	set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
	set(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES);
	set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
	set(fd, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES);
}

/*
 * With these options the IP id is 0, and no packet is cut in pieces. "Probe" ignores what an ICMP
 * message of a stranger says about the path's MTU.
 */
static int set_options(int fd, bool is_shared)
{
	int rc = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);

	if (!rc)
		rc = set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	if (!rc)
		rc = set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
	if (!rc)
		rc = set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	if (!rc)
		rc = set(fd, IPPROTO_IP, IP_RECVERR, 1);
	if (!rc)
		rc = set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	if (!rc && is_shared)
		rc = set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	ask_for_buffers(fd);
	set(fd, SOL_UDP, UDP_GRO, 1);
	return rc;
}

/* Returns a descriptor or a negative errno. */
static int open_port(uint16_t port, bool is_shared)
{
	const struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP), rc;

	if (fd < 0)
		return -errno;
	rc = set_options(fd, is_shared);
	if (!rc && bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		rc = -errno;
	if (!rc)
		rc = softnic_loop_add(fd, EPOLLIN, poller_ready, (void *)(uintptr_t)port);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int udp_socket_open(void)
{
	int fd = 0;

	if (!config_get()->value[OPTION_WIRE])
		return -EHOSTUNREACH;
	pthread_mutex_lock(&udp.lock);
	if (udp.own < 0) {
		capture_open();
		fd = open_port(udp_port(nic.slot), false);
		if (fd >= 0) {
			store_release(&udp.own, fd);
			udp.port = udp_port(nic.slot);
			fd = open_port(UDP_ROCE_PORT, true);
			store_release(&udp.roce, fd < 0 ? -1 : fd);
			fd = 0;
		}
	}
	pthread_mutex_unlock(&udp.lock);
	return fd;
}

uint16_t udp_socket_port_of_qpn(uint32_t qpn)
{
	return udp_port(qpn >> SOFTNIC_QP_INDEX_BITS);
}

/* In the child of a fork, which has a slot of its own or none. */
static void reset_sockets(void)
{
	if (udp.own >= 0)
		close(udp.own);
	if (udp.roce >= 0)
		close(udp.roce);
	udp.own = udp.roce = -1;
	udp.port = 0;
	udp.bytes_sent = 0;
	delay_reset();
	neighbor_reset();
}

const struct fork_part udp_fork = { &udp.lock, reset_sockets };
