// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "nldev.h"
#include "objects.h"
#include "softnic/sysfs/counters.h"
#include "softnic/verbs/device_query.h"
#include "softnic/verbs/gid.h"

static void put_named(struct nldev_message *m, uint16_t entry, uint16_t name_type, const char *name,
		      uint16_t value_type, uint64_t value)
{
	struct nlattr *nest = nldev_open_nest(m, entry);

	nldev_put_text(m, name_type, name);
	nldev_put_u64(m, value_type, value);
	nldev_close_nest(m, nest);
}

/* Answers about a device; the port is 0 in those about the whole device. */
typedef int nldev_filler(struct nldev_message *m, uint32_t device, uint32_t port);

static int fill_device(struct nldev_message *m, uint32_t device, uint32_t port)
{
	uint64_t guid = be64toh(ibv_get_device_guid(softnic_device() + device));

	(void)port;
	nldev_put_device(m, device);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, device_ports());
	nldev_put_u64(m, RDMA_NLDEV_ATTR_CAP_FLAGS, 0);
	nldev_put_text(m, RDMA_NLDEV_ATTR_FW_VERSION, "softnic");
	nldev_put_u64(m, RDMA_NLDEV_ATTR_NODE_GUID, guid);
	nldev_put_u64(m, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, guid);
	nldev_put_u8(m, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, RDMA_NODE_IB_CA);
	nldev_put_text(m, RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
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
	nldev_put_device(m, device);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	nldev_put_u8(m, RDMA_NLDEV_ATTR_PORT_STATE, (uint8_t)attr.state);
	nldev_put_u8(m, RDMA_NLDEV_ATTR_PORT_PHYS_STATE,
		     attr.state == IBV_PORT_ACTIVE ? LINK_UP : DISABLED);
	if (netdev && if_indextoname(netdev, name)) {
		nldev_put_u32(m, RDMA_NLDEV_ATTR_NDEV_INDEX, netdev);
		nldev_put_text(m, RDMA_NLDEV_ATTR_NDEV_NAME, name);
	}
	return 0;
}

static void put_sum(struct nldev_message *m, const char *name, uint64_t value)
{
	put_named(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME,
		  name, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, value);
}

static int fill_sums(struct nldev_message *m, uint32_t device, uint32_t port)
{
	struct object_sums sums;
	struct nlattr *nest;
	int rc = objects_sum(device, &sums);

	(void)port;
	if (rc)
		return rc;
	nldev_put_device(m, device);
	nest = nldev_open_nest(m, RDMA_NLDEV_ATTR_RES_SUMMARY);
	put_sum(m, "pd", sums.pd);
	put_sum(m, "cq", sums.cq);
	put_sum(m, "qp", sums.qp);
	put_sum(m, "cm_id", sums.cm_id);
	put_sum(m, "mr", sums.mr);
	put_sum(m, "ctx", sums.ctx);
	put_sum(m, "srq", sums.srq);
	nldev_close_nest(m, nest);
	return 0;
}

static int fill_counters(struct nldev_message *m, uint32_t device, uint32_t port)
{
	struct softnic_counters sum;
	struct nlattr *nest;
	int rc = counters_sum(&sum);

	if (rc)
		return rc;
	nldev_put_device(m, device);
	nldev_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	nest = nldev_open_nest(m, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
#define PUT_COUNTER(name, help)                                     \
	put_named(m, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY,          \
		  RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, #name, \
		  RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, sum.name);
	SOFTNIC_COUNTERS(PUT_COUNTER)
#undef PUT_COUNTER
	nldev_close_nest(m, nest);
	return 0;
}

/* The kernel's default: devices are common to all network namespaces, as softnic's are. */
static int fill_system(struct nldev_message *m, uint32_t device, uint32_t port)
{
	(void)device;
	(void)port;
	nldev_put_u8(m, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
	return 0;
}

bool nldev_is_about_ours(const struct nlmsghdr *request)
{
	uint32_t index = nldev_asked(request, RDMA_NLDEV_ATTR_DEV_INDEX, 0);

	return index >= NLDEV_INDEX_FIRST && index - NLDEV_INDEX_FIRST < device_count();
}

static int answer_one(const struct nlmsghdr *request, nldev_filler *fill, uint32_t device,
		      uint32_t port, nldev_sink *sink, void *arg)
{
	struct nldev_message m;
	int rc;

	nldev_begin(&m, request);
	rc = fill(&m, device, port);
	if (!rc)
		sink(arg, nldev_header(&m));
	return rc;
}

/* A dump covers all devices and ports, except those that its request excludes. */
static int answer_all(const struct nlmsghdr *request, nldev_filler *fill, bool has_ports,
		      nldev_sink *sink, void *arg)
{
	uint32_t ports = has_ports ? device_ports() : 1, device, port;
	uint32_t only = nldev_asked(request, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
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

	if (objects_are_asked(command))
		return objects_answer(request, sink, arg);
	if (command >= RDMA_NLDEV_NUM_OPS || nldev_asked(request, RDMA_NLDEV_ATTR_STAT_RES, 0))
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
	device = nldev_asked(request, RDMA_NLDEV_ATTR_DEV_INDEX, 0) - NLDEV_INDEX_FIRST;
	port = nldev_asked(request, RDMA_NLDEV_ATTR_PORT_INDEX, 0);
	if (c->has_ports && !device_has_port(port))
		return -EINVAL;
	return answer_one(request, c->fill, device, port, sink, arg);
}
