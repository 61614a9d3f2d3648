/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a request of the block layer is to us. Each tag has its ios, their scatterlists and its
 * checksums in it from the beginning, one io for each slot of a replica: what is written out needs
 * no memory. No read or write crosses an extent: the block layer splits them there.
 */
#ifndef WEIR_KERNEL_BLK_REQUEST_H
#define WEIR_KERNEL_BLK_REQUEST_H

#include <linux/blk-mq.h>

#include "kernel/blk/device.h"

#define WEIR_BLK_REQUEST_BYTES_MAX SZ_1M
#define WEIR_BLK_REQUEST_PAGES_MAX (WEIR_BLK_REQUEST_BYTES_MAX / PAGE_SIZE)

/* An io of a request, at one replica. */
struct weir_blk_subio {
	struct kweir_io io;
	struct request *rq;
	u8 slot, donor;
	struct scatterlist sgl[KWEIR_IO_SEGMENTS];
};

/**
 * struct weir_blk_request - a request
 * @write: of a write
 * @give_up: when a write waits for memory no longer; jiffies
 * @tried: replicas that a read has failed at
 * @waiting: a read for the local disk, a write for memory; @nents: of the first subio's list,
 *	meanwhile
 * @subios: under way
 * @failed: replicas of which it is not certain that they did it
 * @extent, @page, @pages: where, of a read or write
 * @sums: of a write, its pages'; of a read, what they should be
 */
struct weir_blk_request {
	struct weir_volume_write write;
	unsigned long give_up;
	u8 tried;
	struct list_head waiting;
	unsigned int nents;
	atomic_t subios;
	atomic_t failed;
	u32 extent, page, pages;
	u32 sums[WEIR_BLK_REQUEST_PAGES_MAX];
	struct weir_blk_subio subio[];
};

static inline struct weir_blk_volume *weir_blk_volume_of(const struct request *rq)
{
	struct weir_blk *blk = rq->q->queuedata;

	return &blk->volume;
}

/* Makes one subio's io ready; as kweir_io_prepare(). With the volume's lock held. */
int weir_blk_subio_prepare(struct weir_blk_subio *subio, struct request *rq, u8 slot,
			   enum weir_op op, unsigned int nents);

/* What the block layer is told of an errno; -ENOMEM: it is to come again when ios have ended. */
blk_status_t weir_blk_request_status(int rc);

/* @nents: of the first subio's list, which is filled in. Context: as queue_rq(). */
blk_status_t weir_blk_read_queue(struct request *rq, unsigned int nents);
blk_status_t weir_blk_write_queue(struct request *rq, unsigned int nents);

/*
 * Writes that wait for memory: what can is begun, what has waited for long enough ends.
 * Context: process.
 */
void weir_blk_write_resume(struct weir_blk_volume *volume);

/* All subios have ended. Return: 0; -EAGAIN: it is to be queued again; or the request's errno. */
int weir_blk_read_end(struct request *rq);
int weir_blk_write_end(struct request *rq);

/* Pages are zeroes from now on; no donor is asked. Context: as queue_rq(). */
blk_status_t weir_blk_write_zeroes(struct request *rq);

#endif
