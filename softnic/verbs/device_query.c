// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Queries of the device. The limits come from the layout of shared memory, the other attributes
 * from Soft-RoCE.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "softnic/control/fault.h"
#include "gid.h"
#include "mcast.h"
#include "softnic/loop/loop.h"
#include "nic.h"
#include "softnic/qp/flush.h"
#include "softnic/region/odp.h"
#include "device_query.h"

#undef ibv_query_port

enum {
	DEFAULT_PKEY = 0xffff,
	CLOCK_KHZ = 1000000,
};

#define CAP_ATOMIC_WRITE (1ull << 40) /* IB_UVERBS_DEVICE_ATOMIC_WRITE of rdma-core 45 */

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const uint64_t guid = gid_guid(device_index(context->device), 0);

	if (fault_is_gone())
		return EIO;
	*attr = (struct ibv_device_attr){
		.fw_ver = "softnic",
		.node_guid = htobe64(guid),
		.sys_image_guid = htobe64(guid),
		.vendor_id = SOFTNIC_VENDOR,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1),
		.max_qp = NIC_QPS,
		.max_qp_wr = SHARED_WRS_MAX,
		.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
				    IBV_DEVICE_XRC | IBV_DEVICE_SRQ_RESIZE,
		.max_sge = SHARED_SGES_MAX,
		.max_sge_rd = SHARED_SGES_MAX,
		.max_cq = SHARED_CQS,
		.max_cqe = SOFTNIC_CQES_MAX,
		.max_mr = SHARED_MRS - 1,
		.max_pd = SOFTNIC_PDS_MAX,
		.max_mw = SHARED_MRS - 1,
		.max_qp_rd_atom = SOFTNIC_RD_ATOMIC_MAX,
		.max_res_rd_atom = NIC_QPS * SOFTNIC_RD_ATOMIC_MAX,
		.max_qp_init_rd_atom = SOFTNIC_RD_ATOMIC_MAX,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_pkeys = 1,
		.max_mcast_grp = MCAST_ATTACHMENTS_MAX,
		.max_mcast_qp_attach = MCAST_QPS_MAX,
		.max_total_mcast_qp_attach = MCAST_ATTACHMENTS_MAX,
		.max_ah = INT32_MAX,
		.max_srq = NIC_QPS,
		.max_srq_wr = SHARED_WRS_MAX,
		.max_srq_sge = SHARED_SGES_MAX,
		.phys_port_cnt = device_ports(),
	};
	return 0;
}

/* Unsupported features stay 0: TSO, RSS, tag matching, device memory. */
int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex a = {
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = CLOCK_KHZ,
	};
	int rc;

	if ((input && input->comp_mask) || size < sizeof(a.orig_attr))
		return EINVAL;
	rc = ibv_query_device(context, &a.orig_attr);
	if (rc)
		return rc;
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags | CAP_ATOMIC_WRITE | FLUSH_CAP;
	a.phys_port_cnt_ex = a.orig_attr.phys_port_cnt;
	odp_caps(&a);
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/* Like providers, return the raw clock count in tv_nsec. */
int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint32_t mask = values->comp_mask;

	(void)context;
	if (mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (mask)
		values->raw_clock = (struct timespec){ .tv_nsec = softnic_loop_now_ns() };
	return 0;
}

int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	const bool down = fault_port_is_down();
	const struct ibv_port_attr a = {
		.state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = SOFTNIC_GIDS_MAX,
		.port_cap_flags = IBV_PORT_CM_SUP,
		.max_msg_sz = SOFTNIC_MESSAGE_MAX,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = 2, /* 4x */
		.active_speed = 32, /* EDR, for display only: softnic does not pace */
		.phys_state = down ? 3 : 5, /* disabled, link up */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};

	(void)context;
	if (fault_is_gone())
		return EIO;
	if (!device_has_port(port))
		return EINVAL;
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/* For programs built against old headers, with a structure that ends at link_layer. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	size_t size = offsetof(struct ibv_port_attr, link_layer) + sizeof(uint8_t);

	return query_port(context, port, (struct ibv_port_attr *)attr, size);
}

/* An empty entry is no error: programs search for entries that are not zero. */
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	if (!device_has_port(port) || index < 0 || index >= SOFTNIC_GIDS_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (gid_get(device_index(context->device), port, index, gid, NULL))
		memset(gid, 0, sizeof(*gid));
	return 0;
}

/* Returns 0, or -ENODATA for an empty entry. */
static int fill_gid_entry(struct ibv_context *context, struct ibv_gid_entry *entry, uint32_t port,
			  uint32_t index)
{
	*entry = (struct ibv_gid_entry){
		.gid_index = index,
		.port_num = port,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
	};
	return gid_get(device_index(context->device), port, index, &entry->gid,
		       &entry->ndev_ifindex);
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry found;

	if (!device_has_port(port) || flags || entry_size < sizeof(*entry))
		return EINVAL;
	if (fill_gid_entry(context, &found, port, index))
		return ENODATA;
	*entry = found;
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry found;
	uint32_t port, i;
	size_t n = 0;

	if (flags || entry_size < sizeof(*entries))
		return -EINVAL;
	for (port = SOFTNIC_PORT; device_has_port(port); port++) {
		for (i = 0; i < SOFTNIC_GIDS_MAX; i++) {
			if (fill_gid_entry(context, &found, port, i))
				continue;
			if (n == max_entries)
				return -EINVAL;
			memcpy((char *)entries + n++ * entry_size, &found, sizeof(found));
		}
	}
	return n;
}

/* Private to rdma-core, for ibv_devinfo; InfiniBand and RoCE v1 share a number. */
enum ibv_gid_type_sysfs { GID_TYPE_IB_ROCE_V1, GID_TYPE_ROCE_V2 };

__attribute__((visibility("default"))) int ibv_query_gid_type(struct ibv_context *context,
							      uint8_t port, unsigned int index,
							      enum ibv_gid_type_sysfs *type);

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
		       enum ibv_gid_type_sysfs *type)
{
	union ibv_gid gid;

	if (!device_has_port(port) || index >= SOFTNIC_GIDS_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (gid_get(device_index(context->device), port, index, &gid, NULL))
		*type = GID_TYPE_IB_ROCE_V1; /* as rdma-core reports an empty entry */
	else
		*type = GID_TYPE_ROCE_V2;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	(void)context;
	if (!device_has_port(port) || index) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(DEFAULT_PKEY);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	(void)context;
	if (device_has_port(port) && pkey == htobe16(DEFAULT_PKEY))
		return 0;
	errno = EINVAL;
	return -1;
}
