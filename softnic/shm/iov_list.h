/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pieces of memory that one step of a work request moves between.
 */
#ifndef WEIR_SOFTNIC_SHM_IOV_LIST_H
#define WEIR_SOFTNIC_SHM_IOV_LIST_H

#include <sys/uio.h>

#include "softnic/verbs/mr.h"
#include "peer.h"

enum { PIECES_MAX = 1 + SHARED_SGES_MAX };	/* one for a datagram's addresses */

/* In the order in which they are filled; what was copied is used up. */
struct pieces {
	struct iovec v[PIECES_MAX];	/* as their owner sees them */
	void *near[PIECES_MAX];		/* as we do, if is_near: all of them are mapped here */
	int num;
	bool is_near;
};

/** pieces_init() - none yet */
static inline void pieces_init(struct pieces *p)
{
	p->num = 0;
	p->is_near = true;
}

/** pieces_add() - one of our own; there is room for it */
void pieces_add(struct pieces *p, void *addr, size_t length);

/** pieces_add_first() - the same, ahead of the others */
void pieces_add_first(struct pieces *p, void *addr, size_t length);

/** pieces_add_place() - @length bytes, @offset on from a place in a peer's memory */
void pieces_add_place(struct pieces *p, struct peer *peer, const struct mr_place *place,
		      uint64_t offset, uint64_t length);

/**
 * pieces_gather() - bytes [@offset, @offset + @length) of a list of buffers
 * @p: written
 * @peer: whose they are; NULL: ours
 * @view: through what they are reached
 * @access: IBV_ACCESS_* that each must grant
 * @sges: @num_sge of them
 *
 * Context: as mr_translate(), and qp->lock held.
 * Return: false if a key, a bound or a right is not as it must be.
 */
bool pieces_gather(struct pieces *p, struct peer *peer, const struct mr_view *view, uint32_t access,
		   const struct ibv_sge *sges, uint32_t num_sge, uint64_t offset, uint64_t length);

/**
 * pieces_copy() - between ours and a peer's, of equal total length
 * @to: into the peer's, else out of it
 *
 * Return: as copy_bytes().
 */
int pieces_copy(const struct peer *peer, bool to, struct pieces *here, struct pieces *there);

/** pieces_are_ours() - can we still read, or write, all of what we called our own? */
bool pieces_are_ours(const struct pieces *here, bool write);

#endif
