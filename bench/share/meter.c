/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reads CPU clocks, context switches from /proc, and system calls from perf events. */
#include "bench/share/meter.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRACEPOINT "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec at = { 0 };
	clockid_t clock;

	if (!clock_getcpuclockid(pid, &clock))
		clock_gettime(clock, &at);
	return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Voluntary context switches of a thread. */
static uint64_t switches(pid_t pid, const char *thread)
{
	unsigned long long count = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", pid, thread);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1)
			break;
	if (file)
		fclose(file);
	return count;
}

static int tracepoint(void)
{
	FILE *file = fopen(TRACEPOINT, "re");
	int id = -1;

	if (file && fscanf(file, "%d", &id) != 1)
		id = -1;
	if (file)
		fclose(file);
	return id;
}

static int syscalls_open(const char *thread, int id)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT,
					.size = sizeof(attr),
					.config = (uint64_t)id,
					.sample_period = 0 };

	return (int)syscall(SYS_perf_event_open, &attr, atoi(thread), -1, -1, 0);
}

/* Calls @each for every thread of every process. */
static void for_threads(const struct meter *m, void (*each)(void *, pid_t, const char *), void *arg)
{
	const struct dirent *entry;
	char path[32];
	DIR *dir;
	int i;

	for (i = 0; i < m->nr_pids; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task", m->pids[i]);
		dir = opendir(path);
		while (dir && (entry = readdir(dir)) != NULL)
			if (entry->d_name[0] != '.')
				each(arg, m->pids[i], entry->d_name);
		if (dir)
			closedir(dir);
	}
}

static void thread_open(void *arg, pid_t pid, const char *thread)
{
	struct meter *m = arg;
	int fd = m->nr_fds < METER_THREADS_MAX ? syscalls_open(thread, tracepoint()) : -1;

	(void)pid;
	if (fd < 0)
		m->has_syscalls = false;
	else
		m->fds[m->nr_fds++] = fd;
}

static void thread_switches(void *arg, pid_t pid, const char *thread)
{
	*(uint64_t *)arg += switches(pid, thread);
}

static struct meter_reading read_counters(const struct meter *m)
{
	struct meter_reading now = { 0 };
	uint64_t count;
	int i;

	for (i = 0; i < m->nr_pids; i++)
		now.cpu_ns += cpu_ns(m->pids[i]);
	for_threads(m, thread_switches, &now.switches);
	for (i = 0; i < m->nr_fds; i++)
		if (read(m->fds[i], &count, sizeof(count)) == sizeof(count))
			now.syscalls += count;
	return now;
}

void meter_begin(struct meter *m)
{
	m->nr_fds = 0;
	m->has_syscalls = true;
	for_threads(m, thread_open, m);
	m->begin = read_counters(m);
}

struct meter_reading meter_read(const struct meter *m)
{
	struct meter_reading now = read_counters(m);

	now.cpu_ns -= m->begin.cpu_ns;
	now.switches -= m->begin.switches;
	now.syscalls -= m->begin.syscalls;
	return now;
}
