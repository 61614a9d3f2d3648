// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Paging on demand. Copies use virtual addresses, so every region pages on demand. What the flag
 * changes: registration does not look at the pages, and peers map no file behind them. See mr.c.
 */
#include <errno.h>

#include "softnic/control/fault.h"
#include "softnic/shm/vma.h"
#include "softnic/verbs/nic.h"
#include "odp.h"

static int find_region(const struct ibv_pd *pd, const struct ibv_sge *sge, bool write,
		       uint64_t *addr)
{
	const struct mr_view own = { nic.pub, NULL, pd->handle, 0 };
	const uint32_t key = load_acquire(&nic.pub->mrs[sge->lkey >> 16].key);
	struct mr_place place;
	struct shared_mr mr;

	if (!sge->lkey || key != sge->lkey)
		return ENOENT;
	if (!mr_read(&own, key, &mr))
		return EPERM;
	if (mr.kind != SHARED_REGION || !(mr.access & IBV_ACCESS_ON_DEMAND))
		return EINVAL;
	if (write && !(mr.access & IBV_ACCESS_LOCAL_WRITE))
		return EPERM;
	if (!mr_translate(&own, key, 0, sge->addr, sge->length, &place))
		return EFAULT;
	*addr = place.addr;
	return 0;
}

/* Without IBV_ADVISE_MR_FLAG_FLUSH a page that is not there is no error. */
int odp_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	       struct ibv_sge *sges, uint32_t num_sge)
{
	const bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uint64_t addr;
	uint32_t i;
	int rc = 0;

	if (fault_is_gone())
		return EIO;
	if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && !write &&
	    advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	if (!num_sge || (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH))
		return EINVAL;
	for (i = 0; i < num_sge && !rc; i++) {
		rc = find_region(pd, &sges[i], write, &addr);
		if (rc || !sges[i].length || advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			continue;
		if (vma_touch_range((void *)(uintptr_t)addr, sges[i].length, write) &&
		    (flags & IBV_ADVISE_MR_FLAG_FLUSH))
			rc = EFAULT;
	}
	return rc;
}

void odp_caps(struct ibv_device_attr_ex *attr)
{
	const uint32_t messages = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;

	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps =
		messages | IBV_ODP_SUPPORT_SRQ_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
		IBV_ODP_SUPPORT_ATOMIC;
	attr->xrc_odp_caps = attr->odp_caps.per_transport_caps.rc_odp_caps;
	attr->odp_caps.per_transport_caps.uc_odp_caps = messages | IBV_ODP_SUPPORT_WRITE;
	attr->odp_caps.per_transport_caps.ud_odp_caps = messages | IBV_ODP_SUPPORT_SRQ_RECV;
}
