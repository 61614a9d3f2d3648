/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tuning of a session, for experiments: how requests are batched, admitted, copied and polled for.
 *
 * The defaults come from the papers and from this library's measurements. A program needs this
 * header only to measure other choices; 'weir perf' tries them without a program.
 *
 *	struct weir_session_tuning tuning = { .size = sizeof(tuning), .depth = 256 };
 *	struct weir_session_options options = { .size = sizeof(options), .tuning = &tuning };
 */
#ifndef WEIR_TUNING_H
#define WEIR_TUNING_H

#include <stddef.h>
#include <stdint.h>

/* How requests that wait at the same time are batched. */
enum weir_batching {
	WEIR_BATCHING_DEFAULT, /* from the preset */
	WEIR_BATCHING_SINGLE, /* one work request and one doorbell each */
	WEIR_BATCHING_DOORBELL, /* chains of work requests, one doorbell each */
	/* neighbours at the destination, each shorter than 64 KiB, share a work request */
	WEIR_BATCHING_MERGE,
	WEIR_BATCHING_HYBRID, /* merge and doorbell */
};

/*
 * How much may be in flight on a NIC: window_bytes, and window_wrs work requests. One of the two
 * limits can be learned. The first session on the NIC decides.
 */
enum weir_admission {
	WEIR_ADMISSION_DEFAULT, /* static, or window_policy if there is one */
	WEIR_ADMISSION_STATIC, /* both limits are fixed */
	WEIR_ADMISSION_DELAY, /* up to window_bytes, adapted to completion latency */
	WEIR_ADMISSION_KNEE, /* up to window_bytes, adapted to the throughput's knee */
	WEIR_ADMISSION_DELAY_WRS, /* up to window_wrs, adapted to completion latency */
	WEIR_ADMISSION_KNEE_WRS, /* up to window_wrs, adapted to the throughput's knee */
};

/*
 * One successful work request, as a policy of the window learns of it. The times are of
 * CLOCK_MONOTONIC. In flight is what all sessions of the process have in flight on the NIC, this
 * work request included. Later versions of the library may add fields at the end.
 */
struct weir_window_sample {
	uint64_t posted_ns;
	uint64_t completed_ns; /* when the completion was seen */
	uint64_t bytes; /* of this work request */
	uint64_t bytes_in_flight;
	uint64_t wrs_in_flight;
};

/* Limits of what may be in flight on a NIC. */
struct weir_window_limits {
	uint64_t bytes;
	uint64_t wrs;
};

/*
 * Your own policy of the window. completed is called for each successful work request. *limits
 * holds the present limits, and receives those from now on: bytes between fragment_bytes and
 * window_bytes, work requests between 1 and window_wrs; a value beyond is moved to the bound. Both
 * start at the least. docs/examples/window_policy.c is an example.
 *
 * completed runs in any thread of the process that uses a session, with the NIC's lock held: one
 * call at a time. It must return within microseconds, and must not call the library or wait. What
 * arg points to must stay until the last session on the NIC has closed.
 */
struct weir_window_policy {
	size_t size; /* sizeof(struct weir_window_policy) */
	void (*completed)(void *arg, const struct weir_window_sample *sample,
			  struct weir_window_limits *limits);
	void *arg;
};

/* How requests access unregistered memory: see struct weir_iov. */
enum weir_mr {
	WEIR_MR_DEFAULT, /* from the preset */
	/*
	 * Copy or register, whichever is cheaper at this length. Registers also when all bounce
	 * buffers are in use.
	 */
	WEIR_MR_AUTO,
	/*
	 * Copy through registered bounce buffers; register only memory longer than 512 KiB. While
	 * all buffers are in use, asynchronous calls return -EAGAIN and blocking calls wait.
	 */
	WEIR_MR_PRE,
	WEIR_MR_DYN, /* register for the duration of the request */
};

/*
 * Classes of requests that share a NIC in a process: of a session, by class_nr below, of a region
 * (weir_region_class()), or of a request (WEIR_REQUEST_URGENT and its like). As long as a session
 * there has a class, a weight or such a region, the class decides which request gets room in the
 * window: urgent ones go before normal ones, and those before bulk. A class that waits gets a turn
 * after 1 MiB of others. All sessions then send in segments of 64 KiB, and keep to them. Those
 * below the first class together have 128 KiB in flight, or a segment for each session and class if
 * that is more. Without a class, requests are normal.
 *
 * Requests pay for it: a small one that is alone takes a longer way, and no thread gets a channel
 * of its own.
 */
enum weir_class {
	WEIR_CLASS_DEFAULT, /* normal; alone, no reason for classes */
	WEIR_CLASS_URGENT,
	WEIR_CLASS_NORMAL,
	WEIR_CLASS_BULK,
};

/* How to tune a session. Zero means the default in every field but the size. */
struct weir_session_tuning {
	size_t size; /* sizeof(struct weir_session_tuning) */
	/*
	 * Bytes in flight on the NIC, over all its sessions; default 8 MiB. The first session on a
	 * NIC decides.
	 */
	uint64_t window_bytes;
	enum weir_admission admission;
	unsigned int depth; /* WRs in flight per channel, in its send queue; default 128 */
	enum weir_batching batching;
	unsigned int chain_max; /* work requests per doorbell, 1 to 32; default 32 */
	/*
	 * Longest work request, 4 KiB to 1 GiB; default 1 MiB. Never longer than the smallest
	 * window.
	 */
	size_t fragment_bytes;
	enum weir_mr mr;
	/*
	 * Most memory for bounce buffers, at least 4 MiB; default 16 MiB, with WEIR_MR_PRE 64 MiB.
	 * The session allocates buffers on demand, 4 MiB at a time, and frees them when it closes.
	 */
	size_t pool_bytes_max;
	/*
	 * WEIR_MR_AUTO registers from this length on; default: measured on the process's first use
	 * of the device.
	 */
	size_t mr_dyn_bytes;
	/*
	 * 4 KiB pages that fit the translation cache of the donor's NIC; default 4096. Writes to so
	 * many of the hottest pages are not unloaded.
	 */
	unsigned int unload_hot_pages;
	/*
	 * CQs that the channels share, 1 to channels; default: one per channel. WEIR_POLLING_SCQ:
	 * CQs that all sessions share, 1 to 16; default 1; the first session on a NIC decides.
	 */
	unsigned int cqs;
	/*
	 * Number of the device's completion vectors (interrupts) over which the CQs are spread;
	 * default: all.
	 */
	unsigned int comp_vectors;
	unsigned int poll_wcs_max; /* completions per poll of a CQ, 1 to 32; default 32 */
	/*
	 * Adaptive polling: consecutive empty polls before sleeping; default: learned from the
	 * load.
	 */
	unsigned int poll_retries_max;
	/*
	 * Adaptive polling: share of its time, in percent, that the session's thread may spend on
	 * empty polls, 1 to 100; default 90. Blocking calls have no such limit.
	 */
	unsigned int poll_percent_max;
	/*
	 * Work requests in flight on the NIC, over all its sessions; default 4096. The first
	 * session on a NIC decides.
	 */
	unsigned int window_wrs;
	/*
	 * Moves window_bytes and window_wrs, instead of one of the admissions. Copied. The first
	 * session on a NIC decides.
	 */
	const struct weir_window_policy *window_policy;
	/*
	 * Which requests of the process go first on this NIC; and the session's weight in each
	 * class, by bytes, 1 to 1024; default 1.
	 */
	enum weir_class class_nr;
	unsigned int weight;
};

#endif
