// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A program sends arbitrary requests of NETLINK_RDMA, and the kernel answers arbitrary messages.
 * softnic delivers whole messages.
 *
 * The input: a byte of flags, the number of words of requests in a byte, and requests, perhaps
 * with a tail. Then parts of the kernel, each after a byte with the length.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softnic/control/visit.h"
#include "softnic/netlink/nldev.h"
#include "softnic/netlink/serve.h"
#include "softnic/sysfs/counters.h"
#include "softnic/verbs/device_query.h"
#include "softnic/verbs/gid.h"

#define HAS_NO_RDMA 1
#define HAS_TAIL 2 /* one byte more */
#define IS_FULL 4 /* after some messages */

enum { DEVICES = 2, PORTS = 2, ROOM = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	const uint8_t *at;
	size_t left;
	uint8_t flags;
	unsigned int delivered;
	bool is_over;
} world;

/* ---- in place of softnic's devices ---- */

uint32_t device_count(void)
{
	return DEVICES;
}

uint32_t device_ports(void)
{
	return PORTS;
}

bool device_has_port(uint32_t port)
{
	return port >= 1 && port <= PORTS;
}

struct ibv_device *softnic_device(void)
{
	static struct ibv_device devices[DEVICES];

	return devices;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	assert(device - softnic_device() < DEVICES);
	return 1;
}

int gid_get(uint32_t device, uint32_t port, uint32_t index, union ibv_gid *gid, uint32_t *ifindex)
{
	assert(device < DEVICES && device_has_port(port) && index < SOFTNIC_GIDS_MAX);
	memset(gid, 0, sizeof(*gid));
	*ifindex = 1;
	return 0;
}

int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	assert(!context && device_has_port(port) && size == sizeof(*attr));
	attr->state = IBV_PORT_ACTIVE;
	return 0;
}

int counters_sum(struct softnic_counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	return 0;
}

/* The tables of a program hold anything, as the program may write there. */
int softnic_stat_visit(softnic_visitor *visit, void *arg, size_t *silent)
{
	static struct shared_pub *pub;
	static int fd;
	size_t i;

	*silent = 0;
	if (!pub) {
		fd = memfd_create("pub", MFD_CLOEXEC);
		assert(fd >= 0 && !ftruncate(fd, sizeof(*pub)));
		pub = mmap(NULL, sizeof(*pub), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert(pub != MAP_FAILED);
		memset(pub->qps, 0xff, sizeof(pub->qps[0]) * 200);
		for (i = 0; i < 200; i++) {
			pub->qps[i].device = (uint32_t)i % (DEVICES + 1);
			pub->qps[i].type = (uint32_t)i;
			pub->mrs[i] = (struct shared_mr){ .key = 1, .length = UINT64_MAX };
			memset(&pub->objects[i], 0xff, sizeof(pub->objects[i]));
			pub->objects[i].kind = (uint32_t)i % (SHARED_CM_ID + 2);
			pub->objects[i].device = (uint32_t)i % (DEVICES + 1);
			pub->objects[i].src.sin6_family = i % 2 ? AF_INET6 : AF_INET;
			pub->qps[i].srq = (uint32_t)i / 2;
		}
	}
	visit(arg, 1, fd, pub);
	return 0;
}

/* ---- in place of sockets ---- */

static int ask(void *arg, const struct nlmsghdr *request)
{
	(void)arg;
	assert(request->nlmsg_len >= NLMSG_HDRLEN && !world.is_over);
	return world.flags & HAS_NO_RDMA ? -EPROTONOSUPPORT : 0;
}

static ssize_t hear(void *arg, void *bytes, size_t size)
{
	size_t length;

	(void)arg;
	assert(size == NETLINK_REPLY_MAX && !world.is_over);
	if (!world.left)
		return 0;
	length = world.at[0] < world.left - 1 ? world.at[0] : world.left - 1;
	memset(bytes, 0xff, size); /* a reader behind the message fails */
	memcpy(bytes, world.at + 1, length);
	world.at += 1 + length;
	world.left -= 1 + length;
	return (ssize_t)length;
}

static int deliver(void *arg, const struct nlmsghdr *message)
{
	uint8_t *copy;

	(void)arg;
	assert(message->nlmsg_len >= NLMSG_HDRLEN && message->nlmsg_len <= NETLINK_REPLY_MAX);
	assert(!world.is_over);
	copy = malloc(message->nlmsg_len); /* a sanitizer sees each byte */
	memcpy(copy, message, message->nlmsg_len);
	free(copy);
	world.is_over = world.flags & IS_FULL && ++world.delivered > ROOM;
	return world.is_over ? -ENOBUFS : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct netlink_ends ends = { ask, hear, deliver, NULL };
	size_t length;
	uint8_t *exact;
	int rc;

	if (size < 2)
		return 0;
	memset(&world, 0, sizeof(world));
	world.flags = data[0];
	length = data[1] * NLMSG_ALIGNTO + !!(world.flags & HAS_TAIL);
	if (length > size - 2)
		length = size - 2;
	exact = malloc(length + !length);
	memcpy(exact, data + 2, length);
	world.at = data + 2 + length;
	world.left = size - 2 - length;
	rc = netlink_serve(&ends, exact, length);
	assert(rc == (world.is_over ? -ENOBUFS : 0));
	free(exact);
	return 0;
}
