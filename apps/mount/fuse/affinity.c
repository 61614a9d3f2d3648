/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/fuse/affinity.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_EVERY 16u /* calls: is another one waiting? */
#define FIND_EVERY CALLER_LONE_MIN /* calls: where does he run? A multiple of LOOK_EVERY */
#define MOVES_MAX 4u
#define STAT_CPU 37 /* word of /proc/TID/stat after the name: proc(5) counts it 39th */

void caller_init(struct caller *caller, int fuse)
{
	*caller = (struct caller){ .fuse = fuse, .cpu = CALLER_ANYWHERE };
	pthread_mutex_init(&caller->lock, NULL);
	if (sched_getaffinity(0, sizeof(caller->all), &caller->all))
		CPU_ZERO(&caller->all); /* more CPUs than the set holds: nobody is followed */
}

void caller_fini(struct caller *caller)
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

/* CALLER_ANYWHERE if that cannot be known: he may have ended, or be hidden. */
static int cpu_of(uint32_t tid)
{
	char path[32], text[1024];
	const char *at;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CALLER_ANYWHERE;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	at = word(strrchr(text, ')'), STAT_CPU);
	return at ? atoi(at) : CALLER_ANYWHERE;
}

static bool another_waits(const struct caller *caller)
{
	struct pollfd fd = { .fd = caller->fuse, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* Caller's lock held. */
static void forget(struct caller *caller)
{
	caller->lone = 0;
	atomic_store_explicit(&caller->cpu, CALLER_ANYWHERE, memory_order_relaxed);
}

/* Caller's lock held. */
static void find(struct caller *caller)
{
	int before = atomic_load_explicit(&caller->cpu, memory_order_relaxed);
	int cpu = cpu_of(caller->tid);

	if (cpu == before)
		caller->moves = 0;
	else if (before >= 0)
		caller->moves++;
	if (caller->moves > MOVES_MAX || cpu < 0 || !CPU_ISSET((unsigned int)cpu, &caller->all))
		forget(caller);
	else
		atomic_store_explicit(&caller->cpu, cpu, memory_order_relaxed);
}

/* Caller's lock held. */
static void judge(struct caller *caller, const struct fuse_in_header *call)
{
	bool data = call->opcode == FUSE_READ || call->opcode == FUSE_WRITE;

	if (!data || call->pid != caller->tid) {
		caller->tid = call->pid;
		caller->moves = 0;
		forget(caller);
		return;
	}
	if (atomic_load_explicit(&caller->serving, memory_order_relaxed)) {
		forget(caller);
		return;
	}
	if (++caller->lone % LOOK_EVERY)
		return;
	if (another_waits(caller))
		forget(caller);
	else if (caller->lone % FIND_EVERY == 0 && caller->moves <= MOVES_MAX)
		find(caller);
}

/* Where this thread was told to run last. */
static __thread int settled = CALLER_ANYWHERE;

static void settle(const struct caller *caller)
{
	int cpu = atomic_load_explicit(&caller->cpu, memory_order_relaxed);
	cpu_set_t one;

	if (cpu == settled)
		return;
	settled = cpu;
	CPU_ZERO(&one);
	if (cpu >= 0)
		CPU_SET((unsigned int)cpu, &one);
	/* Refused, it runs where it did. */
	(void)!sched_setaffinity(0, sizeof(one), cpu < 0 ? &caller->all : &one);
}

void caller_came(struct caller *caller, const struct fuse_in_header *call)
{
	pthread_mutex_lock(&caller->lock);
	judge(caller, call);
	pthread_mutex_unlock(&caller->lock);
	settle(caller);
}
