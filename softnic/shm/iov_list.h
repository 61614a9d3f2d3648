/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pieces of memory that one step of a work request moves between.
 */
#ifndef WEIR_SOFTNIC_SHM_IOV_LIST_H
#define WEIR_SOFTNIC_SHM_IOV_LIST_H

#include <sys/uio.h>

#include "softnic/verbs/mr.h"
#include "peer.h"

enum { IOV_LIST_MAX = 1 + SHARED_SGES_MAX }; /* one for a datagram's addresses */

/* In the order in which they are filled; what was copied is used up. */
struct iov_list {
	struct iovec v[IOV_LIST_MAX]; /* as their owner sees them */
	void *mapped[IOV_LIST_MAX]; /* as we do, if is_mapped: all of them are mapped here */
	int num;
	bool is_mapped;
};

/** iov_list_init() - none yet */
static inline void iov_list_init(struct iov_list *p)
{
	p->num = 0;
	p->is_mapped = true;
}

/** iov_list_add() - one of our own; there is room for it */
void iov_list_add(struct iov_list *p, void *addr, size_t length);

/** iov_list_add_first() - the same, ahead of the others */
void iov_list_add_first(struct iov_list *p, void *addr, size_t length);

/** iov_list_add_remote() - @length bytes, @offset on from a place in a peer's memory */
void iov_list_add_remote(struct iov_list *p, struct shm_peer *peer, const struct mr_place *place,
			 uint64_t offset, uint64_t length);

/**
 * iov_list_gather() - bytes [@offset, @offset + @length) of a list of buffers
 * @p: written
 * @peer: whose they are; NULL: ours
 * @view: through what they are reached
 * @access: IBV_ACCESS_* that each must grant
 * @sges: @num_sge of them
 *
 * Context: as mr_translate(), and qp->lock held.
 * Return: false if a key, a bound or a right is not as it must be.
 */
bool iov_list_gather(struct iov_list *p, struct shm_peer *peer, const struct mr_view *view,
		     uint32_t access, const struct ibv_sge *sges, uint32_t num_sge, uint64_t offset,
		     uint64_t length);

/**
 * iov_list_copy() - between ours and a peer's, of equal total length
 * @to: into the peer's, else out of it
 *
 * Return: as copy_bytes().
 */
int iov_list_copy(const struct shm_peer *peer, bool to, struct iov_list *here,
		  struct iov_list *there);

/** iov_list_is_accessible() - can we still read, or write, all of what we called our own? */
bool iov_list_is_accessible(const struct iov_list *here, bool write);

#endif
