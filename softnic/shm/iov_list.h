/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory that one step of a work request copies from or to, as a vector.
 */
#ifndef WEIR_SOFTNIC_SHM_IOV_LIST_H
#define WEIR_SOFTNIC_SHM_IOV_LIST_H

#include <sys/uio.h>

#include "softnic/verbs/mr.h"
#include "peer.h"

enum { IOV_LIST_MAX = 1 + SHARED_SGES_MAX }; /* 1 for a datagram's GRH */

/* In the order of the copy. A copy advances the vector. */
struct iov_list {
	struct iovec v[IOV_LIST_MAX]; /* addresses in the owner */
	void *mapped[IOV_LIST_MAX]; /* if @is_mapped: addresses in this process */
	int num;
	bool is_mapped;
};

/** iov_list_init() - make the list empty */
static inline void iov_list_init(struct iov_list *p)
{
	p->num = 0;
	p->is_mapped = true;
}

/** iov_list_add() - append memory of this process; the caller knows that there is room */
void iov_list_add(struct iov_list *p, void *addr, size_t length);

/** iov_list_add_first() - insert memory of this process at the front */
void iov_list_add_first(struct iov_list *p, void *addr, size_t length);

/** iov_list_add_remote() - append @length bytes at @place + @offset of a peer's memory */
void iov_list_add_remote(struct iov_list *p, struct shm_peer *peer, const struct mr_place *place,
			 uint64_t offset, uint64_t length);

/**
 * iov_list_gather() - collect bytes [@offset, @offset + @length) of a scatter/gather list
 * @p: set to the result
 * @peer: owner of the memory; NULL: this process
 * @view: the memory regions and windows that the keys name
 * @access: IBV_ACCESS_* that each element must grant
 * @sges: @num_sge elements
 *
 * Context: as mr_translate(), and qp->lock held.
 * Return: false if a key, a bound or a right is invalid.
 */
bool iov_list_gather(struct iov_list *p, struct shm_peer *peer, const struct mr_view *view,
		     uint32_t access, const struct ibv_sge *sges, uint32_t num_sge, uint64_t offset,
		     uint64_t length);

/** iov_list_needs_kernel() - true if a copy from or to this list of a peer is a system call */
bool iov_list_needs_kernel(const struct iov_list *there);

/**
 * iov_list_copy() - copy between this process and a peer; both lists have the same length
 * @to: true to write into the peer, false to read from it
 * @cut: of our guard at the peer, or NULL
 *
 * Return: as copy_bytes(); -ESRCH also if the peer has cut us off.
 */
int iov_list_copy(const struct shm_peer *peer, bool to, struct iov_list *here,
		  struct iov_list *there, const uint32_t *cut);

/** iov_list_is_accessible() - true if this process can read, or write, the whole list */
bool iov_list_is_accessible(const struct iov_list *here, bool write);

#endif
