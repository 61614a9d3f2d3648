/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Requests: reads, writes and atomics on a donor's memory, asynchronous or blocking, from any
 * thread.
 *
 * Order: requests of one session that overlap take effect in the order submitted. Requests that do
 * not overlap are unordered. weir_barrier_async() orders all requests. A request is before another
 * if its call returned before the other call began.
 *
 * Completion: when a write completes, any RDMA read that starts afterwards sees it.
 *
 * Blocking: an asynchronous call does not sleep. While threads share a session, a call may poll for
 * at most 0.3 ms: for room in flight, or until a request of another thread ends that touches the
 * same page. Then a deadline may also count from a few milliseconds after the call.
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
struct weir_request; /* a request in flight; valid until its weir_done_fn returns */

/*
 * A piece of local memory. @memory must cover [addr, addr + length). With a NULL @memory, any
 * memory is allowed: the session copies small requests through its bounce buffers and registers the
 * memory of large requests until they complete, as its options say.
 */
struct weir_iov {
	void *addr;
	size_t length;
	struct weir_memory *memory;
};

/**
 * typedef weir_done_fn - called when a request completes
 * @arg: from struct weir_completion
 * @status: 0 or a negative errno; -ECONNRESET means that the outcome is unknown
 *
 * Several threads may run callbacks of one session at once. A callback may submit. It must not
 * block, take a lock that a caller of weir holds, or close the session.
 *
 * Context: The session's thread, or any thread that is inside a call on the session, blocking calls
 * included. With WEIR_POLLING_SCQ the session's thread is the shared one.
 */
typedef void weir_done_fn(void *arg, int status);

/* How a request completes: by a call of @done or, if @done is NULL, through @queue. */
struct weir_completion {
	weir_done_fn *done;
	struct weir_queue *queue;
	void *arg; /* passed to @done or returned by the queue */
	enum weir_hint hint; /* WEIR_NO_HINT: use the region's hint and class */
	/*
	 * 0: the session's timeout. A posted request that times out also ends its channel, because
	 * only then does the NIC release the request's memory. A write or an atomic that was lost
	 * with its channel may still arrive. It completes only when it can no longer arrive: when
	 * the channel is up again or the session is down, at most the session's timeout later.
	 *
	 * With different timeouts, submitting takes one step for each request with a later
	 * deadline: 160 us, once, with 40,000 queued requests. With equal timeouts there is no such
	 * cost.
	 */
	uint64_t timeout_ns;
};

/**
 * weir_read_async(), weir_write_async() - move bytes between a region and local memory
 * @region: the region
 * @offset: in bytes; offset and length must lie within @region
 * @iov: 1 to 8 pieces; the array is copied, the memory must stay valid until completion
 * @iovcnt: number of pieces
 * @completion: copied
 * @request: receives a handle for weir_cancel(); NULL if not wanted, or without @done
 *
 * The completion may be delivered before the call returns.
 *
 * Context: Any thread; does not block.
 * Return: 0 (exactly one completion follows), or no completion and
 *	-EINVAL    bad bounds or pieces, or @request given for a request without @done;
 *	-EACCES    a read-only region;
 *	-ENOTCONN  the session is down;
 *	-EAGAIN    with WEIR_MR_PRE, all bounce buffers are in use, perhaps by other threads: try
 *	           again after a completion of the session;
 *	-ENOMEM    out of memory, also for registering or for a bounce buffer.
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

/* Arguments of one weir_read_async() or weir_write_async(). */
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
 * weir_transfer_async() - submit many reads and writes at once
 * @transfers: array of requests to regions of one session; copied
 * @count: number of requests
 * @submitted: receives how many were submitted, from the first; may be NULL
 *
 * Like a weir_read_async() or weir_write_async() for each, except that all are queued before the
 * first is posted. Neighbours shorter than 64 KiB thus share a work request, and the rest form a
 * chain. A caller with several requests should prefer this call. Each request completes on its own.
 * Completions may be delivered before the call returns.
 *
 * Context: Any thread; does not block.
 * Return: 0 if all were submitted. Otherwise, the error of request *@submitted as for
 * weir_read_async(), or -EINVAL if its region belongs to another session. Later requests were not
 * submitted.
 */
int weir_transfer_async(const struct weir_transfer *transfers, unsigned int count,
			unsigned int *submitted);

/**
 * weir_compare_swap_async(), weir_fetch_add_async() - change 8 bytes at once
 * @region: the region
 * @offset: in bytes; a multiple of 8 within @region
 * @expected: the value to be replaced
 * @desired: its replacement
 * @add: added to the value, modulo 2^64
 * @old: receives the value from before, in host order; valid until completion
 * @memory: covers @old; or NULL, if @old is in memory of any kind
 * @completion: copied
 * @request: as for weir_read_async()
 *
 * Atomic against other RDMA atomics, not against the donor's CPU. A compare-and-swap whose @old is
 * not @expected has changed nothing.
 *
 * Context: Any thread; does not block.
 * Return: as for weir_read_async(); -EINVAL also for an offset that is not aligned.
 */
int weir_compare_swap_async(struct weir_region *region, uint64_t offset, uint64_t expected,
			    uint64_t desired, uint64_t *old, struct weir_memory *memory,
			    const struct weir_completion *completion,
			    struct weir_request **request);
int weir_fetch_add_async(struct weir_region *region, uint64_t offset, uint64_t add, uint64_t *old,
			 struct weir_memory *memory, const struct weir_completion *completion,
			 struct weir_request **request);

/**
 * weir_barrier_async() - order all requests of a session
 * @session: the session
 * @completion: copied
 *
 * Completes after everything submitted before it. Everything submitted later waits for it. A
 * barrier does not cover calls, or messages that wait for room at the donor.
 *
 * Context: Any thread; does not block.
 * Return: 0 (exactly one completion follows); -EINVAL; -ENOTCONN the session is down; -ENOMEM.
 */
int weir_barrier_async(struct weir_session *session, const struct weir_completion *completion);

/**
 * weir_cancel() - end a request early
 * @request: its weir_done_fn must not have returned yet
 *
 * Context: Any thread; does not block.
 * Return: 0 (the request completes with -ECANCELED), or
 *	-EINPROGRESS  the request is posted and completes on its own.
 */
int weir_cancel(struct weir_request *request);

/*
 * Blocking forms. @buf is any memory, like an iov without @memory. weir_readv() and weir_writev()
 * call the asynchronous forms and wait. Where those return -EAGAIN, the blocking forms wait for
 * bounce buffers for up to the session's timeout_ns; the request's own timeout starts after that.
 * The wait for buffers is not fair: many short copies can starve a long copy. The @old of an atomic
 * may be NULL.
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: the request's status, or
 *	-ETIMEDOUT  also when no buffers became free and nothing was sent.
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
int weir_flush(struct weir_session *session); /* weir_barrier_async(), blocking */

/*
 * Completion queues: poll for completions instead of being called back. Requests of several
 * sessions may share a queue. Each event goes to one of the threads that poll or wait.
 */
struct weir_event {
	void *arg; /* of struct weir_completion */
	int status; /* as for weir_done_fn */
};

/* The caller owes a weir_queue_destroy(). Context: any thread. Return: 0; -ENOMEM. */
int weir_queue_create(struct weir_queue **queue);
/*
 * Frees @queue, which no request may still use, and on which no thread may wait; NULL is allowed.
 * Context: any thread.
 */
void weir_queue_destroy(struct weir_queue *queue);
/*
 * A descriptor that is readable while there are events, made by the first call and owned by @queue.
 * Events of requests submitted before that call may come a few milliseconds late.
 * Context: any thread. Return: the descriptor; -1 with errno of eventfd(2).
 */
int weir_queue_fd(const struct weir_queue *queue);
/*
 * Takes up to @max events without waiting; may poll the device once. Context: any thread. Return:
 * number of events.
 */
int weir_queue_poll(struct weir_queue *queue, struct weir_event *events, int max);
/*
 * Like weir_queue_poll(), but waits for at least one event. Events that happen together are
 * returned together.
 * Context: any thread outside callbacks; sleeps.
 * Return: number of events; 0 after @timeout_ms (-1: no timeout) or after a wake.
 */
int weir_queue_wait(struct weir_queue *queue, struct weir_event *events, int max, int timeout_ms);
/* Ends the current weir_queue_wait() or, if no thread waits, the next. Context: any thread. */
void weir_queue_wake(struct weir_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
