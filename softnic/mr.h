/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions, and the one check that every access goes through, local or remote.
 */
#ifndef SOFTNIC_MR_H
#define SOFTNIC_MR_H

#include "shared.h"

struct pd {
	struct ibv_pd ibv;	/* handle is its number, unique in the process */
	uint32_t users;		/* regions and queue pairs */
};

static inline struct pd *to_pd(struct ibv_pd *pd)
{
	return (struct pd *)pd;
}

/**
 * mr_translate() - may this range be accessed, and where is it?
 * @pub: whose regions
 * @key: lkey or rkey
 * @pd: that the queue pair belongs to
 * @access: IBV_ACCESS_* that all must be granted
 * @iova: where the range starts, as the work request says
 * @length: 0 is always allowed and needs no key
 * @addr: written on success: where it starts in the owner
 *
 * Context: under a guard that ibv_dereg_mr() waits for, or the answer may be out of date
 * before it is used.
 * Return: true if it may.
 */
bool mr_translate(const struct shared_pub *pub, uint32_t key, uint32_t pd, uint32_t access,
		  uint64_t iova, uint64_t length, uint64_t *addr);

#endif
