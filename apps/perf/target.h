/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is measured: one region or more, each by a session of its own to a donor. */
#ifndef WEIR_APPS_PERF_TARGET_H
#define WEIR_APPS_PERF_TARGET_H

#include <weir/memory.h>
#include <weir/region.h>
#include "apps/common/client.h"
#include "apps/perf/options.h"
#include "apps/perf/pattern.h"

/**
 * struct perf_target - one donor's memory
 * @donor: as on the command line
 * @client: the session
 * @region: of options->region_bytes
 * @memory: of all buffers, for this session; NULL: nobody registered them
 * @plan: what the ways of its workers have in common
 */
struct perf_target {
	const char *donor;
	struct cmd_client client;
	struct weir_region *region;
	struct weir_memory *memory;
	struct walk_plan plan;
};

/* "127.0.0.1:7474 over softnic0": whom it failed with. Only while its session is open. */
struct target_name {
	char text[160];
};
struct target_name target_name(const struct perf_target *target);

/**
 * targets_open() - open a session to each of options->donors, and take a region there
 * @targets: receives an array of options->nr_donors; the caller owes targets_close() in any case,
 *	and free() when no worker uses them any more
 *
 * Return: 0, or an exit status; it has explained itself then.
 */
int targets_open(const struct perf_options *options, struct perf_target **targets);

/*
 * Gives the regions back, and closes the sessions. @targets: NULL is fine. Who asked to stop does
 * not wait until the donor has answered: it notices that the sessions are gone.
 */
void targets_close(const struct perf_options *options, struct perf_target *targets);

/* Writes all of the regions once: memory that is touched for the first time costs its donor a page
 * fault, which is not what is to be measured. Return: 0, or an exit status. */
int targets_touch(const struct perf_options *options, struct perf_target *targets);

/* The first session's, with the counters of all. */
void targets_info(const struct perf_options *options, const struct perf_target *targets,
		  struct weir_session_info *info);

#endif
