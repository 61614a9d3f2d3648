/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The trace: what the engine decided last, and why. A ring of records in the host's memory,
 * cheap enough to be always on; the oldest are overwritten.
 *
 * One writes, serialised by the host. Any number read while it does, in other processes too
 * where the memory is shared; a reader trusts nothing in it.
 */
#ifndef WEIR_CORE_BASE_TRACE_H
#define WEIR_CORE_BASE_TRACE_H

#include "core/base/platform.h"

/* The numbers are part of the layout that other processes read: new ones come last. */
enum weir_trace_event {
	WEIR_TRACE_POST = 1, /* a chain of @wrs with @reqs requests was posted on @channel. Of a
			      * request, no message, that goes out whole, alone, nothing is
			      * noted: nothing was decided */
	WEIR_TRACE_WAIT, /* the window was full: a WR with @reqs requests stands in line */
	WEIR_TRACE_LIMIT, /* the window's policy moved the limit to @bytes */
	WEIR_TRACE_FAIL, /* a WR with @reqs requests failed on @channel with @why; @verbs is what
			  * the device said */
	WEIR_TRACE_REPEAT, /* a request will be posted again, because of @why */
	WEIR_TRACE_LATE, /* a request passed its deadline; @wrs of it were in flight */
	WEIR_TRACE_ARM, /* the host armed @channel's CQ, with @wrs in flight; 0: that of messages */
	WEIR_TRACE_SLEEP, /* the host went to sleep, or @reqs of its callers */
	WEIR_TRACE_WAKE, /* it woke, with @wrs completion events, or @reqs of its callers */
	WEIR_TRACE_COPY, /* the host copies @reqs requests through memory of its own: all since it
			  * last said so */
	WEIR_TRACE_REGISTER, /* the host registered memory for @reqs requests, as well */
	WEIR_TRACE_IN_DOUBT, /* what failed on @channel may still arrive: what overlaps it waits */
	WEIR_TRACE_UP, /* @channel came up */
	WEIR_TRACE_BREAK, /* @channel broke, and may come up again */
	WEIR_TRACE_DOWN, /* @channel will not come up again */
	WEIR_TRACE_STALL, /* @channel, with @wrs in flight, is given up: its session had no answer for
			  * long, and others wait for room in the window */
};

/**
 * struct weir_trace_record - one decision
 * @at_ns: when, by the host's clock
 * @bytes: in all
 * @why: 0 or a negative errno
 * @wrs: work requests
 * @reqs: requests
 * @what: an enum weir_trace_event
 * @channel: where, if anywhere
 * @verbs: the verbs' status of a work completion
 *
 * What does not apply is 0.
 */
struct weir_trace_record {
	uint64_t at_ns;
	uint64_t bytes;
	int32_t why;
	uint32_t wrs;
	uint32_t reqs;
	uint16_t what;
	uint8_t channel;
	uint8_t verbs;
};

#define WEIR_TRACE_WORDS 4

_Static_assert(sizeof(struct weir_trace_record) == 8 * WEIR_TRACE_WORDS, "others read it");

/**
 * struct weir_trace_slot - a place in the ring
 * @number: of the record in it, counted from 1 over all that there ever were; 0 while it is
 *	being written
 * @word: the record
 */
struct weir_trace_slot {
	uint64_t number;
	uint64_t word[WEIR_TRACE_WORDS];
};

/**
 * struct weir_trace - who writes
 * @ring: the slots
 * @mask: how many, less 1
 * @number: of the last record
 */
struct weir_trace {
	struct weir_trace_slot *ring;
	uint32_t mask;
	uint64_t number;
};

/**
 * weir_trace_init() - begin to write
 * @t: to be initialised
 * @ring: *kept*; zeroes
 * @count: how many; a power of two
 *
 * Context: Any.
 * Return: 0, or -EINVAL when @count is not a power of two.
 */
int weir_trace_init(struct weir_trace *t, struct weir_trace_slot *ring, uint32_t count);

/**
 * weir_trace_note() - write one record
 * @t: where; NULL when nobody wants it
 * @at_ns: when
 * @record: all but that; copied
 *
 * Context: Any; never sleeps. Externally serialised.
 */
void weir_trace_note(struct weir_trace *t, uint64_t at_ns, const struct weir_trace_record *record);

/**
 * weir_trace_read() - read one record, while another may be writing
 * @ring: the slots
 * @count: how many; a power of two, from a source that can be trusted
 * @number: which, at least 1
 * @out: receives it: what the writer wrote at one time, if the writer can be trusted
 *
 * Context: Any; never sleeps.
 * Return: 0, or
 *	-EAGAIN it has not been written yet;
 *	-ENOENT it has been overwritten.
 */
int weir_trace_read(const struct weir_trace_slot *ring, uint32_t count, uint64_t number,
		    struct weir_trace_record *out);

#endif
