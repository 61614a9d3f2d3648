/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A request, and its pieces. A piece lies in one unit of the stripe, and so in one extent.
 *
 * A page that the request covers in part is an edge: the first page, the last, or both. An edge has
 * a page of its own in the request. A read copies the wanted bytes out of it; a write or a discard
 * reads the old page first, and merges.
 */
#ifndef WEIR_LIB_VOLUME_REQUEST_H
#define WEIR_LIB_VOLUME_REQUEST_H

#include "core/volume/coded.h"
#include "lib/span/span.h"
#include "lib/volume/volume.h"

enum weir_volume_op {
	WEIR_VOLUME_READ,
	WEIR_VOLUME_WRITE,
	WEIR_VOLUME_DISCARD,
	WEIR_VOLUME_FLUSH,
	WEIR_VOLUME_REPAIR, /* of a coded stripe; the volume's own */
};

/* An operation of a piece at one copy. @status: how it ended; atomic. @span: until then */
struct weir_volume_subio {
	struct weir_volume_piece *piece;
	uint8_t slot;
	int status;
	struct weir_span *span;
};

enum weir_volume_wait {
	WEIR_VOLUME_WAIT_START, /* to write: for memory */
	WEIR_VOLUME_WAIT_READ, /* for a copy to read */
	WEIR_VOLUME_WAIT_FATE, /* of the copies that failed */
	WEIR_VOLUME_WAIT_PLACE, /* of a coded stripe */
	WEIR_VOLUME_WAIT_PROOF, /* that wrong bytes are not those of a later client */
};

enum weir_volume_step {
	WEIR_VOLUME_FETCH_FIRST, /* read the edge at the begin of the piece */
	WEIR_VOLUME_FETCH_LAST, /* read the edge at its end */
	WEIR_VOLUME_MOVE, /* read or write all pages */
};

/**
 * struct weir_volume_coded_piece - a part of a stripe
 * @fragments: of all shards, in a row; NULL: none yet
 * @set: the shards that are read
 * @slots: those that are written, and have not failed
 * @sums: CRC32C of each shard's fragment
 * @write: the place and record that are written
 */
struct weir_volume_coded_piece {
	char *fragments;
	struct weir_coded_set set;
	uint16_t slots;
	uint32_t sums[WEIR_EXTENTS_WIDTH_MAX];
	struct weir_coded_write write;
};

/**
 * struct weir_volume_piece - a part of a request
 * @waiting: in the request's unused pieces, or in the volume's memory_waiters
 * @first: page of the volume; @extent, @page, @pages: the same in the extent
 * @at, @count: pages of the current read, from @page on
 * @step: an enum weir_volume_step
 * @tried: copies that failed the current read
 * @slot: the copy that is read
 * @is_wrong: a copy had wrong bytes, last at @doubt_ns
 * @write: the core's state of a write; @is_writing: a write is at the donors
 * @wait: an enum weir_volume_wait, while the piece waits; @retry_ns: not before
 * @give_up_ns: when it stops waiting for memory
 * @subios: operations under way; atomic
 * @failed: copies that failed; atomic
 * @status: of the last failed operation; atomic
 * @sums: checksums written, or expected
 * @coded: of a coded volume
 */
struct weir_volume_piece {
	struct weir_volume_event event;
	struct weir_volume_request *request;
	struct weir_list waiting;
	uint64_t first;
	uint32_t extent, page, pages;
	uint32_t at, count;
	uint8_t step, slot;
	uint16_t tried;
	bool is_writing, is_wrong;
	struct weir_extents_write write;
	uint8_t wait;
	uint64_t retry_ns, give_up_ns, doubt_ns;
	uint32_t subios;
	uint32_t failed;
	int status;
	uint32_t sums[WEIR_VOLUME_UNIT_PAGES];
	struct weir_volume_subio subio[WEIR_EXTENTS_SLOTS_MAX];
	struct weir_volume_coded_piece coded;
};

/* The thread that waits for a blocking call. @state: a futex; 1 when done; atomic */
struct weir_volume_waiter {
	uint32_t state;
	int status;
};

/**
 * struct weir_volume_request - from the call until the completion
 * @order: in the volume's order
 * @pending, @active: in the volume's lists
 * @buf: the user's bytes; NULL: none
 * @first, @end: pages of the volume; @next: first page not yet in a piece
 * @edge: pages for the edges: [0] of the first page, [1] of the last if it is another; or NULL
 * @has_first, @has_last: whether these pages are edges
 * @busy: pieces under way
 * @unused: pieces not under way
 * @status: of the first piece that failed
 * @done, @arg: the user's; or @waiter
 */
struct weir_volume_request {
	struct weir_volume_event event;
	struct weir_volume *volume;
	struct weir_order_node order;
	struct weir_list pending, active;
	uint8_t op;
	bool has_first, has_last;
	char *buf;
	uint64_t offset, length;
	uint64_t first, end, next;
	char (*edge)[WEIR_VOLUME_PAGE_BYTES];
	uint32_t busy;
	struct weir_list unused;
	int status;
	weir_done_fn *done;
	void *arg;
	struct weir_volume_waiter *waiter;
	struct weir_span *span;
	struct weir_volume_piece pieces[];
};

static inline bool weir_volume_is_edge(const struct weir_volume_request *r, uint64_t page)
{
	return (r->has_first && page == r->first) || (r->has_last && page == r->end - 1);
}

extern char weir_volume_zeroes[WEIR_VOLUME_UNIT_PAGES][WEIR_VOLUME_PAGE_BYTES];

/* The memory of a page of the volume: the user's, that of an edge, or the zeroes of a discard. */
static inline char *weir_volume_page_of(const struct weir_volume_request *r, uint64_t page)
{
	if (r->has_first && page == r->first)
		return r->edge[0];
	if (r->has_last && page == r->end - 1)
		return r->edge[1];
	if (r->op == WEIR_VOLUME_DISCARD)
		return weir_volume_zeroes[page % WEIR_VOLUME_UNIT_PAGES];
	return r->buf + (page * WEIR_VOLUME_PAGE_BYTES - r->offset);
}

/* Prepares the pieces of a new request. Context: any. */
void weir_volume_request_init_pieces(struct weir_volume_request *r, uint32_t count);

/* All functions below: with the lock held. */

/* A new request has come. */
void weir_volume_request_admit(struct weir_volume_request *r);

/* Starts pieces of a request, and ends it after the last. */
void weir_volume_request_advance(struct weir_volume_request *r);

/* A piece has ended. */
void weir_volume_request_piece_ended(struct weir_volume_piece *piece, int status);

/*
 * Runs the callbacks that are due, unless another thread does. Without the lock. Return: true if
 * none is left to this thread after @rounds.
 */
bool weir_volume_requests_dispatch(struct weir_volume *v, unsigned int rounds);

/* Begins a piece that is filled in. */
void weir_volume_piece_begin(struct weir_volume_piece *piece);

/* All operations of a piece have ended. */
void weir_volume_piece_continue(struct weir_volume_piece *piece);

/* Memory may have come: tries the pieces that wait for it; @cancel: ends them. */
void weir_volume_pieces_resume(struct weir_volume *v, bool cancel);

/*
 * Common to the pieces of volumes with copies and with a code: operations at donors, waits, and the
 * fate of writes that fail.
 */

/*
 * Several operations begin in a row: one more counts, until the caller has ended it by
 * weir_volume_piece_op_ended(). @slots: their slots, which have not failed any more.
 */
void weir_volume_piece_begin_ops(struct weir_volume_piece *piece, uint16_t slots);

/* Begins an operation at the region of a slot. Return: 0, or an errno: nothing has begun. */
int weir_volume_piece_push(struct weir_volume_piece *piece, uint8_t slot, bool is_write,
			   uint64_t offset, const struct weir_iov *iov, unsigned int n);

/* An operation has failed; has ended. The last that ends continues the piece. */
void weir_volume_piece_op_failed(struct weir_volume_piece *piece, uint8_t slot, int status);
void weir_volume_piece_op_ended(struct weir_volume_piece *piece);

/* Whether the failure at a slot is this process's: it says nothing about the donor. */
bool weir_volume_piece_is_own_failure(const struct weir_volume_piece *piece, uint8_t slot);

/* Whether no slot got the write, for want of this process's memory. */
bool weir_volume_piece_is_nowhere(const struct weir_volume_piece *piece, uint16_t slots);

/* Suspects the donors at which operations have failed. */
void weir_volume_piece_suspect(struct weir_volume_piece *piece);

enum weir_volume_settled {
	WEIR_VOLUME_SETTLED, /* each slot that failed is out */
	WEIR_VOLUME_REFUSED, /* the volume is closing, or over */
	WEIR_VOLUME_RETRY, /* at some slots, now */
	WEIR_VOLUME_WAITS, /* the piece waits */
};

/*
 * The fate of a write that may have failed somewhere. It ends once each such copy is out, and so is
 * never read. Until then it is tried again where that has a chance: @retry. Own memory may have
 * come when others have ended.
 */
enum weir_volume_settled weir_volume_piece_settle(struct weir_volume_piece *piece,
						  uint16_t *retry);

/* Whether the extent's copies are equal. If not, they are made equal before others. */
bool weir_volume_piece_is_usable(const struct weir_volume_piece *piece);

/* The piece waits until it is resumed. */
void weir_volume_piece_wait(struct weir_volume_piece *piece, enum weir_volume_wait what);

/* The piece waits for memory; or for a copy to read, if @rc allows it. Return: whether it does. */
void weir_volume_piece_wait_for_memory(struct weir_volume_piece *piece);
bool weir_volume_piece_read_later(struct weir_volume_piece *piece, int rc);

/*
 * Wrong bytes may be those of a client that has the volume now: then this one ends with -ESTALE.
 * Return: 0: the piece waits; or an errno.
 */
int weir_volume_piece_prove(struct weir_volume_piece *piece);

/* Why no piece may start; 0: it may. */
int weir_volume_piece_refusal(const struct weir_volume *v);

/* Lists the memory of pages of the piece: at most three parts. Return: the length of the list. */
unsigned int weir_volume_piece_fill_iov(const struct weir_volume_piece *piece, uint32_t at,
					uint32_t count, struct weir_iov *iov);

/* Wrong bytes were read. */
void weir_volume_piece_note_mismatch(struct weir_volume_piece *piece);

/* The piece has ended. */
void weir_volume_piece_end(struct weir_volume_piece *piece, int status);

#endif
