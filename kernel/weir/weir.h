/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * weir in the kernel: memory of another machine, read and written over RDMA.
 *
 * A session is a connection to one donor ('weir serve'), a region a piece of its memory, an io one
 * read or write between a region and a scatterlist. What weir promises of order, completion and
 * failure it promises here too (docs/reference/errors.md, docs/how-to/block-device.md):
 *
 *  - ios of one session that overlap take effect in the order submitted, the others in any;
 *  - a write that is done is seen by whatever reads afterwards;
 *  - each io ends exactly once, by its deadline or soon after: with 0, or with a negative errno.
 *
 * To submit and to complete allocates nothing and waits for nothing, so that memory can be
 * written out through it.
 */
#ifndef WEIR_KERNEL_WEIR_H
#define WEIR_KERNEL_WEIR_H

#include <linux/dma-direction.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>

#include "core/base/inbox.h"
#include "core/engine/request.h"

struct key;
struct kweir_session;

#define KWEIR_IO_PARTS 8
#define KWEIR_IO_SEGMENTS (KWEIR_IO_PARTS * WEIR_SGE_MAX) /* of one io's scatterlist */
#define KWEIR_BOUNCE_BYTES (16u << 10) /* of a piece of memory that a part of an io is copied to */
#define KWEIR_ERROR_TEXT 160
#define KWEIR_TIMEOUT_MS 10000 /* unless told otherwise */

/**
 * struct kweir_error - why something failed, for people
 * @text: a sentence, or empty
 */
struct kweir_error {
	char text[KWEIR_ERROR_TEXT];
};

/* Writes a sentence to @error, unless it is NULL. Return: @status. */
__printf(3, 4) int kweir_fail(struct kweir_error *error, int status, const char *format, ...);

/* RDMAbox, section IV-A: how requests become work requests, and these go to the device. */
enum kweir_batching {
	KWEIR_BATCHING_HYBRID, /* merged and chained */
	KWEIR_BATCHING_SINGLE, /* one by one */
	KWEIR_BATCHING_DOORBELL, /* chained only */
	KWEIR_BATCHING_MERGE, /* merged only */
	KWEIR_BATCHINGS_NR
};

/* RDMAbox, section IV-B: what the device reads and writes. */
enum kweir_mr {
	KWEIR_MR_DYN, /* the caller's pages, which are mapped for it */
	KWEIR_MR_PRE, /* copies, in memory that was mapped when the session was opened */
	KWEIR_MRS_NR
};

/**
 * struct kweir_options - what a session is to be like; 0 is the default
 * @channels: QPs, 1 to WEIR_CHANNEL_MAX; 2
 * @depth: WRs in flight on each, 16 to 1024; 128
 * @timeout_ms: of an io, and of an attempt to mend what broke, 100 to 600000; KWEIR_TIMEOUT_MS
 * @window_bytes: in flight on this device, of its first session; 8 MiB
 * @polling: an enum weir_poll_mode, but BUSY; ADAPTIVE
 * @batching: an enum kweir_batching; HYBRID
 * @mr: an enum kweir_mr; DYN
 * @movable: the donor may ask for regions without a name: see struct kweir_stat; false
 */
struct kweir_options {
	u32 channels;
	u32 depth;
	u32 timeout_ms;
	u64 window_bytes;
	u32 polling;
	u32 batching;
	u32 mr;
	bool movable;
};

enum kweir_session_state {
	KWEIR_SESSION_UP, /* all its channels are */
	KWEIR_SESSION_RECONNECTING, /* some are being connected anew */
	KWEIR_SESSION_LOST, /* none is, nor will be: whatever is submitted ends with -ENOTCONN */
};

/**
 * struct kweir_stat - what a session has done so far
 * @state: an enum kweir_session_state
 * @keep_bytes: that regions without a name are to have at most, if they are movable: the donor
 *	wants back what is beyond, once what it holds is elsewhere; U64_MAX: it wants nothing
 * @errors: of them, WRs that failed
 * @merged: requests that shared a WR with others
 * @polled: of the completions, those that kweir_session_poll() took
 */
struct kweir_stat {
	u32 state;
	u64 keep_bytes;
	u64 ios, requests, work_requests, doorbells, merged, completions, events, empty_polls;
	u64 polled;
	u64 window_waits, retries, reconnects, errors, bytes_read, bytes_written;
};

/**
 * kweir_session_new() - a session to a donor, for kweir_session_connect()
 * @donor: its address
 * @options: copied; NULL: the defaults
 * @key: of type logon, for which the caller has a reference; needed during the call only.
 *	NULL: the donor wants none
 * @session: receives it; owes a kweir_session_close()
 * @error: receives the reason; may be NULL
 *
 * Context: Process; sleeps, but for nobody.
 * Return: 0; -EINVAL an option is out of its range, or the key is not as the protocol wants it;
 *	-ENOMEM.
 */
int kweir_session_new(const struct sockaddr_storage *donor, const struct kweir_options *options,
		      struct key *key, struct kweir_session **session, struct kweir_error *error);

/**
 * kweir_session_connect() - connect it, once
 * @session: a new one, of which nothing else is used before this returns 0
 * @error: receives the reason; may be NULL
 *
 * Both ends have proven that they know the key when this returns.
 *
 * Context: Process; sleeps, until options->timeout_ms, a signal, or kweir_session_abandon().
 * Return: 0, or
 *	-ECANCELED    it was abandoned;
 *	-ENODEV       no RDMA device reaches the donor;
 *	-ECONNREFUSED nobody listens there;
 *	-EKEYREJECTED one of the two does not know the key;
 *	-ETIMEDOUT    it did not answer in time;
 *	-EINTR        a signal came;
 *	others, as docs/reference/errors.md says.
 */
int kweir_session_connect(struct kweir_session *session, struct kweir_error *error);

/**
 * kweir_session_abandon() - nobody waits for the donor any longer
 * @session: connected, or being connected by another thread, which is to close it
 *
 * It is lost: all its ios end soon, and whoever connects it or talks about regions is told so.
 *
 * Context: Process; never sleeps.
 */
void kweir_session_abandon(struct kweir_session *session);

/**
 * kweir_session_close() - disconnect
 * @session: none of its ios is under way, and none comes; what its regions held is given back. Or
 *	one that could not be connected
 *
 * Context: Process; sleeps.
 */
void kweir_session_close(struct kweir_session *session);

/* What a session has done. Context: any but hard interrupts; never sleeps. */
void kweir_session_stat(struct kweir_session *session, struct kweir_stat *stat);

/**
 * kweir_session_poll() - take completions that are there now
 * @session: of it
 *
 * For who waits for an io of his and would rather poll than be woken. Ios that are done are told
 * from here, anybody's.
 *
 * Context: process; never sleeps. Return: how many there were.
 */
int kweir_session_poll(struct kweir_session *session);

/**
 * struct kweir_region - a piece of a donor's memory, held until its session ends
 * @session: whose
 * @remote: where it begins, as the donor's device knows it
 * @length: bytes
 * @hold: how the donor knows that it is held
 * @rkey: its key
 */
struct kweir_region {
	struct kweir_session *session;
	u64 remote;
	u64 length;
	u64 hold;
	u32 rkey;
};

/**
 * kweir_region_create() - borrow memory
 * @session: of the donor
 * @name: of a region that stays when the session ends; NULL: it ends, too
 * @length: bytes
 * @region: receives it: zeroes, held by nobody else
 * @error: receives the reason; may be NULL
 *
 * Context: Process; sleeps. One thread of a session at a time talks about regions.
 * Return: 0; -EEXIST the donor has one of that name; -ENOSPC, -EDQUOT it lends no more;
 *	-ENOTCONN, -ECONNRESET, -ETIMEDOUT, -EAGAIN, -EINTR no answer: see kweir_is_no_answer().
 */
int kweir_region_create(struct kweir_session *session, const char *name, u64 length,
			struct kweir_region *region, struct kweir_error *error);

/* The same for a region that is there: -ENOENT it is not; -EBUSY somebody else holds it. */
int kweir_region_open(struct kweir_session *session, const char *name, struct kweir_region *region,
		      struct kweir_error *error);

/**
 * kweir_region_close() - give memory back
 * @region: none of its ios is under way, and none comes
 *
 * One without a name is gone, then. A session that ends gives back all that it has.
 *
 * Context: Process; sleeps. One thread of a session at a time talks about regions.
 * Return: 0; -ENOENT the donor knows of no such; or no answer.
 */
int kweir_region_close(struct kweir_region *region, struct kweir_error *error);

/*
 * How long whoever talks about regions waits until that is sent and answered; at first the
 * session's timeout. What comes later is for nobody: memory that was lent by it is given back by
 * itself. Context: any.
 */
void kweir_session_set_answer_timeout(struct kweir_session *session, u32 ms);

/*
 * Whether that is what talking about regions came to: the donor may not even have heard it.
 * Context: any.
 */
static inline bool kweir_is_no_answer(int status)
{
	return status == -ETIMEDOUT || status == -ENOTCONN || status == -ECONNRESET ||
	       status == -EAGAIN || status == -EINTR;
}

/* How many bytes the donor would lend this session now. Context, Return: as kweir_region_close(). */
int kweir_session_room(struct kweir_session *session, u64 *bytes, struct kweir_error *error);

/**
 * struct kweir_part - one request of an io
 * @req: what the engine knows of it
 * @io: whose
 */
struct kweir_part {
	struct weir_req req;
	struct kweir_io *io;
};

/**
 * struct kweir_io - one read or write, in the caller's memory until it is done
 * @done: called once, in process context, where it may submit more and may not sleep for long
 * @status: 0 or a negative errno, when it is
 *
 * The members below are weir's.
 */
struct kweir_io {
	void (*done)(struct kweir_io *io);
	int status;

	struct kweir_session *session;
	struct scatterlist *sgl;
	unsigned int nents;
	enum dma_data_direction direction;
	u64 bytes;
	unsigned int nr_copies;
	u16 copy[KWEIR_IO_SEGMENTS];
	union {
		struct weir_inbox_node node;
		struct weir_list link;
	};
	unsigned int nr_parts;
	unsigned int parts_left;
	struct kweir_part part[KWEIR_IO_PARTS];
};

/**
 * kweir_io_prepare() - make ready to submit
 * @io: the caller's; @io->done is set
 * @region: where to
 * @offset: bytes
 * @op: WEIR_OP_READ or WEIR_OP_WRITE
 * @sgl: *kept until done*; its lengths sum up to that of the io
 * @nents: of @sgl, at most KWEIR_IO_SEGMENTS
 *
 * Maps the memory for the device: owes a kweir_io_submit() or kweir_io_forget().
 *
 * Context: any but hard interrupts; never sleeps.
 * Return: 0; -EINVAL it is empty, too long for the session's way of registering, or ends beyond the
 *	region; -ENOMEM no room to map it, now:
 *	as ios end there will be; -ENODEV the device is gone.
 */
int kweir_io_prepare(struct kweir_io *io, struct kweir_region *region, u64 offset, enum weir_op op,
		     struct scatterlist *sgl, unsigned int nents);

/* Lets go of one that was prepared, and not submitted. */
void kweir_io_forget(struct kweir_io *io);

/**
 * kweir_io_submit() - do it
 * @io: prepared; weir's until it is done, which may be before this returns
 *
 * Context: any but hard interrupts; never sleeps.
 */
void kweir_io_submit(struct kweir_io *io);

/**
 * kweir_io_push() - the first half of kweir_io_submit(): it has its place in the order, and waits
 * @io: prepared; weir's until it is done
 *
 * Owes a kweir_session_serve() of its session, which may come after the caller's unlock: so ios of
 * several sessions can be given the same order, under one lock, without posting them there.
 *
 * Context: any but hard interrupts; never sleeps.
 */
void kweir_io_push(struct kweir_io *io);
void kweir_session_serve(struct kweir_session *session);

#endif
