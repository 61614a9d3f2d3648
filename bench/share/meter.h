/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What processes use of the machine: their own kernel's counts, of all their threads. */
#ifndef WEIR_BENCH_SHARE_METER_H
#define WEIR_BENCH_SHARE_METER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define METER_PIDS_MAX 4
#define METER_THREADS_MAX 4096

/* @syscalls: 0 where the kernel does not let us count them: @has_syscalls tells. */
struct meter_reading {
	uint64_t cpu_ns, switches, syscalls;
};

/**
 * struct meter - of some processes
 * @fds: a counter of system calls for each thread that there is when the meter begins
 */
struct meter {
	pid_t pids[METER_PIDS_MAX];
	int nr_pids, fds[METER_THREADS_MAX], nr_fds;
	bool has_syscalls;
	struct meter_reading begin;
};

/* From now on. @pids: @nr_pids of them, filled in by the caller. */
void meter_begin(struct meter *m);
/* Since then; counts on. */
struct meter_reading meter_read(const struct meter *m);

#endif
