// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * While a program spins, epoll does not watch the socket, so that packets do not wake the engine.
 * The engine takes over when the program gets completions, because it may then wait for something
 * else, such as a byte of its memory. A timer finds a program that just stopped polling.
 */
#include <sys/epoll.h>
#include <time.h>

#include "softnic/loop/fork.h"
#include "softnic/loop/loop.h"
#include "softnic/verbs/nic.h"
#include "softnic/udp/mad.h"
#include "softnic/udp/poller.h"
#include "softnic/udp/receive.h"
#include "softnic/qp_far/refused.h"
#include "softnic/udp/socket.h"

enum {
	LOOK_NS = 500000,
	TRIES_MIN = 4, /* before a program's thread counts as spinning */
};

/* The lock comes before nic.lock. */
static struct {
	pthread_mutex_t lock;
	bool is_hot; /* packets came since the timer looked last; the timer is armed */
	bool has_polled; /* a program has, since the timer looked last */
	uint32_t tries; /* without completions, since a program's thread got some */
	bool is_unwatched; /* by epoll */
	struct softnic_timer timer;
} poller = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void watch(bool on)
{
	if (poller.is_unwatched == !on)
		return;
	softnic_loop_change(load_acquire(&udp.own), on ? EPOLLIN : 0);
	store_relaxed(&poller.is_unwatched, !on);
}

static void watch_if_idle(struct softnic_timer *timer)
{
	pthread_mutex_lock(&poller.lock);
	if (poller.has_polled) {
		softnic_timer_arm(timer, LOOK_NS, watch_if_idle);
	} else {
		store_relaxed(&poller.is_hot, false);
		watch(true);
	}
	poller.has_polled = false;
	pthread_mutex_unlock(&poller.lock);
}

void poller_ready(void *port, uint32_t events)
{
	pthread_mutex_lock(&poller.lock);
	if (events & EPOLLERR) /* a sender may have taken the error that tells of the message */
		refused_take(udp_socket((uint16_t)(uintptr_t)port));
	if (receive_batch((uint16_t)(uintptr_t)port) && !poller.is_hot) {
		store_relaxed(&poller.is_hot, true);
		softnic_timer_arm(&poller.timer, LOOK_NS, watch_if_idle);
	}
	pthread_mutex_unlock(&poller.lock);
}

bool poller_try(void)
{
	bool any = false;

	if (!load_relaxed(&poller.is_hot) || pthread_mutex_trylock(&poller.lock))
		return false;
	if (poller.is_hot) {
		poller.has_polled = true;
		if (++poller.tries >= TRIES_MIN)
			watch(false);
		any = receive_batch(udp.port);
	}
	pthread_mutex_unlock(&poller.lock);
	return any;
}

/* If another thread has the lock, the timer looks soon. */
void poller_rest(void)
{
	if (!load_relaxed(&poller.is_unwatched) || pthread_mutex_trylock(&poller.lock))
		return;
	poller.tries = 0;
	watch(true);
	pthread_mutex_unlock(&poller.lock);
}

/* The thread that ends the process may have interrupted the lock's holder: no wait for ever. */
__attribute__((destructor)) static void leave_port(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	if (load_acquire(&udp.roce) < 0 || pthread_mutex_timedlock(&poller.lock, &end))
		return;
	receive_leave();
	pthread_mutex_unlock(&poller.lock);
}

static void reset_poller(void)
{
	poller.is_hot = poller.has_polled = poller.is_unwatched = false;
	mad_reset();
}

const struct fork_part poller_fork = { &poller.lock, reset_poller };
