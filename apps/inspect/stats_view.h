/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A read-only view of the statistics memory of another process's session (lib/client/stats_shm.h).
 *
 * The writer may be any process and may write concurrently, so the reader trusts nothing. Texts are
 * made printable, records are read whole, and no number becomes an address, an index or a size.
 */
#ifndef WEIR_APPS_INSPECT_STATS_VIEW_H
#define WEIR_APPS_INSPECT_STATS_VIEW_H

#include "lib/client/stats_shm.h"

#include <stdint.h>

/**
 * struct stats_view - the mapped statistics of a session
 * @stats: the mapping, of full size
 * @device: printable
 * @peer: printable
 * @opened_ns: as the session wrote
 * @mr_dyn_bytes: as the session wrote
 */
struct stats_view {
	const struct weir_stats_shm *stats;
	char device[WEIR_STATS_SHM_TEXT];
	char peer[WEIR_STATS_SHM_TEXT];
	uint64_t opened_ns;
	uint64_t mr_dyn_bytes;
};

/* Trace records found by a read: @record[@count], oldest first. */
struct stats_view_trace {
	struct weir_trace_record record[WEIR_STATS_SHM_SLOTS];
	uint32_t count;
	uint64_t newest; /* number of the last record */
	uint64_t lost; /* records overwritten before they were read */
};

/**
 * stats_view_check() - check whether a mapping contains statistics
 * @view: receives the view
 * @map: sizeof(struct weir_stats_shm) bytes, which must stay mapped
 *
 * Return: 0; -EPROTO no statistics; -EPROTONOSUPPORT another version.
 */
int stats_view_check(struct stats_view *view, const void *map);

/**
 * stats_view_open() - map a descriptor and check the contents
 * @view: receives the view
 * @fd: may be closed afterwards
 *
 * The caller owes a stats_view_close().
 *
 * Return: as for stats_view_check(); -EPROTO also if the file could shrink, which would kill the
 * reader; errors of mmap(2).
 */
int stats_view_open(struct stats_view *view, int fd);
void stats_view_close(struct stats_view *view);

/* Reads counters and window. Each number is a value at some moment of the call. */
void stats_view_counters(const struct stats_view *view, struct weir_counters *counters,
			 struct weir_stats_shm_window *window);

void stats_view_pressure(const struct stats_view *view, struct weir_stats_shm_page_heat *pressure);

/* Reads the latencies of one kind of request. A hostile writer's counts add up to anything. */
void stats_view_latency(const struct stats_view *view, enum weir_stats_shm_kind kind,
			struct weir_histogram *latency_ns);

/* Reads the numbers of work requests that failed, by enum weir_stats_shm_cause. */
void stats_view_failures(const struct stats_view *view, uint64_t failures[WEIR_STATS_SHM_CAUSES]);

/* By enum weir_stats_shm_cause: "flushed", "no_answer", and so on. */
extern const char *const stats_view_causes[WEIR_STATS_SHM_CAUSES];

/* By enum weir_stats_shm_kind: "read", "write" and "atomic". */
extern const char *const stats_view_kinds[WEIR_STATS_SHM_KINDS];

/**
 * stats_view_trace() - read trace records after number @after; 0: all records present
 *
 * A read with @after 0 reports no records as lost.
 */
void stats_view_trace(const struct stats_view *view, uint64_t after,
		      struct stats_view_trace *trace);

#endif
