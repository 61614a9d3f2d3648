/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protection domains, thread domains, and parent domains, which combine the two.
 */
#ifndef WEIR_SOFTNIC_VERBS_PD_H
#define WEIR_SOFTNIC_VERBS_PD_H

#include "listing.h"
#include "verbs.h"

struct td;

struct pd {
	struct ibv_pd ibv; /* handle: unique in the process; a parent domain has its PD's */
	uint32_t users; /* objects created in the PD, with parent domains */
	struct pd *parent_of; /* the PD of a parent domain, else NULL */
	struct td *td; /* or NULL */
	struct listing_place listing; /* of a PD without a parent */
};

struct td {
	struct ibv_td ibv;
	uint32_t users; /* parent domains */
};

static inline struct pd *to_pd(struct ibv_pd *pd)
{
	return (struct pd *)pd;
}

/** pd_use(), pd_release() - one object more, or less, needs the PD */
void pd_use(struct pd *pd);
void pd_release(struct pd *pd);

/** pd_count() - the protection domains of this process */
uint32_t pd_count(void);

/* Verbs called through the context. */
struct ibv_pd *pd_alloc_parent(struct ibv_context *context,
			       struct ibv_parent_domain_init_attr *attr);
struct ibv_td *td_alloc(struct ibv_context *context, struct ibv_td_init_attr *attr);
int td_dealloc(struct ibv_td *td);

#endif
