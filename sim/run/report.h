/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The results of a run, as a JSON object a line; sim/README.md describes each member. Numbers are
 * printed from integers: the same run gives the same bytes everywhere.
 */
#ifndef WEIR_SIM_RUN_REPORT_H
#define WEIR_SIM_RUN_REPORT_H

#include <stdio.h>

#include "sim/load/load.h"

/**
 * struct sim_usage - totals of a set of machines so far
 * @counts: of their NICs
 * @hits, @misses: of the caches of WQEs, QPs, MTTs and MPTs
 * @busy_ps: of pipeline, PCIe reads, PCIe writes, link out, link in
 * @cpu_ps: of their cores; @kernel_ps: part in the kernel
 * @interrupts, @switches: of their cores
 * @nodes: number of machines
 */
struct sim_usage {
	struct sim_nic_counts counts;
	uint64_t hits[4], misses[4];
	uint64_t busy_ps[5];
	uint64_t cpu_ps, kernel_ps;
	uint64_t interrupts, switches;
	uint32_t nodes;
};

/* Totals of @count machines, from @first on. */
void sim_usage_take(struct sim_usage *usage, const struct sim_world *world, uint32_t first,
		    uint32_t count);

/**
 * struct sim_report - all results
 * @run_ps: counted time
 * @load, @background: results of the loads; without background: NULL
 * @half_ops: operations of the load in the first half of the time
 * @before, @after: totals of clients and of servers, at the start and the end of the counted time
 * @events: events in all
 */
struct sim_report {
	uint64_t run_ps;
	const struct sim_tally *load, *background;
	uint64_t half_ops;
	struct sim_usage before[2], after[2];
	uint64_t events;
};

/* Prints @report as one line. */
void sim_report_print(FILE *out, const struct sim_report *report);

#endif
