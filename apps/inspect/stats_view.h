/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a session of another process shows of itself: its ledger (lib/client/stats_shm.h), looked at.
 *
 * Whoever wrote it may be anybody, and may be writing: nothing in it is trusted. Texts are made
 * printable, records are whole, and no number in it is an address, an index or a size here.
 */
#ifndef WEIR_APPS_INSPECT_STATS_VIEW_H
#define WEIR_APPS_INSPECT_STATS_VIEW_H

#include "lib/client/stats_shm.h"

#include <stdint.h>

/**
 * struct stats_view - one ledger
 * @ledger: mapped, of its full size
 * @device, @peer: printable
 * @opened_ns, @mr_dyn_bytes: as the session says
 */
struct stats_view {
	const struct weir_stats_shm *ledger;
	char device[WEIR_STATS_SHM_TEXT];
	char peer[WEIR_STATS_SHM_TEXT];
	uint64_t opened_ns;
	uint64_t mr_dyn_bytes;
};

/* The decisions that one look at a trace found: @record[@count], the oldest first. */
struct stats_view_trace {
	struct weir_trace_record record[WEIR_STATS_SHM_SLOTS];
	uint32_t count;
	uint64_t newest; /* the number of the last record that there is */
	uint64_t lost; /* records that were overwritten before they were seen */
};

/**
 * stats_view_check() - is this a ledger?
 * @view: receives it
 * @map: of sizeof(struct weir_stats_shm) bytes, which stay
 *
 * Return: 0; -EPROTO it is none; -EPROTONOSUPPORT of another version.
 */
int stats_view_check(struct stats_view *view, const void *map);

/**
 * stats_view_open() - map a descriptor and check what is there
 * @view: receives it; stats_view_close() it
 * @fd: may be closed afterwards
 *
 * Return: as stats_view_check(); -EPROTO also when it could shrink under the reader, which would be
 * killed by that; what mmap(2) says.
 */
int stats_view_open(struct stats_view *view, int fd);
void stats_view_close(struct stats_view *view);

/* The counters and the window, each number as it was at some moment. */
void stats_view_counters(const struct stats_view *view, struct weir_counters *counters,
			 struct weir_stats_shm_window *window);

void stats_view_pressure(const struct stats_view *view, struct weir_stats_shm_page_heat *pressure);

/**
 * stats_view_trace() - what was decided after record number @after; 0: all that is there
 *
 * Nothing is lost before the first look.
 */
void stats_view_trace(const struct stats_view *view, uint64_t after,
		      struct stats_view_trace *trace);

#endif
