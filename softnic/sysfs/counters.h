/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The files in counters/ and hw_counters/: sums over the processes of this user that have the
 * device open, as `weir stat` shows them. All devices and ports of a process count together.
 */
#ifndef WEIR_SOFTNIC_SYSFS_COUNTERS_H
#define WEIR_SOFTNIC_SYSFS_COUNTERS_H

#include "softnic/control/stat.h"
#include "tree.h"

/**
 * counters_sum() - add up the counters of all processes
 *
 * Asks every process, within half a second for each that does not answer.
 *
 * Return: 0, or a negative errno.
 */
int counters_sum(struct softnic_counters *sum);

/** counters_write() - the counter at the offset @e->counter */
int counters_write(const struct sysfs_entry *e, const struct sysfs_at *at, char *text, size_t size);

/**
 * counters_write_words() - bytes moved, in words of four bytes as the specification has it
 *
 * The process that posts a work request counts its words. Both directions show the same sum.
 */
int counters_write_words(const struct sysfs_entry *e, const struct sysfs_at *at, char *text,
			 size_t size);

/** counters_write_messages() - messages moved, each counted as one packet */
int counters_write_messages(const struct sysfs_entry *e, const struct sysfs_at *at, char *text,
			    size_t size);

#endif
