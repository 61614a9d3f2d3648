/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/unload/cpu_budget.h"
#include "core/poll/poll.h"
#include "lib/base/clock.h"
#include "preload/next.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/hooks/fork.h"
#include "preload/unload/discovery/discovery.h"
#include "preload/unload/memory.h"
#include "preload/unload/hooks/post.h"
#include "preload/unload/pressure.h"
#include "preload/unload/unload_rx.h"
#include "preload/unload/diag.h"
#include "preload/unload/service.h"
#include "preload/unload/settings.h"
#include "preload/unload/hooks/tracked_qp.h"

#define WAKE_NS 50000 /* cost of a wake-up */
#define CHECK_NS 200000 /* period of checking the sockets, while awake */
#define TEND_MS 4 /* period of checking unsignalled writes */
/* And for this long: a wake-up costs the posting thread more than polling costs this thread. */
#define TEND_ON_NS WEIR_NS_PER_S
#define BUSY_PERCENT_MAX 50 /* share of its time spent on empty polls */

/* Descriptors to sleep on: up to two sockets, the wake-up eventfd, the devices. */
enum { SOCKETS = 2, WAKEUP = SOCKETS, DEVICES };

/**
 * struct service - the service thread
 * @sockets: for offers; @wakeup_fd: eventfd, signalled by service_wake()
 * @seek_ns: when to look for peers
 * @is_tending: checks unsignalled writes; @tended_ns: when last checked, or when the first such
 *	write came
 */
static struct service {
	pid_t pid;
	struct discovery_sockets sockets;
	int wakeup_fd;
	struct weir_cpu_budget cpu_budget;
	struct weir_idle_time idle_time;
	struct weir_poll poll;
	uint64_t seek_ns;
	uint64_t checked_ns;
	uint64_t tended_ns;
	bool is_tending;
} service = { .wakeup_fd = -1 };

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool was_started; /* or failed to start; with start_lock */
static bool has_unsignalled; /* unsignalled writes need checks; atomic */

static uint32_t serve_receivers(void)
{
	struct unload_rx *rx, *next;
	struct unload_device *device;
	uint32_t n = 0;

	for (device = device_first(); device; device = device->next) {
		pthread_mutex_lock(&device->lock);
		for (rx = device->receivers; rx; rx = next) {
			next = rx->next;
			n += unload_rx_serve(rx, &service.cpu_budget);
			if (unload_rx_is_over(rx))
				unload_rx_close(rx, 0);
		}
		pthread_mutex_unlock(&device->lock);
	}
	return n;
}

static void arm_receivers(void)
{
	struct unload_device *device;
	struct unload_rx *rx;

	for (device = device_first(); device; device = device->next) {
		pthread_mutex_lock(&device->lock);
		for (rx = device->receivers; rx; rx = rx->next)
			unload_rx_arm(rx);
		pthread_mutex_unlock(&device->lock);
	}
}

/* Events only wake the thread: polling finds the work. */
static void take_events(struct unload_device *device)
{
	struct pollfd fd = { .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	pthread_mutex_lock(&device->lock);
	if (device->channel) {
		fd.fd = device->channel->fd;
		while (poll(&fd, 1, 0) == 1 &&
		       !NEXT(ibv_get_cq_event)(device->channel, &cq, &context))
			NEXT(ibv_ack_cq_events)(cq, 1);
	}
	pthread_mutex_unlock(&device->lock);
}

static int timeout_ms(uint64_t now_ns)
{
	const uint64_t tend_ns = now_ns + TEND_MS * WEIR_NS_PER_MS;
	uint64_t until_ns = service.seek_ns;

	if (__atomic_load_n(&has_unsignalled, __ATOMIC_RELAXED) && until_ns > tend_ns)
		until_ns = tend_ns;
	if (until_ns == UINT64_MAX)
		return -1;
	return until_ns <= now_ns ? 0 : (int)((until_ns - now_ns) / WEIR_NS_PER_MS) + 1;
}

static void poll_sender(struct tracked_qp *w, void *again)
{
	if (post_poll(w, weir_now_ns()))
		*(bool *)again = true;
}

/* A thread that posts during a check either signals the eventfd, or is seen by the next check. */
static void poll_senders(void)
{
	uint64_t now_ns = weir_now_ns();
	bool again = false;

	if (!__atomic_load_n(&has_unsignalled, __ATOMIC_RELAXED) ||
	    pthread_mutex_trylock(&tracked_qp_life))
		return;
	__atomic_store_n(&has_unsignalled, false, __ATOMIC_RELAXED);
	tracked_qp_for_each(poll_sender, &again);
	if (again || !service.is_tending)
		service.tended_ns = now_ns;
	service.is_tending = now_ns - service.tended_ns < TEND_ON_NS;
	if (service.is_tending)
		__atomic_store_n(&has_unsignalled, true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&tracked_qp_life);
}

/*
 * A thread that destroys a QP waits for its peer's copies, and the peer may wait for ours. So a QP
 * with an offer stays in place until then, and is found again.
 */
static void receive_offers(const struct pollfd *fds)
{
	uint64_t wakeups;
	int i;

	if (pthread_mutex_trylock(&tracked_qp_life)) {
		sched_yield();
		return;
	}
	for (i = 0; i < SOCKETS; i++)
		if (fds[i].revents && discovery_receive(fds[i].fd))
			service.seek_ns = 0;
	if (fds[WAKEUP].revents && read(service.wakeup_fd, &wakeups, sizeof(wakeups)) > 0)
		service.seek_ns = 0;
	if (service.seek_ns <= weir_now_ns())
		service.seek_ns = discovery_run(&service.sockets, weir_now_ns());
	pthread_mutex_unlock(&tracked_qp_life);
}

/* Serves all descriptors once; with @may_sleep, sleeps until an event. */
static void serve_once(bool may_sleep)
{
	struct pollfd fds[DEVICES + DEVICE_CHANNELS_MAX] = {
		{ .fd = service.sockets.here, .events = POLLIN },
		{ .fd = service.sockets.hosts, .events = POLLIN },
		{ .fd = service.wakeup_fd, .events = POLLIN },
	};
	struct unload_device *device, *at[DEVICE_CHANNELS_MAX];
	uint64_t now_ns = weir_now_ns();
	int i, n = 0;

	for (device = device_first(); device && n < DEVICE_CHANNELS_MAX; device = device->next) {
		pthread_mutex_lock(&device->lock);
		if (device->channel) {
			fds[DEVICES + n].fd = device->channel->fd;
			fds[DEVICES + n].events = POLLIN;
			at[n++] = device;
		}
		pthread_mutex_unlock(&device->lock);
	}
	service.checked_ns = now_ns;
	if (poll(fds, DEVICES + n, may_sleep ? timeout_ms(now_ns) : 0) > 0)
		for (i = 0; i < n; i++)
			if (fds[DEVICES + i].revents)
				take_events(at[i]);
	if (fds[0].revents || fds[1].revents || fds[WAKEUP].revents ||
	    service.seek_ns <= weir_now_ns())
		receive_offers(fds);
	poll_senders();
}

static void *service_main(void *arg)
{
	const struct weir_poll_config config = {
		.mode = WEIR_POLL_ADAPTIVE,
		.wcs_max = 16,
		.busy_percent_max = BUSY_PERCENT_MAX,
	};
	enum weir_poll_verdict verdict;

	weir_cpu_budget_init(&service.cpu_budget, settings_cpu_percent());
	weir_idle_time_init(&service.idle_time, WAKE_NS, WAKE_NS);
	weir_poll_init(&service.poll, &config, &service.idle_time, weir_now_ns());
	verdict = weir_poll_woken(&service.poll, weir_now_ns());
	for (;;) {
		if (verdict == WEIR_POLL_SLEEP) {
			serve_once(true);
			verdict = weir_poll_woken(&service.poll, weir_now_ns());
		} else if (weir_now_ns() - service.checked_ns > CHECK_NS) {
			serve_once(false);
		}
		if (verdict == WEIR_POLL_ARM)
			arm_receivers();
		verdict = weir_poll_polled(&service.poll, serve_receivers(), weir_now_ns());
	}
	return arg;
}

static void retire_receiver(struct tracked_qp *w, void *arg)
{
	(void)arg;
	tracked_qp_retire_rx(w);
}

/* The program may still post to the QP. */
static void add_pressure(struct tracked_qp *w, void *arg)
{
	(void)arg;
	pthread_mutex_lock(&w->lock);
	pressure_add(&w->route);
	pthread_mutex_unlock(&w->lock);
}

/*
 * A peer may wait for the copy of a write whose data made this program exit. All peers are told
 * before waiting for any, so that lost peers cost one wait in total.
 */
static void at_exit(void)
{
	struct unload_device *device;
	struct timespec until;
	uint64_t until_ns;

	if (!service_is_here())
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	if (!pthread_mutex_timedlock(&tracked_qp_life, &until)) {
		tracked_qp_for_each(retire_receiver, NULL);
		until_ns = weir_now_ns() + UNLOAD_RX_LAST_NS;
		for (device = device_first(); device; device = device->next)
			device_close_receivers(device, until_ns);
		tracked_qp_for_each(add_pressure, NULL);
		pressure_report();
		pthread_mutex_unlock(&tracked_qp_life);
	}
	diag_summary();
}

static int thread_start(void)
{
	pthread_t thread;
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, service_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		pthread_detach(thread);
	return rc;
}

/* Once: the child inherits its parent's fork handler. */
static int watch_parent(void)
{
	static bool is_watched;

	if (!is_watched && !atexit(at_exit) && !fork_register())
		is_watched = true;
	return is_watched ? 0 : -ENOMEM;
}

static void start_once(void)
{
	int rc;

	if (!memory_can_be_asked()) {
		diag_log("this kernel cannot check access to memory (Linux 5.14 can): nothing is "
			 "unloaded");
		return;
	}
	rc = discovery_open(&service.sockets);
	service.wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rc || service.wakeup_fd < 0 || watch_parent() || thread_start()) {
		diag_log("no socket or thread is available: nothing is unloaded");
		return;
	}
	service.pid = getpid();
}

bool service_start(void)
{
	pthread_mutex_lock(&start_lock);
	if (!was_started)
		start_once();
	was_started = true;
	pthread_mutex_unlock(&start_lock);
	return service_is_here();
}

/* Only closes the descriptors: the parent shares the sockets and their messages. */
void service_forget(void)
{
	int fds[] = { service.sockets.here, service.sockets.hosts, service.wakeup_fd };
	size_t i;

	for (i = 0; service.pid && i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	service = (struct service){ .wakeup_fd = -1 };
	has_unsignalled = was_started = false;
	pthread_mutex_init(&start_lock, NULL);
}

bool service_is_here(void)
{
	return service.pid && service.pid == getpid();
}

void service_wake(void)
{
	uint64_t one = 1;

	if (write(service.wakeup_fd, &one, sizeof(one)) < 0)
		return; /* already signalled */
}

void service_poll_tx(void)
{
	if (!__atomic_load_n(&has_unsignalled, __ATOMIC_RELAXED) &&
	    !__atomic_exchange_n(&has_unsignalled, true, __ATOMIC_RELAXED))
		service_wake();
}
