/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests: read, write and atomics on a donor's memory, asynchronous from any thread,
 * and plain blocking forms of them.
 *
 * Order: requests of one session that overlap take effect in the order submitted;
 * those that do not are free. weir_barrier() orders everything. "Before" means that
 * one call returned before the other began.
 *
 * Done means done: when a write completes, any RDMA read that starts afterwards sees it.
 */
#ifndef WEIR_REQUEST_H
#define WEIR_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include <weir/memory.h>
#include <weir/region.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_queue;
struct weir_request; /* one in flight; valid until its weir_done_fn returns */

/*
 * Local memory, scattered. @memory must cover [addr, addr+length); or it is NULL, and any memory
 * goes: small requests are copied through the session's registered buffers, large ones have it
 * registered while they are under way, as the session's options say.
 */
struct weir_iov {
	void *addr;
	size_t length;
	struct weir_memory *memory;
};

/**
 * typedef weir_done_fn - a request is done
 * @status: 0 or a negative errno; -ECONNRESET means that the outcome is unknown
 *
 * Runs in the session's thread, or in any thread that submits or processes; it may submit,
 * must not block, and must not close the session.
 */
typedef void weir_done_fn(void *arg, int status);

/* How the caller learns that a request is done: @done, or, if that is NULL, through @queue. */
struct weir_completion {
	weir_done_fn *done;
	struct weir_queue *queue;
	void *arg; /* for @done, or returned by the queue */
	enum weir_hint hint; /* WEIR_NO_HINT: the region's */
	uint64_t timeout_ns; /* 0: the session's. One that is posted and late ends its channel, too:
			      * only then does the NIC let go of its memory. A write or an atomic
			      * that was lost with its channel may still arrive, and ends only when
			      * it cannot: when the channel is up again or the session is down, up
			      * to the session's timeout later. Submitting costs a step for each
			      * request whose deadline is later than this one's: none where all
			      * have one timeout, 160 us, once, with 40,000 of them in line */
};

/**
 * weir_read_async(), weir_write_async() - move bytes between a region and local memory
 * @region: offset and length must lie within it
 * @iov, @iovcnt: 1 to 8 pieces; the array is copied, the memory must stay until done
 * @completion: copied
 * @request: receives a handle for weir_cancel(); NULL if none is wanted, or without @done
 *
 * Context: any thread; does not block. The completion may be delivered before this returns.
 * Return: 0, then exactly one completion follows; otherwise none does:
 * -EINVAL bounds, iov, or a handle for what goes to a queue; -EACCES read-only region;
 * -ENOTCONN; -EAGAIN with WEIR_MR_PRE all buffers are in use, perhaps by others' requests: try again
 * when some request of the session has completed; -ENOMEM, also
 * when memory that nobody registered cannot be, or there can be no buffer to copy it through.
 */
int weir_read_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		    unsigned int iovcnt, const struct weir_completion *completion,
		    struct weir_request **request);
int weir_write_async(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		     unsigned int iovcnt, const struct weir_completion *completion,
		     struct weir_request **request);

enum weir_direction {
	WEIR_READ,
	WEIR_WRITE,
};

/* One of several: what weir_read_async() or weir_write_async() would be given. */
struct weir_transfer {
	enum weir_direction direction;
	struct weir_region *region;
	uint64_t offset;
	const struct weir_iov *iov;
	unsigned int iovcnt;
	struct weir_completion completion;
	struct weir_request **request;
};

/**
 * weir_transfer_async() - read and write many pieces at once
 * @transfers: @count of them, of regions of one session; copied
 * @submitted: receives how many were submitted, from the first; may be NULL
 *
 * As that many weir_read_async() and weir_write_async() in turn; but they meet before the first is
 * posted, so neighbours shorter than 64 KiB become one work request, and the others a chain. Who has
 * several to submit should submit them so. Each completes for itself.
 *
 * Context: any thread; does not block. Completions may be delivered before this returns.
 * Return: 0, when all were; otherwise why the next one after *@submitted was not: as
 * weir_read_async(), and -EINVAL also for a region of another session. Those after it were not,
 * either.
 */
int weir_transfer_async(const struct weir_transfer *transfers, unsigned int count,
			unsigned int *submitted);

/* Atomics on 8 aligned bytes, atomic against other RDMA atomics; the old value lands at @old,
 * 8 bytes within @memory, or anywhere if that is NULL, in host order. */
int weir_compare_swap_async(struct weir_region *region, uint64_t offset, uint64_t expected,
			    uint64_t desired, uint64_t *old, struct weir_memory *memory,
			    const struct weir_completion *completion,
			    struct weir_request **request);
int weir_fetch_add_async(struct weir_region *region, uint64_t offset, uint64_t add, uint64_t *old,
			 struct weir_memory *memory, const struct weir_completion *completion,
			 struct weir_request **request);

/*
 * Done when everything submitted before is done; everything submitted after waits for it. Messages
 * that the donor has no room for yet, and calls, are not covered.
 */
int weir_barrier_async(struct weir_session *session, const struct weir_completion *completion);

/**
 * weir_cancel() - end a request early
 *
 * The caller must know that its weir_done_fn has not returned yet.
 * Return: 0, its completion says -ECANCELED; -EINPROGRESS it is posted and will end by itself.
 */
int weir_cancel(struct weir_request *request);

/*
 * Blocking forms. @buf is any memory, as in an iov without one; weir_readv() and weir_writev() are
 * the asynchronous ones, waited for. Where those return -EAGAIN these wait for buffers, for as long
 * as the session's timeout_ns, and the request's own time begins after that. Who waits has no turn:
 * beside many short copies a long one may get none.
 * Context: any thread but a callback. Return: the request's status; -ETIMEDOUT also when no buffers
 * came free, and nothing was sent.
 */
int weir_read(struct weir_region *region, uint64_t offset, void *buf, size_t length);
int weir_write(struct weir_region *region, uint64_t offset, const void *buf, size_t length);
int weir_readv(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
	       unsigned int iovcnt);
int weir_writev(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		unsigned int iovcnt);
int weir_compare_swap(struct weir_region *region, uint64_t offset, uint64_t expected,
		      uint64_t desired, uint64_t *old);
int weir_fetch_add(struct weir_region *region, uint64_t offset, uint64_t add, uint64_t *old);
int weir_flush(struct weir_session *session); /* weir_barrier_async, waited for */

/*
 * Completion queues, for callers that would rather ask than be called.
 */
struct weir_event {
	void *arg;
	int status;
};

int weir_queue_create(struct weir_queue **queue);
void weir_queue_destroy(struct weir_queue *queue); /* nothing may still point to it */
int weir_queue_fd(const struct weir_queue *queue); /* readable when there are events */
/* Takes up to @max events without waiting. Return: how many. */
int weir_queue_poll(struct weir_queue *queue, struct weir_event *events, int max);
/*
 * The same, but waits for at least one. What completed together is there together.
 * Return: how many; 0 after @timeout_ms (-1: for ever), or when woken.
 */
int weir_queue_wait(struct weir_queue *queue, struct weir_event *events, int max, int timeout_ms);
/* Ends a weir_queue_wait(): one that waits, or else the next one. Context: any thread. */
void weir_queue_wake(struct weir_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
