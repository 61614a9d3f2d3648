/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protection domains, thread domains, and parent domains, which are a name for both.
 */
#ifndef WEIR_SOFTNIC_VERBS_PD_H
#define WEIR_SOFTNIC_VERBS_PD_H

#include "verbs.h"

struct td;

struct pd {
	struct ibv_pd ibv; /* handle is its number, unique in the process; a parent's its own's */
	uint32_t users; /* what was made in it, parent domains included */
	struct pd *parent_of; /* NULL if it is no parent domain */
	struct td *td; /* or NULL */
};

struct td {
	struct ibv_td ibv;
	uint32_t users; /* parent domains */
};

static inline struct pd *to_pd(struct ibv_pd *pd)
{
	return (struct pd *)pd;
}

/* verbs that are reached through the context */
struct ibv_pd *pd_alloc_parent(struct ibv_context *context,
			       struct ibv_parent_domain_init_attr *attr);
struct ibv_td *td_alloc(struct ibv_context *context, struct ibv_td_init_attr *attr);
int td_dealloc(struct ibv_td *td);

#endif
