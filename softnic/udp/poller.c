// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * While a program spins, epoll does not watch the socket, so that packets do not wake the engine.
 * A timer finds a program that has stopped polling. A program that asks for an event says so.
 *
 * A program that has got completions may wait for something else, such as a byte of its memory. So
 * the engine watches again after each completion, but only if the program is known for that: the
 * timer once found packets that had waited for it. Each such find doubles how many completions the
 * engine then takes care of. Other programs soon poll again, and the engine would wake in vain.
 *
 * A program that waits for much to arrive or to be acknowledged yields its CPU meanwhile. The peer
 * may be on this host, and a program that spins would keep it from working. Short messages are
 * answered sooner than a CPU changes hands.
 */
#include <sched.h>
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
	LOOK_NS = 250000,
	TRIES_MIN = 4, /* before a program's thread counts as spinning */
	TRIES_BETWEEN_YIELDS = 4,
	BULK_BYTES = 16 << 10, /* of one turn, ours and the peer's, for which a program yields */
	CARE_MIN = 256,
	CARE_MAX = 1 << 20,
};

/* The lock comes before nic.lock. */
static struct {
	pthread_mutex_t lock;
	bool is_hot; /* packets came since the timer looked last; the timer is armed */
	bool has_polled; /* a program has, since the timer looked last; without the lock */
	uint32_t tries; /* of programs, since the engine took over last; without the lock */
	uint64_t came; /* bytes for this process, the last time */
	uint64_t sent_before; /* bytes, until then */
	uint32_t care; /* completions after which the engine still watches again */
	uint32_t care_next; /* what @care becomes at the next find; 0: CARE_MIN */
	bool is_unwatched; /* by epoll */
	bool is_asked; /* to watch again, by a thread that must not wait for the lock */
	struct softnic_timer timer;
} poller = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void watch(bool on)
{
	if (poller.is_unwatched == !on)
		return;
	softnic_loop_change(load_acquire(&udp.own), on ? EPOLLIN : 0);
	store_relaxed(&poller.is_unwatched, !on);
}

static bool take_packets(uint16_t port)
{
	uint64_t sent = load_relaxed(&udp.bytes_sent);
	size_t bytes;

	if (!receive_batch(port, &bytes))
		return false;
	store_relaxed(&poller.came, bytes);
	store_release(&poller.sent_before, sent); /* pairs with is_bulk() */
	return true;
}

static void rest(void)
{
	store_relaxed(&poller.is_asked, false);
	store_relaxed(&poller.tries, 0);
	watch(true);
}

/*
 * Store-load pairing: the asking thread sets the flag, then tries the lock; the holder unlocks,
 * then reads the flag. At least one of them serves.
 */
static void unlock(void)
{
	do {
		if (load_relaxed(&poller.is_asked))
			rest();
		pthread_mutex_unlock(&poller.lock);
	} while (load_ordered(&poller.is_asked) && !pthread_mutex_trylock(&poller.lock));
}

/* The program has stopped polling. Packets that wait show that it should not have been trusted. */
static void take_over(void)
{
	uint32_t care = poller.care_next ? poller.care_next : CARE_MIN;

	store_relaxed(&poller.tries, 0);
	if (poller.is_unwatched && take_packets(udp.port)) {
		store_relaxed(&poller.care, care);
		poller.care_next = care < CARE_MAX ? 2 * care : CARE_MAX;
	}
	watch(true);
}

static void look_for_polls(struct softnic_timer *timer)
{
	pthread_mutex_lock(&poller.lock);
	if (load_relaxed(&poller.has_polled)) {
		softnic_timer_arm(timer, LOOK_NS, look_for_polls);
	} else {
		take_over();
		store_relaxed(&poller.is_hot, false);
	}
	store_relaxed(&poller.has_polled, false);
	unlock();
}

/* A program that spins will take the packets. */
static void leave_to_program(void)
{
	if (load_relaxed(&poller.tries) >= TRIES_MIN)
		watch(false);
}

void poller_ready(void *port, uint32_t events)
{
	pthread_mutex_lock(&poller.lock);
	if (events & EPOLLERR) /* a sender may have taken the error that tells of the message */
		refused_take(udp_socket((uint16_t)(uintptr_t)port));
	if (take_packets((uint16_t)(uintptr_t)port) && !poller.is_hot) {
		store_relaxed(&poller.is_hot, true);
		softnic_timer_arm(&poller.timer, LOOK_NS, look_for_polls);
	}
	if (poller.is_hot)
		leave_to_program();
	unlock();
}

/* A try counts also while the engine holds the lock. Otherwise a busy engine would stay so. */
static bool try_to_take(void)
{
	bool any = false;

	store_relaxed(&poller.has_polled, true);
	add_ordered(&poller.tries, 1);
	if (pthread_mutex_trylock(&poller.lock))
		return false;
	if (poller.is_hot) {
		leave_to_program();
		any = take_packets(udp.port);
	}
	unlock();
	return any;
}

/* How much was sent since packets came, and came with them. */
static bool is_bulk(void)
{
	uint64_t before = load_acquire(&poller.sent_before); /* first: never above what was sent */
	uint64_t sent = load_relaxed(&udp.bytes_sent) - before;

	return load_relaxed(&poller.came) + sent >= BULK_BYTES;
}

bool poller_try(void)
{
	static __thread uint32_t idle_tries;

	if (!load_relaxed(&poller.is_hot))
		return false;
	if (try_to_take()) {
		idle_tries = 0;
		return true;
	}
	if (++idle_tries % TRIES_BETWEEN_YIELDS == 0 && is_bulk())
		sched_yield();
	return false;
}

static void ask_to_watch(void)
{
	store_ordered(&poller.is_asked, true);
	if (!pthread_mutex_trylock(&poller.lock))
		unlock();
}

/*
 * The tries before do not count: the program tries once more, then sleeps. The engine may be about
 * to leave the packets to the program, so this asks also while epoll watches.
 */
void poller_leave(void)
{
	if (load_relaxed(&poller.is_hot))
		ask_to_watch();
}

void poller_rest(void)
{
	uint32_t care = load_relaxed(&poller.care);

	if (!care || !load_relaxed(&poller.is_unwatched))
		return;
	store_relaxed(&poller.care, care - 1); /* several threads may count too little */
	ask_to_watch();
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
	poller.is_hot = poller.has_polled = poller.is_unwatched = poller.is_asked = false;
	poller.tries = poller.care = poller.care_next = 0;
	poller.came = poller.sent_before = 0;
	mad_reset();
}

const struct fork_part poller_fork = { &poller.lock, reset_poller };
