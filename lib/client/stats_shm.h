/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statistics in shared memory, for other processes of the same user: counters, the window, and the
 * trace of recent decisions.
 *
 * The memory is a memfd named WEIR_STATS_SHM_NAME, which readers find in /proc/PID/fd and map. It
 * ends with the session or the process, and costs no thread. Its size is sealed, and only the
 * session can write to it. But any program may give a file this name and any contents: readers must
 * trust nothing in the file.
 */
#ifndef WEIR_LIB_CLIENT_STATS_SHM_H
#define WEIR_LIB_CLIENT_STATS_SHM_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "core/base/histogram.h"
#include "core/unload/page_heat.h"
#include "core/base/trace.h"

#define WEIR_STATS_SHM_NAME "weir-trace"
#define WEIR_STATS_SHM_MAGIC 0x6764656c72696577ull /* "weirledg" */
#define WEIR_STATS_SHM_VERSION 9
#define WEIR_STATS_SHM_TEXT 64
#define WEIR_STATS_SHM_SLOTS 2048 /* a power of two */

/* X(name, meaning). New counters go last, with a new version. */
#define WEIR_COUNTERS(X)                                                      \
	X(requests, "reads, writes and atomics submitted")                    \
	X(work_requests, "work requests posted for them, and for messages")   \
	X(merged, "requests merged into a work request with others")          \
	X(doorbells, "calls of ibv_post_send")                                \
	X(chains, "doorbells with more than one work request")                \
	X(completions, "work completions polled")                             \
	X(events, "completion events taken")                                  \
	X(empty_polls, "polls that found nothing")                            \
	X(arms, "times a completion queue was armed, to sleep")               \
	X(sleeps, "times a thread of the session or a caller slept")          \
	X(window_waits, "times the window was full")                          \
	X(inlined, "work requests posted with their data")                    \
	X(pre, "requests whose memory was copied")                            \
	X(dyn, "requests whose memory was registered")                        \
	X(bytes_read, "bytes read")                                           \
	X(bytes_written, "bytes written")                                     \
	X(retries, "times a request was posted again after a channel failed") \
	X(errors, "work requests that failed, flushed ones included")         \
	X(reconnects, "channels that broke and came up again")                \
	X(small, "writes that could be unloaded")                             \
	X(hot, "unloadable writes to often written pages")                    \
	X(unloaded, "writes that the donor's CPU copied")                     \
	X(unload_full, "writes not unloaded for lack of room")                \
	X(pages, "pages of 4 KiB that small writes went to lately")           \
	X(split, "requests that were cut into several work requests")         \
	X(unlocked, "chains posted while other threads used the NIC")

/* struct weir_counters - since the session was opened. Guarded by the NIC's lock. */
struct weir_counters {
#define WEIR_COUNTER_FIELD(name, help) uint64_t name;
	WEIR_COUNTERS(WEIR_COUNTER_FIELD)
#undef WEIR_COUNTER_FIELD
};

/**
 * struct weir_stats_shm_window - the NIC's window, when the session last posted or completed
 * @bytes_max: its limit; @bytes_top: the limit's maximum
 * @bytes, @wrs: in flight, of all sessions on the NIC
 * @wrs_max: limit of work requests; @wrs_top: that limit's maximum
 */
struct weir_stats_shm_window {
	uint64_t bytes_max;
	uint64_t bytes_top;
	uint64_t bytes;
	uint64_t wrs;
	uint64_t wrs_max;
	uint64_t wrs_top;
};

/**
 * struct weir_stats_shm_page_heat - recent frequency of small writes to the donor's pages
 * @entries: configured size of the donor NIC's cache; 0: frequencies are not counted
 * @pages, @huge: number of pages of 4 KiB, and of 2 MiB, by count: see struct weir_page_heat
 */
struct weir_stats_shm_page_heat {
	uint64_t entries;
	uint64_t pages[WEIR_PAGE_HEAT_COUNTS];
	uint64_t huge[WEIR_PAGE_HEAT_COUNTS];
};

/* Kinds of requests. Other processes read these numbers. */
enum weir_stats_shm_kind {
	WEIR_STATS_SHM_READ,
	WEIR_STATS_SHM_WRITE,
	WEIR_STATS_SHM_ATOMIC,
	WEIR_STATS_SHM_KINDS
};

/* Why a work request failed. Other processes read these numbers. */
enum weir_stats_shm_cause {
	WEIR_STATS_SHM_FLUSHED, /* its channel had failed or was closed before */
	WEIR_STATS_SHM_NO_ANSWER, /* the donor's NIC did not answer, however often it was asked */
	WEIR_STATS_SHM_NO_BUFFER, /* the donor had no receive posted */
	WEIR_STATS_SHM_REFUSED, /* by the donor: the region, the rights or the operation */
	WEIR_STATS_SHM_LOCAL_MEMORY, /* by the own NIC: the memory named in the work request */
	WEIR_STATS_SHM_OTHER,
	WEIR_STATS_SHM_CAUSES
};

/**
 * struct weir_stats_shm - the whole file
 * @magic: WEIR_STATS_SHM_MAGIC, written last
 * @version: WEIR_STATS_SHM_VERSION; changes with the layout
 * @slots: of @trace
 * @opened_ns: opening time of the session, CLOCK_MONOTONIC
 * @device, @peer, @mr_dyn_bytes: as in struct weir_session_info
 * @trace: the ring; see weir_trace_read()
 * @latency: by enum weir_stats_shm_kind, nanoseconds from submission to completion, of one request
 *	in 64: see lib/client/request/latency.h
 * @failures: by enum weir_stats_shm_cause; their sum is @counters.errors
 */
struct weir_stats_shm {
	uint64_t magic;
	uint32_t version;
	uint32_t slots;
	uint64_t opened_ns;
	char device[WEIR_STATS_SHM_TEXT];
	char peer[WEIR_STATS_SHM_TEXT];
	uint64_t mr_dyn_bytes;
	struct weir_counters counters;
	struct weir_stats_shm_window window;
	struct weir_stats_shm_page_heat pressure;
	struct weir_trace_slot trace[WEIR_STATS_SHM_SLOTS];
	struct weir_histogram latency[WEIR_STATS_SHM_KINDS];
	uint64_t failures[WEIR_STATS_SHM_CAUSES];
};

_Static_assert(sizeof(struct weir_counters) == 26 * 8, "others read it");
_Static_assert(offsetof(struct weir_stats_shm, counters) == 160, "others read it");
_Static_assert(offsetof(struct weir_stats_shm, window) == 368, "others read it");
_Static_assert(offsetof(struct weir_stats_shm, pressure) == 416, "others read it");
_Static_assert(offsetof(struct weir_stats_shm, trace) == 4520, "others read it");
_Static_assert(offsetof(struct weir_stats_shm, latency) == 4520 + 40 * WEIR_STATS_SHM_SLOTS,
	       "others read it");
_Static_assert(sizeof(struct weir_stats_shm) == 4520 + 40 * WEIR_STATS_SHM_SLOTS +
							WEIR_STATS_SHM_KINDS * 59416 +
							WEIR_STATS_SHM_CAUSES * 8,
	       "others read it");

/**
 * weir_stats_shm_open() - create an empty file, which readers ignore
 * @shm: receives the mapping; weir_stats_shm_close() frees it
 * @fd: receives the descriptor that readers find
 *
 * Return: 0; -EMFILE, -ENFILE, -ENOMEM; other errors of memfd_create(2) and mmap(2).
 */
int weir_stats_shm_open(struct weir_stats_shm **shm, int *fd);

/* Makes the file valid for readers. */
void weir_stats_shm_publish(struct weir_stats_shm *shm, const char *device, const char *peer,
			    uint64_t now_ns);

/*
 * Counts a work request that failed. @status: a negative errno; @verbs: the status of its
 * completion, or IBV_WC_SUCCESS if it has none. Context: with the NIC's lock held.
 */
void weir_stats_shm_failed(struct weir_stats_shm *shm, int status, enum ibv_wc_status verbs);

void weir_stats_shm_close(struct weir_stats_shm *shm, int fd);

#endif
