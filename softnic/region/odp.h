/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Paging on demand: advice and capabilities.
 */
#ifndef WEIR_SOFTNIC_REGION_ODP_H
#define WEIR_SOFTNIC_REGION_ODP_H

#include "softnic/verbs/verbs.h"

/**
 * odp_advise() - ibv_advise_mr(), called through the context
 *
 * Return: 0, ENOENT for an unknown key, EPERM for another domain's or without the right to write,
 * EINVAL if the region does not page on demand, EFAULT beyond the region or, with the flag to
 * flush, for pages that cannot be had.
 */
int odp_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	       struct ibv_sge *sges, uint32_t num_sge);

/** odp_caps() - set the capabilities of ibv_query_device_ex() */
void odp_caps(struct ibv_device_attr_ex *attr);

#endif
