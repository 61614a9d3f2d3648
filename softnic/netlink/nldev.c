// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "nldev.h"
#include "softnic/sysfs/counters.h"
#include "softnic/verbs/device_query.h"
#include "softnic/verbs/gid.h"

/* A message that grows. Its attributes always fit in NLDEV_MESSAGE_MAX. */
struct nldev_message {
	_Alignas(struct nlmsghdr) uint8_t bytes[NLDEV_MESSAGE_MAX];
};

static struct nlmsghdr *header_of(struct nldev_message *m)
{
	return (struct nlmsghdr *)m->bytes;
}

static void begin(struct nldev_message *m, const struct nlmsghdr *request)
{
	*header_of(m) = (struct nlmsghdr){
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = request->nlmsg_type,
		.nlmsg_flags = request->nlmsg_flags & NLM_F_DUMP ? NLM_F_MULTI : 0,
		.nlmsg_seq = request->nlmsg_seq,
	};
}

static struct nlattr *put(struct nldev_message *m, uint16_t type, const void *value, size_t size)
{
	struct nlmsghdr *h = header_of(m);
	struct nlattr *a = (struct nlattr *)(m->bytes + h->nlmsg_len);

	memset(a, 0, NLA_HDRLEN + NLA_ALIGN(size));
	a->nla_type = type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + size);
	if (size)
		memcpy((uint8_t *)a + NLA_HDRLEN, value, size);
	h->nlmsg_len += NLA_HDRLEN + NLA_ALIGN(size);
	return a;
}

static void put_u8(struct nldev_message *m, uint16_t type, uint8_t value)
{
	put(m, type, &value, sizeof(value));
}

static void put_u32(struct nldev_message *m, uint16_t type, uint32_t value)
{
	put(m, type, &value, sizeof(value));
}

static void put_u64(struct nldev_message *m, uint16_t type, uint64_t value)
{
	put(m, type, &value, sizeof(value));
}

static void put_text(struct nldev_message *m, uint16_t type, const char *text)
{
	put(m, type, text, strlen(text) + 1);
}

static struct nlattr *open_nest(struct nldev_message *m, uint16_t type)
{
	return put(m, type | NLA_F_NESTED, NULL, 0);
}

static void close_nest(struct nldev_message *m, struct nlattr *nest)
{
	nest->nla_len = (uint16_t)(m->bytes + header_of(m)->nlmsg_len - (uint8_t *)nest);
}

static void put_named(struct nldev_message *m, uint16_t entry, uint16_t name_type,
		      const char *name, uint16_t value_type, uint64_t value)
{
	struct nlattr *nest = open_nest(m, entry);

	put_text(m, name_type, name);
	put_u64(m, value_type, value);
	close_nest(m, nest);
}

static void put_device(struct nldev_message *m, uint32_t device)
{
	char name[16];

	snprintf(name, sizeof(name), "softnic%u", device);
	put_u32(m, RDMA_NLDEV_ATTR_DEV_INDEX, NLDEV_INDEX_FIRST + device);
	put_text(m, RDMA_NLDEV_ATTR_DEV_NAME, name);
}

/* Answers about a device; the port is 0 in those about the whole device. */
typedef int nldev_filler(struct nldev_message *m, uint32_t device, uint32_t port);

static int fill_device(struct nldev_message *m, uint32_t device, uint32_t port)
{
	uint64_t guid = be64toh(ibv_get_device_guid(softnic_device() + device));

	(void)port;
	put_device(m, device);
	put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, device_ports());
	put_u64(m, RDMA_NLDEV_ATTR_CAP_FLAGS, 0);
	put_text(m, RDMA_NLDEV_ATTR_FW_VERSION, "softnic");
	put_u64(m, RDMA_NLDEV_ATTR_NODE_GUID, guid);
	put_u64(m, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, guid);
	put_u8(m, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, RDMA_NODE_IB_CA);
	put_text(m, RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
	return 0;
}

/* A port has the addresses of all interfaces: tell the first one that leads beyond the host. */
static uint32_t netdev_of(uint32_t device, uint32_t port)
{
	uint32_t own = 0, other, index;
	union ibv_gid gid;

	if (gid_get(device, port, 0, &gid, &own))
		return 0;
	for (index = 1; index < SOFTNIC_GIDS_MAX; index++)
		if (!gid_get(device, port, index, &gid, &other) && other != own)
			return other;
	return own;
}

static int fill_port(struct nldev_message *m, uint32_t device, uint32_t port)
{
	enum { LINK_UP = 5, DISABLED = 3 };
	struct ibv_port_attr attr = { .state = IBV_PORT_NOP };
	uint32_t netdev = netdev_of(device, port);
	char name[IF_NAMESIZE];

	query_port(NULL, port, &attr, sizeof(attr)); /* NOP if the device is gone */
	put_device(m, device);
	put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	put_u8(m, RDMA_NLDEV_ATTR_PORT_STATE, (uint8_t)attr.state);
	put_u8(m, RDMA_NLDEV_ATTR_PORT_PHYS_STATE,
	       attr.state == IBV_PORT_ACTIVE ? LINK_UP : DISABLED);
	if (netdev && if_indextoname(netdev, name)) {
		put_u32(m, RDMA_NLDEV_ATTR_NDEV_INDEX, netdev);
		put_text(m, RDMA_NLDEV_ATTR_NDEV_NAME, name);
	}
	return 0;
}

static void put_sum(struct nldev_message *m, const char *name, uint64_t value)
{
	put_named(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME,
		  name, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, value);
}

/* The objects that `weir stat` counts, and a context for each process. */
static int fill_sums(struct nldev_message *m, uint32_t device, uint32_t port)
{
	struct softnic_counters sum;
	struct nlattr *nest;
	uint32_t processes;
	int rc = counters_sum(&sum, &processes);

	(void)port;
	if (rc)
		return rc;
	put_device(m, device);
	nest = open_nest(m, RDMA_NLDEV_ATTR_RES_SUMMARY);
	put_sum(m, "qp", sum.qps);
	put_sum(m, "mr", sum.mrs);
	put_sum(m, "ctx", processes);
	close_nest(m, nest);
	return 0;
}

static int fill_counters(struct nldev_message *m, uint32_t device, uint32_t port)
{
	struct softnic_counters sum;
	struct nlattr *nest;
	uint32_t processes;
	int rc = counters_sum(&sum, &processes);

	if (rc)
		return rc;
	put_device(m, device);
	put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	nest = open_nest(m, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
#define PUT_COUNTER(name, help)                                                          \
	put_named(m, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY,                               \
		  RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, #name,                      \
		  RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, sum.name);
	SOFTNIC_COUNTERS(PUT_COUNTER)
#undef PUT_COUNTER
	close_nest(m, nest);
	return 0;
}

/* The kernel's default: devices are common to all network namespaces, as softnic's are. */
static int fill_system(struct nldev_message *m, uint32_t device, uint32_t port)
{
	(void)device;
	(void)port;
	put_u8(m, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
	return 0;
}

/* The value of a number among a request's attributes, or @missing. */
static uint32_t asked(const struct nlmsghdr *request, uint16_t type, uint32_t missing)
{
	const uint8_t *at = (const uint8_t *)request + NLMSG_HDRLEN;
	size_t left = request->nlmsg_len - NLMSG_HDRLEN;
	const struct nlattr *a = (const struct nlattr *)at;
	uint32_t value;

	while (left >= NLA_HDRLEN && a->nla_len >= NLA_HDRLEN && a->nla_len <= left) {
		if ((a->nla_type & NLA_TYPE_MASK) == type &&
		    a->nla_len == NLA_HDRLEN + sizeof(value)) {
			memcpy(&value, (const uint8_t *)a + NLA_HDRLEN, sizeof(value));
			return value;
		}
		if (NLA_ALIGN((size_t)a->nla_len) >= left)
			break;
		left -= NLA_ALIGN((size_t)a->nla_len);
		a = (const struct nlattr *)((const uint8_t *)a + NLA_ALIGN(a->nla_len));
	}
	return missing;
}

bool nldev_is_about_ours(const struct nlmsghdr *request)
{
	uint32_t index = asked(request, RDMA_NLDEV_ATTR_DEV_INDEX, 0);

	return index >= NLDEV_INDEX_FIRST && index - NLDEV_INDEX_FIRST < device_count();
}

static int answer_one(const struct nlmsghdr *request, nldev_filler *fill, uint32_t device,
		      uint32_t port, nldev_sink *sink, void *arg)
{
	struct nldev_message m;
	int rc;

	begin(&m, request);
	rc = fill(&m, device, port);
	if (!rc)
		sink(arg, header_of(&m));
	return rc;
}

/* A dump covers all devices and ports, except those that its request excludes. */
static int answer_all(const struct nlmsghdr *request, nldev_filler *fill, bool has_ports,
		      nldev_sink *sink, void *arg)
{
	uint32_t ports = has_ports ? device_ports() : 1, device, port;
	uint32_t only = asked(request, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	int rc = 0;

	for (device = 0; device < device_count() && !rc; device++)
		for (port = 1; port <= ports && !rc; port++)
			if (!only || only == NLDEV_INDEX_FIRST + device)
				rc = answer_one(request, fill, device, port, sink, arg);
	return rc;
}

int nldev_answer(const struct nlmsghdr *request, nldev_sink *sink, void *arg)
{
	static const struct nldev_command {
		nldev_filler *fill;
		bool has_ports, has_no_device;
	} commands[RDMA_NLDEV_NUM_OPS] = {
		[RDMA_NLDEV_CMD_GET] = { .fill = fill_device },
		[RDMA_NLDEV_CMD_PORT_GET] = { .fill = fill_port, .has_ports = true },
		[RDMA_NLDEV_CMD_SYS_GET] = { .fill = fill_system, .has_no_device = true },
		[RDMA_NLDEV_CMD_RES_GET] = { .fill = fill_sums },
		[RDMA_NLDEV_CMD_STAT_GET] = { .fill = fill_counters, .has_ports = true },
	};
	uint32_t command = RDMA_NL_GET_OP(request->nlmsg_type), device, port;
	const struct nldev_command *c;

	if (command >= RDMA_NLDEV_NUM_OPS || asked(request, RDMA_NLDEV_ATTR_STAT_RES, 0))
		return -EOPNOTSUPP;
	c = &commands[command];
	if (!c->fill)
		return -EOPNOTSUPP;
	if (c->has_no_device)
		return answer_one(request, c->fill, 0, 0, sink, arg);
	if (request->nlmsg_flags & NLM_F_DUMP)
		return answer_all(request, c->fill, c->has_ports, sink, arg);
	if (!nldev_is_about_ours(request))
		return -ENODEV;
	device = asked(request, RDMA_NLDEV_ATTR_DEV_INDEX, 0) - NLDEV_INDEX_FIRST;
	port = asked(request, RDMA_NLDEV_ATTR_PORT_INDEX, 0);
	if (c->has_ports && !device_has_port(port))
		return -EINVAL;
	return answer_one(request, c->fill, device, port, sink, arg);
}
