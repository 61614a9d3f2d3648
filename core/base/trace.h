/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The trace: the engine's last decisions and their reasons. A ring of records in the host's memory,
 * cheap enough to be always on. New records overwrite the oldest.
 *
 * The host serialises the one writer. Readers may read concurrently, also from other processes, and
 * must trust nothing in the ring.
 */
#ifndef WEIR_CORE_BASE_TRACE_H
#define WEIR_CORE_BASE_TRACE_H

#include "core/base/platform.h"

/* Other processes read these numbers: new events go last. */
enum weir_trace_event {
	WEIR_TRACE_POST = 1, /* a chain of @wrs WRs with @reqs requests was posted on @channel; not
			      * noted for a whole request sent alone, unless a message */
	WEIR_TRACE_WAIT, /* the window was full: a WR with @reqs requests waits */
	WEIR_TRACE_LIMIT, /* the window's limits were moved to @bytes and @wrs */
	WEIR_TRACE_FAIL, /* a WR with @reqs requests failed on @channel with @rc; @verbs is the
			  * device's status */
	WEIR_TRACE_REPEAT, /* a request will be posted again, because of @rc */
	WEIR_TRACE_LATE, /* a request passed its deadline with @wrs WRs in flight */
	WEIR_TRACE_ARM, /* the host armed @channel's CQ, with @wrs in flight; 0: the CQ for
			 * messages */
	WEIR_TRACE_SLEEP, /* the host went to sleep, or @reqs callers did */
	WEIR_TRACE_WAKE, /* the host woke with @wrs completion events, or @reqs callers did */
	WEIR_TRACE_COPY, /* the host copied @reqs requests through bounce buffers since its last
			  * such record */
	WEIR_TRACE_REGISTER, /* the host registered memory for @reqs requests since its last such
			      * record */
	WEIR_TRACE_IN_DOUBT, /* a WR that failed on @channel may still take effect: overlapping
			      * requests wait */
	WEIR_TRACE_UP, /* @channel came up */
	WEIR_TRACE_BREAK, /* @channel broke, and may come up again */
	WEIR_TRACE_DOWN, /* @channel will not come up again */
	WEIR_TRACE_STALL, /* @channel was failed with @wrs in flight: no completion for long, and
			   * other sessions wait for the window */
};

/**
 * struct weir_trace_record - one decision
 * @at_ns: the host's clock
 * @bytes: total bytes
 * @rc: 0 or a negative errno
 * @wrs: work requests
 * @reqs: requests
 * @event: an enum weir_trace_event
 * @channel: number of the channel, if any
 * @verbs: the verbs status of a work completion
 *
 * A field that does not apply is 0.
 */
struct weir_trace_record {
	uint64_t at_ns;
	uint64_t bytes;
	int32_t rc;
	uint32_t wrs;
	uint32_t reqs;
	uint16_t event;
	uint8_t channel;
	uint8_t verbs;
};

#define WEIR_TRACE_WORDS 4

_Static_assert(sizeof(struct weir_trace_record) == 8 * WEIR_TRACE_WORDS, "others read it");

/**
 * struct weir_trace_slot - a place in the ring
 * @number: sequence number of its record, counted from 1; 0 during a write
 * @word: the record
 */
struct weir_trace_slot {
	uint64_t number;
	uint64_t word[WEIR_TRACE_WORDS];
};

/**
 * struct weir_trace - the writer
 * @ring: the slots
 * @mask: number of slots, less 1
 * @number: sequence number of the last record
 */
struct weir_trace {
	struct weir_trace_slot *ring;
	uint32_t mask;
	uint64_t number;
};

/**
 * weir_trace_init() - initialise a writer
 * @t: to be initialised
 * @ring: *kept*; all zeroes
 * @count: number of slots, a power of two
 *
 * Context: Any.
 * Return: 0, or -EINVAL if @count is not a power of two.
 */
int weir_trace_init(struct weir_trace *t, struct weir_trace_slot *ring, uint32_t count);

/**
 * weir_trace_note() - write one record
 * @t: the writer; NULL if tracing is off
 * @at_ns: the time
 * @record: all fields but the time; copied
 *
 * Context: Any; never sleeps. Externally serialised.
 */
void weir_trace_note(struct weir_trace *t, uint64_t at_ns, const struct weir_trace_record *record);

/**
 * weir_trace_read() - read one record, possibly during a write
 * @ring: the slots
 * @count: number of slots, a power of two, from a trusted source
 * @number: sequence number of the record, at least 1
 * @out: receives the record, consistent if the writer can be trusted
 *
 * Context: Any; never sleeps.
 * Return: 0, or
 *	-EAGAIN the record is not written yet;
 *	-ENOENT the record has been overwritten.
 */
int weir_trace_read(const struct weir_trace_slot *ring, uint32_t count, uint64_t number,
		    struct weir_trace_record *out);

#endif
