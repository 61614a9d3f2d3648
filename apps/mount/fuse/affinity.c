/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/fuse/affinity.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_EVERY 16u /* calls between checks for a concurrent call */
/* calls between reads of the program's CPU; a multiple of LOOK_EVERY */
#define FIND_EVERY AFFINITY_LONE_MIN
#define MOVES_MAX 4u
#define STAT_CPU 37 /* index of the word in /proc/TID/stat after the name: field 39 in proc(5) */

void affinity_init(struct affinity *caller, int fuse)
{
	*caller = (struct affinity){ .fuse = fuse, .cpu = AFFINITY_ANY_CPU };
	pthread_mutex_init(&caller->lock, NULL);
	if (sched_getaffinity(0, sizeof(caller->all), &caller->all))
		CPU_ZERO(&caller->all); /* more CPUs than the set holds: never follow */
}

void affinity_fini(struct affinity *caller)
{
	pthread_mutex_destroy(&caller->lock);
}

/* The @number-th word of @text, from 1 on. */
static const char *word(const char *text, int number)
{
	while (text && number--) {
		text = strchr(text, ' ');
		if (text)
			text++;
	}
	return text;
}

/* The thread's CPU, or AFFINITY_ANY_CPU if unknown: the thread has ended or is hidden. */
static int cpu_of(uint32_t tid)
{
	char path[32], text[1024];
	const char *at;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return AFFINITY_ANY_CPU;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	at = word(strrchr(text, ')'), STAT_CPU);
	return at ? atoi(at) : AFFINITY_ANY_CPU;
}

static bool another_waits(const struct affinity *caller)
{
	struct pollfd fd = { .fd = caller->fuse, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* Caller's lock held. */
static void stop_following(struct affinity *caller)
{
	caller->lone = 0;
	atomic_store_explicit(&caller->cpu, AFFINITY_ANY_CPU, memory_order_relaxed);
}

/* Caller's lock held. */
static void locate_caller(struct affinity *caller)
{
	int before = atomic_load_explicit(&caller->cpu, memory_order_relaxed);
	int cpu = cpu_of(caller->tid);

	if (cpu == before)
		caller->moves = 0;
	else if (before >= 0)
		caller->moves++;
	if (caller->moves > MOVES_MAX || cpu < 0 || !CPU_ISSET((unsigned int)cpu, &caller->all))
		stop_following(caller);
	else
		atomic_store_explicit(&caller->cpu, cpu, memory_order_relaxed);
}

/* Caller's lock held. */
static void note_request(struct affinity *caller, const struct fuse_in_header *call)
{
	bool data = call->opcode == FUSE_READ || call->opcode == FUSE_WRITE;

	if (!data || call->pid != caller->tid) {
		caller->tid = call->pid;
		caller->moves = 0;
		stop_following(caller);
		return;
	}
	if (atomic_load_explicit(&caller->serving, memory_order_relaxed)) {
		stop_following(caller);
		return;
	}
	if (++caller->lone % LOOK_EVERY)
		return;
	if (another_waits(caller))
		stop_following(caller);
	else if (caller->lone % FIND_EVERY == 0 && caller->moves <= MOVES_MAX)
		locate_caller(caller);
}

/* This thread's current affinity. */
static __thread int settled = AFFINITY_ANY_CPU;

static void set_thread_affinity(const struct affinity *caller)
{
	int cpu = atomic_load_explicit(&caller->cpu, memory_order_relaxed);
	cpu_set_t one;

	if (cpu == settled)
		return;
	settled = cpu;
	CPU_ZERO(&one);
	if (cpu >= 0)
		CPU_SET((unsigned int)cpu, &one);
	/* If refused, the thread stays where it is. */
	(void)!sched_setaffinity(0, sizeof(one), cpu < 0 ? &caller->all : &one);
}

void affinity_follow(struct affinity *caller, const struct fuse_in_header *call)
{
	pthread_mutex_lock(&caller->lock);
	note_request(caller, call);
	pthread_mutex_unlock(&caller->lock);
	set_thread_affinity(caller);
}
