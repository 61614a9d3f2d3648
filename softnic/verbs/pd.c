// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A thread domain promises that one thread at a time uses its objects. Uncontended locks cost
 * little, so the promise is accepted without effect.
 */
#include <errno.h>
#include <stdlib.h>

#include "softnic/control/fault.h"
#include "device.h"
#include "pd.h"
#include "softnic/strict/strict.h"

static uint32_t next_pd, pds;

uint32_t pd_count(void)
{
	return load_relaxed(&pds);
}

static void add_users(struct pd *pd, int32_t n)
{
	listing_add_users(&pd->listing, n);
	add_ordered(&pd->users, n); /* with the last user, the PD may go */
}

void pd_use(struct pd *pd)
{
	add_users(pd, 1);
}

void pd_release(struct pd *pd)
{
	add_users(pd, -1);
}

static struct pd *alloc_pd(struct ibv_context *context)
{
	struct pd *pd;

	if (fault_is_gone()) {
		errno = EIO;
		return NULL;
	}
	if (add_ordered(&pds, 1) > SOFTNIC_PDS_MAX) {
		add_ordered(&pds, -1);
		errno = ENOMEM;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd) {
		add_ordered(&pds, -1);
		return NULL;
	}
	pd->ibv.context = context;
	return pd;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct pd *pd = alloc_pd(context);

	if (!pd)
		return NULL;
	pd->ibv.handle = add_ordered(&next_pd, 1);
	listing_begin(&pd->listing, &(struct shared_object){
					    .kind = SHARED_PD,
					    .device = device_index(context->device),
					    .pd = pd->ibv.handle,
				    });
	return &pd->ibv;
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct pd *pd = to_pd(ibv);

	if (strict_is_destroyed(ibv->context, "ibv_dealloc_pd()"))
		return EINVAL;
	if (load_acquire(&pd->users)) {
		strict_busy("ibv_dealloc_pd()", "objects use the protection domain");
		return EBUSY;
	}
	if (!pd->parent_of)
		strict_forget_pd(ibv->handle);
	if (pd->parent_of)
		pd_release(pd->parent_of);
	if (pd->td)
		add_ordered(&pd->td->users, -1);
	listing_end(&pd->listing);
	strict_free(pd, &ibv->context);
	add_ordered(&pds, -1);
	return 0;
}

/* The program's allocators are for buffers read by hardware, so they are never called. */
struct ibv_pd *pd_alloc_parent(struct ibv_context *context,
			       struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct pd *pd;

	if (!attr->pd) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->comp_mask & ~known) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	pd = alloc_pd(context);
	if (!pd)
		return NULL;
	pd->parent_of = to_pd(attr->pd);
	pd->ibv.handle = attr->pd->handle;
	pd_use(pd->parent_of);
	if (attr->td) {
		pd->td = (struct td *)attr->td;
		add_ordered(&pd->td->users, 1);
	}
	return &pd->ibv;
}

struct ibv_td *td_alloc(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct td *td;

	if (fault_is_gone() || attr->comp_mask) {
		errno = fault_is_gone() ? EIO : EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = context;
	return &td->ibv;
}

int td_dealloc(struct ibv_td *ibv)
{
	struct td *td = (struct td *)ibv;

	if (load_acquire(&td->users))
		return EBUSY;
	free(td);
	return 0;
}
