/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The targets of a measurement: regions at donors, each with a session. */
#ifndef WEIR_APPS_PERF_TARGET_H
#define WEIR_APPS_PERF_TARGET_H

#include <weir/memory.h>
#include <weir/region.h>
#include "apps/common/client.h"
#include "apps/perf/options.h"
#include "apps/perf/pattern.h"

/**
 * struct perf_target - a donor's region
 * @donor: as on the command line
 * @client: the session
 * @region: of options->region_bytes
 * @memory: all buffers, registered with this session; NULL if not registered
 * @plan: common plan of the target's workers
 */
struct perf_target {
	const char *donor;
	struct cmd_client client;
	struct weir_region *region;
	struct weir_memory *memory;
	struct walk_plan plan;
};

/* A name for error messages: "127.0.0.1:7474 over softnic0". Valid while the session is open. */
struct target_name {
	char text[160];
};
struct target_name target_name(const struct perf_target *target);

/**
 * targets_open() - open a session and create a region at each of options->donors
 * @targets: receives an array of options->nr_donors. In any case the caller owes targets_close(),
 *	and free() after the last worker has ended
 *
 * Return: 0, or an exit status after a message.
 */
int targets_open(const struct perf_options *options, struct perf_target **targets);

/*
 * Closes regions and sessions. @targets: NULL is allowed. After a stop request, does not wait for
 * the donor to take the regions back: the end of the sessions returns them.
 */
void targets_close(const struct perf_options *options, struct perf_target *targets);

/*
 * Writes all regions once. The first touch costs the donor a page fault, which must not be
 * measured.
 * Return: 0, or an exit status.
 */
int targets_touch(const struct perf_options *options, struct perf_target *targets);

/* Information about the first session, with counters summed over all sessions. */
void targets_info(const struct perf_options *options, const struct perf_target *targets,
		  struct weir_session_info *info);

#endif
