// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "counters.h"
#include "softnic/verbs/device.h"

#define COUNTERS (sizeof(struct softnic_counters) / sizeof(uint64_t))

int counters_sum(struct softnic_counters *sum)
{
	struct softnic_process *all = calloc(SOFTNIC_SLOTS, sizeof(*all));
	uint64_t *to = (uint64_t *)sum;
	size_t count = 0, i, j;
	int rc;

	if (!all)
		return -ENOMEM;
	*sum = (struct softnic_counters){ 0 };
	rc = softnic_stat(all, SOFTNIC_SLOTS, &count);
	for (i = 0; i < count; i++)
		for (j = 0; j < COUNTERS; j++)
			to[j] += ((const uint64_t *)&all[i].counters)[j];
	free(all);
	return rc;
}

int counters_write(const struct sysfs_entry *e, const struct sysfs_at *at, char *text, size_t size)
{
	struct softnic_counters sum;
	int rc = counters_sum(&sum);

	(void)at;
	if (!rc)
		snprintf(text, size, "%" PRIu64 "\n",
			 ((const uint64_t *)&sum)[e->counter / sizeof(uint64_t)]);
	return rc;
}

int counters_write_words(const struct sysfs_entry *e, const struct sysfs_at *at, char *text,
			 size_t size)
{
	enum { WORD_BYTES = 4 };
	struct softnic_counters sum;
	int rc = counters_sum(&sum);

	(void)e;
	(void)at;
	if (!rc)
		snprintf(text, size, "%" PRIu64 "\n",
			 (sum.write_bytes + sum.read_bytes + sum.send_bytes) / WORD_BYTES);
	return rc;
}

int counters_write_messages(const struct sysfs_entry *e, const struct sysfs_at *at, char *text,
			    size_t size)
{
	struct softnic_counters sum;
	int rc = counters_sum(&sum);

	(void)e;
	(void)at;
	if (!rc)
		snprintf(text, size, "%" PRIu64 "\n",
			 sum.writes + sum.reads + sum.sends + sum.atomics);
	return rc;
}
