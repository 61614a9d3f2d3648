/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * weir's part of a block layer request. Each tag has preallocated ios, scatterlists and checksums,
 * one io for each replica slot, so writeback needs no memory. A tag of an encrypted device has
 * memory for the ciphertext, too. The block layer splits reads and writes at extent boundaries.
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
 * @write: the core's state of a write
 * @give_up: when a write stops waiting for memory; jiffies
 * @tried: replicas that failed the read; @wrong: those with other data than was written
 * @waiting: in a queue: a read for the local disk, a write for memory, or either for the donor of
 *	a pool; @nents: of the first subio's list, while queued
 * @subios: subios under way
 * @failed: replicas that may have missed the write
 * @extent, @page, @pages: the range of a read or write
 * @sums: checksums of the pages of a write; expected checksums of a read
 * @seal: encrypts or decrypts the pages; NULL: not encrypted. Belongs to the tag
 */
struct weir_blk_request {
	struct weir_extents_write write;
	unsigned long give_up;
	u8 tried, wrong;
	struct list_head waiting;
	unsigned int nents;
	atomic_t subios;
	atomic_t failed;
	u32 extent, page, pages;
	u32 sums[WEIR_BLK_REQUEST_PAGES_MAX];
	struct weir_blk_seal *seal;
	struct weir_blk_subio subio[];
};

static inline struct weir_blk_volume *weir_blk_volume_of(const struct request *rq)
{
	struct weir_blk *blk = rq->q->queuedata;

	return &blk->volume;
}

/* Prepares one subio, as kweir_io_prepare(). With the volume's lock held. */
int weir_blk_subio_prepare(struct weir_blk_subio *subio, struct request *rq, u8 slot,
			   enum weir_op op, unsigned int nents);

/* Translates an errno for the block layer; -ENOMEM: retry after other ios have ended. */
blk_status_t weir_blk_request_status(int rc);

/* @nents: length of the first subio's list, already filled in. Context: as queue_rq(). */
blk_status_t weir_blk_read_queue(struct request *rq, unsigned int nents);
blk_status_t weir_blk_write_queue(struct request *rq, unsigned int nents);

/* Makes a request wait in the volume's list, and wakes the works. Context: any. */
void weir_blk_request_wait(struct weir_blk_volume *volume, struct weir_blk_request *command);

/*
 * Retries requests that wait, and ends writes that have waited too long for memory. Context:
 * process.
 */
void weir_blk_write_resume(struct weir_blk_volume *volume);

/* Retries a read that waited. Context: process. Return: 0: under way or ended; or an errno. */
int weir_blk_read_resume(struct request *rq);

/* Encrypts a write that was queued, and starts it. Context: process. */
void weir_blk_write_encrypt(struct request *rq);

/*
 * Compares the pages read with what is expected, and decrypts them. Return: 0; -EBADMSG: other data
 * than was written; or an errno.
 */
int weir_blk_read_check(const struct weir_blk_volume *volume, struct weir_blk_request *command);

/*
 * All subios have ended. Return: 0; -EAGAIN: queue the request again; -EINPROGRESS: in a moment, a
 * pool's donor has missed the write; or the request's errno.
 */
int weir_blk_read_end(struct request *rq);
int weir_blk_write_end(struct request *rq);

/* Makes pages read as zeroes, without any donor. Context: as queue_rq(). */
blk_status_t weir_blk_write_zeroes(struct request *rq);

#endif
