// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A copy can wait for ever for a page of a peer: the peer's file system, or its userfaultfd, may
 * never bring the page. No signal ends that wait, except one that kills the process. So a second
 * thread watches the engine's copies. If one takes too long, another thread leads the engine, and
 * serves all other peers. The stalled thread keeps the copy and its step of the send queue, and
 * waits afterwards until it is needed to lead again.
 *
 * The watching thread starts with the first such copy, and sleeps a second after the last one.
 */
#include <errno.h>
#include <unistd.h>

#include "engine.h"
#include "softnic/shm/shared.h"

enum {
	LOOK_US = 20000,
	STALLED_LOOKS = 5, /* then hand over; a needless handover does no harm */
	IDLE_LOOKS = 50, /* then sleep */
};

static struct {
	bool started, asleep;
	pthread_cond_t wake;
} watcher = { .wake = PTHREAD_COND_INITIALIZER };

/* If no thread can be had, the next look tries again. */
static void hand_over(void)
{
	struct engine_thread *stalled = engine.leader;

	if (engine_new_leader())
		return;
	store_release(stalled->stuck, true);
	pthread_cond_broadcast(&engine.idle); /* fork() waits for the leader only */
}

static void sleep_until_woken(void)
{
	watcher.asleep = true;
	while (watcher.asleep)
		pthread_cond_wait(&watcher.wake, &engine.lock);
}

static void *watch(void *arg)
{
	uint64_t seen = 0;
	uint32_t looks = 0;

	pthread_mutex_lock(&engine.lock);
	for (;;) {
		bool stalls = engine.leader && engine.leader->stuck;

		looks = engine.stalls == seen ? looks + 1 : 0;
		seen = engine.stalls;
		if (stalls && looks >= STALLED_LOOKS) {
			hand_over();
		} else if (!stalls && looks >= IDLE_LOOKS) {
			sleep_until_woken();
			looks = 0;
		}
		pthread_mutex_unlock(&engine.lock);
		usleep(LOOK_US);
		pthread_mutex_lock(&engine.lock);
	}
	return arg;
}

/* engine.lock held. Without a thread, a stall holds up all peers. */
static void watch_stall(void)
{
	engine.stalls++;
	if (!watcher.started)
		watcher.started = !engine_start_thread(watch, NULL, "softnic-watch");
	if (!watcher.asleep)
		return;
	watcher.asleep = false;
	pthread_cond_signal(&watcher.wake);
}

bool softnic_loop_stall_begin(bool *stuck)
{
	struct engine_thread *t = engine_self();
	bool may_begin = true;

	if (!t)
		return true;
	pthread_mutex_lock(&engine.lock);
	if (engine_leads()) {
		may_begin = !load_relaxed(stuck);
		if (may_begin) {
			t->stuck = stuck;
			watch_stall();
		}
	}
	pthread_mutex_unlock(&engine.lock);
	return may_begin;
}

void softnic_loop_stall_end(void)
{
	struct engine_thread *t = engine_self();

	if (!t)
		return;
	pthread_mutex_lock(&engine.lock);
	if (t->stuck && !engine_leads())
		store_release(t->stuck, false);
	t->stuck = NULL;
	pthread_mutex_unlock(&engine.lock);
}

void stall_reset(void)
{
	watcher.started = watcher.asleep = false;
	pthread_cond_init(&watcher.wake, NULL);
}
