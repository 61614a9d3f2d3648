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

#include "core/inbox.h"
#include "core/request.h"

struct key;
struct weir_session;

#define WEIR_IO_PARTS 8
#define WEIR_IO_SEGMENTS (WEIR_IO_PARTS * WEIR_SGE_MAX) /* of one io's scatterlist */
#define WEIR_COPY_BYTES (16u << 10) /* of a piece of memory that a part of an io is copied to */
#define WEIR_ERROR_TEXT 160
#define WEIR_TIMEOUT_MS 10000 /* unless told otherwise */

/**
 * struct weir_error - why something failed, for people
 * @text: a sentence, or empty
 */
struct weir_error {
	char text[WEIR_ERROR_TEXT];
};

/* Writes a sentence to @error, unless it is NULL. Return: @status. */
__printf(3, 4) int weir_fail(struct weir_error *error, int status, const char *format, ...);

/* RDMAbox, section IV-A: how requests become work requests, and these go to the device. */
enum weir_batching {
	WEIR_BATCHING_HYBRID, /* merged and chained */
	WEIR_BATCHING_SINGLE, /* one by one */
	WEIR_BATCHING_DOORBELL, /* chained only */
	WEIR_BATCHING_MERGE, /* merged only */
	WEIR_BATCHINGS_NR
};

/* RDMAbox, section IV-B: what the device reads and writes. */
enum weir_mr {
	WEIR_MR_DYN, /* the caller's pages, which are mapped for it */
	WEIR_MR_PRE, /* copies, in memory that was mapped when the session was opened */
	WEIR_MRS_NR
};

/**
 * struct weir_options - what a session is to be like; 0 is the default
 * @channels: QPs, 1 to WEIR_CHANNEL_MAX; 2
 * @depth: WRs in flight on each, 16 to 1024; 128
 * @timeout_ms: of an io, and of an attempt to mend what broke, 100 to 600000; WEIR_TIMEOUT_MS
 * @window_bytes: in flight on this device, of its first session; 8 MiB
 * @polling: an enum weir_poll_mode, but BUSY; ADAPTIVE
 * @batching: an enum weir_batching; HYBRID
 * @mr: an enum weir_mr; DYN
 * @movable: the donor may ask for regions without a name: see struct weir_stat; false
 */
struct weir_options {
	u32 channels;
	u32 depth;
	u32 timeout_ms;
	u64 window_bytes;
	u32 polling;
	u32 batching;
	u32 mr;
	bool movable;
};

enum weir_session_state {
	WEIR_SESSION_UP, /* all its channels are */
	WEIR_SESSION_MENDING, /* some are being connected anew */
	WEIR_SESSION_LOST, /* none is, nor will be: whatever is submitted ends with -ENOTCONN */
};

/**
 * struct weir_stat - what a session has done so far
 * @state: an enum weir_session_state
 * @keep_bytes: that regions without a name are to have at most, if they are movable: the donor
 *	wants back what is beyond, once what it holds is elsewhere; U64_MAX: it wants nothing
 * @errors: of them, WRs that failed
 * @merged: requests that shared a WR with others
 * @polled: of the completions, those that weir_session_poll() took
 */
struct weir_stat {
	u32 state;
	u64 keep_bytes;
	u64 ios, requests, work_requests, doorbells, merged, completions, events, empty_polls;
	u64 polled;
	u64 window_waits, retries, reconnects, errors, bytes_read, bytes_written;
};

/**
 * weir_session_new() - a session to a donor, for weir_session_connect()
 * @donor: its address
 * @options: copied; NULL: the defaults
 * @key: of type logon, for which the caller has a reference; needed during the call only.
 *	NULL: the donor wants none
 * @session: receives it; owes a weir_session_close()
 * @error: receives the reason; may be NULL
 *
 * Context: Process; sleeps, but for nobody.
 * Return: 0; -EINVAL an option is out of its range, or the key is not as the protocol wants it;
 *	-ENOMEM.
 */
int weir_session_new(const struct sockaddr_storage *donor, const struct weir_options *options,
		     struct key *key, struct weir_session **session, struct weir_error *error);

/**
 * weir_session_connect() - connect it, once
 * @session: a new one, of which nothing else is used before this returns 0
 * @error: receives the reason; may be NULL
 *
 * Both ends have proven that they know the key when this returns.
 *
 * Context: Process; sleeps, until options->timeout_ms, a signal, or weir_session_abandon().
 * Return: 0, or
 *	-ECANCELED    it was abandoned;
 *	-ENODEV       no RDMA device reaches the donor;
 *	-ECONNREFUSED nobody listens there;
 *	-EKEYREJECTED one of the two does not know the key;
 *	-ETIMEDOUT    it did not answer in time;
 *	-EINTR        a signal came;
 *	others, as docs/reference/errors.md says.
 */
int weir_session_connect(struct weir_session *session, struct weir_error *error);

/**
 * weir_session_abandon() - nobody waits for the donor any longer
 * @session: connected, or being connected by another thread, which is to close it
 *
 * It is lost: all its ios end soon, and whoever connects it or talks about regions is told so.
 *
 * Context: Process; never sleeps.
 */
void weir_session_abandon(struct weir_session *session);

/**
 * weir_session_close() - disconnect
 * @session: none of its ios is under way, and none comes; what its regions held is given back. Or
 *	one that could not be connected
 *
 * Context: Process; sleeps.
 */
void weir_session_close(struct weir_session *session);

/* What a session has done. Context: any but hard interrupts; never sleeps. */
void weir_session_stat(struct weir_session *session, struct weir_stat *stat);

/**
 * weir_session_poll() - take completions that are there now
 * @session: of it
 *
 * For who waits for an io of his and would rather poll than be woken. Ios that are done are told
 * from here, anybody's.
 *
 * Context: process; never sleeps. Return: how many there were.
 */
int weir_session_poll(struct weir_session *session);

/**
 * struct weir_region - a piece of a donor's memory, held until its session ends
 * @session: whose
 * @remote: where it begins, as the donor's device knows it
 * @length: bytes
 * @hold: how the donor knows that it is held
 * @rkey: its key
 */
struct weir_region {
	struct weir_session *session;
	u64 remote;
	u64 length;
	u64 hold;
	u32 rkey;
};

/**
 * weir_region_create() - borrow memory
 * @session: of the donor
 * @name: of a region that stays when the session ends; NULL: it ends, too
 * @length: bytes
 * @region: receives it: zeroes, held by nobody else
 * @error: receives the reason; may be NULL
 *
 * Context: Process; sleeps. One thread of a session at a time talks about regions.
 * Return: 0; -EEXIST the donor has one of that name; -ENOSPC, -EDQUOT it lends no more;
 *	-ENOTCONN, -ECONNRESET, -ETIMEDOUT, -EAGAIN, -EINTR no answer: see weir_is_no_answer().
 */
int weir_region_create(struct weir_session *session, const char *name, u64 length,
		       struct weir_region *region, struct weir_error *error);

/* The same for a region that is there: -ENOENT it is not; -EBUSY somebody else holds it. */
int weir_region_open(struct weir_session *session, const char *name, struct weir_region *region,
		     struct weir_error *error);

/**
 * weir_region_close() - give memory back
 * @region: none of its ios is under way, and none comes
 *
 * One without a name is gone, then. A session that ends gives back all that it has.
 *
 * Context: Process; sleeps. One thread of a session at a time talks about regions.
 * Return: 0; -ENOENT the donor knows of no such; or no answer.
 */
int weir_region_close(struct weir_region *region, struct weir_error *error);

/*
 * How long whoever talks about regions waits until that is sent and answered; at first the
 * session's timeout. What comes later is for nobody: memory that was lent by it is given back by
 * itself. Context: any.
 */
void weir_session_patience(struct weir_session *session, u32 ms);

/*
 * Whether that is what talking about regions came to: the donor may not even have heard it.
 * Context: any.
 */
static inline bool weir_is_no_answer(int status)
{
	return status == -ETIMEDOUT || status == -ENOTCONN || status == -ECONNRESET ||
	       status == -EAGAIN || status == -EINTR;
}

/* How many bytes the donor would lend this session now. Context, Return: as weir_region_close(). */
int weir_session_room(struct weir_session *session, u64 *bytes, struct weir_error *error);

/**
 * struct weir_part - one request of an io
 * @req: what the engine knows of it
 * @io: whose
 */
struct weir_part {
	struct weir_req req;
	struct weir_io *io;
};

/**
 * struct weir_io - one read or write, in the caller's memory until it is done
 * @done: called once, in process context, where it may submit more and may not sleep for long
 * @status: 0 or a negative errno, when it is
 *
 * The members below are weir's.
 */
struct weir_io {
	void (*done)(struct weir_io *io);
	int status;

	struct weir_session *session;
	struct scatterlist *sgl;
	unsigned int nents;
	enum dma_data_direction direction;
	u64 bytes;
	unsigned int nr_copies;
	u16 copy[WEIR_IO_SEGMENTS];
	union {
		struct weir_inbox_node node;
		struct weir_list link;
	};
	unsigned int nr_parts;
	unsigned int parts_left;
	struct weir_part part[WEIR_IO_PARTS];
};

/**
 * weir_io_prepare() - make ready to submit
 * @io: the caller's; @io->done is set
 * @region: where to
 * @offset: bytes
 * @op: WEIR_OP_READ or WEIR_OP_WRITE
 * @sgl: *kept until done*; its lengths sum up to that of the io
 * @nents: of @sgl, at most WEIR_IO_SEGMENTS
 *
 * Maps the memory for the device: owes a weir_io_submit() or weir_io_forget().
 *
 * Context: any but hard interrupts; never sleeps.
 * Return: 0; -EINVAL it is empty, too long for the session's way of registering, or ends beyond the
 *	region; -ENOMEM no room to map it, now:
 *	as ios end there will be; -ENODEV the device is gone.
 */
int weir_io_prepare(struct weir_io *io, struct weir_region *region, u64 offset, enum weir_op op,
		    struct scatterlist *sgl, unsigned int nents);

/* Lets go of one that was prepared, and not submitted. */
void weir_io_forget(struct weir_io *io);

/**
 * weir_io_submit() - do it
 * @io: prepared; weir's until it is done, which may be before this returns
 *
 * Context: any but hard interrupts; never sleeps.
 */
void weir_io_submit(struct weir_io *io);

/**
 * weir_io_push() - the first half of weir_io_submit(): it has its place in the order, and waits
 * @io: prepared; weir's until it is done
 *
 * Owes a weir_session_serve() of its session, which may come after the caller's unlock: so ios of
 * several sessions can be given the same order, under one lock, without posting them there.
 *
 * Context: any but hard interrupts; never sleeps.
 */
void weir_io_push(struct weir_io *io);
void weir_session_serve(struct weir_session *session);

#endif
