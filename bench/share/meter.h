/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Resource use of processes: the kernel's counts over all their threads. */
#ifndef WEIR_BENCH_SHARE_METER_H
#define WEIR_BENCH_SHARE_METER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define METER_PIDS_MAX 4
#define METER_THREADS_MAX 4096

/* @syscalls: valid if @has_syscalls; else 0, because the kernel does not allow counting. */
struct meter_reading {
	uint64_t cpu_ns, switches, syscalls;
};

/**
 * struct meter - the use of some processes
 * @fds: a system call counter for each thread that exists at meter_begin()
 */
struct meter {
	pid_t pids[METER_PIDS_MAX];
	int nr_pids, fds[METER_THREADS_MAX], nr_fds;
	bool has_syscalls;
	struct meter_reading begin;
};

/* Starts counting. The caller has filled in @pids and @nr_pids. */
void meter_begin(struct meter *m);
/* Use since meter_begin(); counting goes on. */
struct meter_reading meter_read(const struct meter *m);

#endif
