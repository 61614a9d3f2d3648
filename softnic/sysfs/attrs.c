// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The table of paths, laid out as for an adapter on a bus: /sys/devices/softnicN is the adapter,
 * and /sys/class/infiniband/softnicN links to its RDMA device. The formats are the kernel's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "counters.h"
#include "softnic/verbs/device_query.h"
#include "softnic/verbs/gid.h"
#include "tree.h"

#define WRITER(name)                                                                        \
	static int name(const struct sysfs_entry *e, const struct sysfs_at *at, char *text, \
			size_t size)

static void write_words(const uint8_t *bytes, unsigned int words, char *text, size_t size)
{
	size_t n = 0;
	unsigned int i;

	for (i = 0; i < words && n < size; i++)
		n += snprintf(text + n, size - n, "%02x%02x%c", bytes[2 * i], bytes[2 * i + 1],
			      i + 1 < words ? ':' : '\n');
}

WRITER(write_guid)
{
	uint64_t guid = ibv_get_device_guid(softnic_device() + at->value[SYSFS_DEVICE]);

	(void)e;
	write_words((const uint8_t *)&guid, sizeof(guid) / 2, text, size);
	return 0;
}

static struct ibv_port_attr port_attr(const struct sysfs_at *at)
{
	struct ibv_port_attr attr = { .state = IBV_PORT_NOP };

	query_port(NULL, at->value[SYSFS_PORT], &attr,
		   sizeof(attr)); /* NOP if the device is gone */
	return attr;
}

WRITER(write_state)
{
	static const char *const names[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE" };
	enum ibv_port_state state = port_attr(at).state;

	(void)e;
	snprintf(text, size, "%d: %s\n", state, names[state]);
	return 0;
}

WRITER(write_phys_state)
{
	bool up = port_attr(at).state == IBV_PORT_ACTIVE;

	(void)e;
	snprintf(text, size, "%s\n", up ? "5: LinkUp" : "3: Disabled");
	return 0;
}

WRITER(write_cap_mask)
{
	(void)e;
	snprintf(text, size, "0x%08x\n", port_attr(at).port_cap_flags);
	return 0;
}

/* An empty entry has a GID of zeros, but neither type nor netdev. */
WRITER(write_gid)
{
	union ibv_gid gid = { .raw = { 0 } };

	(void)e;
	gid_get(at->value[SYSFS_DEVICE], at->value[SYSFS_PORT], at->value[SYSFS_GID], &gid, NULL);
	write_words(gid.raw, sizeof(gid) / 2, text, size);
	return 0;
}

static int find_netdev(const struct sysfs_at *at, char *name)
{
	union ibv_gid gid;
	uint32_t ifindex;

	if (gid_get(at->value[SYSFS_DEVICE], at->value[SYSFS_PORT], at->value[SYSFS_GID], &gid,
		    &ifindex) ||
	    !if_indextoname(ifindex, name))
		return -EINVAL;
	return 0;
}

WRITER(write_gid_type)
{
	char name[IF_NAMESIZE];
	int rc = find_netdev(at, name);

	(void)e;
	if (!rc)
		snprintf(text, size, "RoCE v2\n");
	return rc;
}

WRITER(write_gid_netdev)
{
	char name[IF_NAMESIZE];
	int rc = find_netdev(at, name);

	(void)e;
	if (!rc)
		snprintf(text, size, "%s\n", name);
	return rc;
}

#define CLASS "/sys/class/infiniband"
#define ADAPTER "/sys/devices/softnic%d"
#define RDMA ADAPTER "/infiniband/softnic%d"
#define UVERBS ADAPTER "/infiniband_verbs/softnic%d"
#define PORT RDMA "/ports/%p"
#define TEXT(path, words)                                               \
	{                                                               \
		.pattern = path, .kind = SYSFS_FILE, .text = words "\n" \
	}
#define ATTR(path, function)                                           \
	{                                                              \
		.pattern = path, .kind = SYSFS_FILE, .write = function \
	}
#define LINK(path, target)                                          \
	{                                                           \
		.pattern = path, .kind = SYSFS_LINK, .text = target \
	}
#define ROOT(path)                                       \
	{                                                \
		.pattern = path, .kind = SYSFS_DIRECTORY \
	}
#define ZERO(name) TEXT(PORT "/counters/" name, "0")
#define HW_COUNTER(name_, help)                   \
	{ .pattern = PORT "/hw_counters/" #name_, \
	  .kind = SYSFS_FILE,                     \
	  .write = counters_write,                \
	  .counter = offsetof(struct softnic_counters, name_) },

/* Roots come first: see locate(). */
const struct sysfs_entry sysfs_table[] = {
	ROOT(CLASS),
	ROOT(CLASS "_verbs"),
	ROOT(CLASS "_mad"),
	ROOT("/dev/infiniband"),
	ROOT(ADAPTER),
	LINK(CLASS "/softnic%d", "../../devices/softnic%d/infiniband/softnic%d"),
	LINK(CLASS "_verbs/softnic%d", "../../devices/softnic%d/infiniband_verbs/softnic%d"),
	TEXT(CLASS "_verbs/abi_version", "6"),
	TEXT(CLASS "_mad/abi_version", "5"),
	/* UCX ignores a device without a node of this name, but never opens the node. */
	{ .pattern = "/dev/infiniband/softnic%d", .kind = SYSFS_NODE },
	TEXT(ADAPTER "/numa_node", "-1"),
	TEXT(ADAPTER "/vendor", "0xffff"),
	TEXT(ADAPTER "/device", "0x0000"),
	LINK(ADAPTER "/net/%n", "../../../class/net/%n"),
	LINK(UVERBS "/device", "../../../softnic%d"),
	LINK(UVERBS "/subsystem", "../../../../class/infiniband_verbs"),
	TEXT(UVERBS "/ibdev", "softnic%d"),
	TEXT(UVERBS "/abi_version", "1"),
	LINK(RDMA "/device", "../../../softnic%d"),
	LINK(RDMA "/subsystem", "../../../../class/infiniband"),
	TEXT(RDMA "/node_type", "1: CA"),
	TEXT(RDMA "/node_desc", "softnic%d"),
	TEXT(RDMA "/fw_ver", "softnic"),
	TEXT(RDMA "/hca_type", "softnic"),
	TEXT(RDMA "/hw_rev", "0"),
	ATTR(RDMA "/node_guid", write_guid),
	ATTR(RDMA "/sys_image_guid", write_guid),
	ATTR(PORT "/state", write_state),
	ATTR(PORT "/phys_state", write_phys_state),
	ATTR(PORT "/cap_mask", write_cap_mask),
	TEXT(PORT "/rate", "100 Gb/sec (4X EDR)"),
	TEXT(PORT "/link_layer", "Ethernet"),
	TEXT(PORT "/lid", "0x0"),
	TEXT(PORT "/lid_mask_count", "0"),
	TEXT(PORT "/sm_lid", "0x0"),
	TEXT(PORT "/sm_sl", "0"),
	TEXT(PORT "/pkeys/0", "0xffff"),
	ATTR(PORT "/gids/%g", write_gid),
	ATTR(PORT "/gid_attrs/types/%g", write_gid_type),
	ATTR(PORT "/gid_attrs/ndevs/%g", write_gid_netdev),
	ATTR(PORT "/counters/port_xmit_data", counters_write_words),
	ATTR(PORT "/counters/port_rcv_data", counters_write_words),
	ATTR(PORT "/counters/port_xmit_packets", counters_write_messages),
	ATTR(PORT "/counters/port_rcv_packets", counters_write_messages),
	ZERO("VL15_dropped"),
	ZERO("excessive_buffer_overrun_errors"),
	ZERO("link_downed"),
	ZERO("link_error_recovery"),
	ZERO("local_link_integrity_errors"),
	ZERO("port_rcv_constraint_errors"),
	ZERO("port_rcv_errors"),
	ZERO("port_rcv_remote_physical_errors"),
	ZERO("port_rcv_switch_relay_errors"),
	ZERO("port_xmit_constraint_errors"),
	ZERO("port_xmit_discards"),
	ZERO("port_xmit_wait"),
	ZERO("symbol_error"),
	SOFTNIC_COUNTERS(HW_COUNTER)
};
const size_t sysfs_table_length = sizeof(sysfs_table) / sizeof(sysfs_table[0]);
