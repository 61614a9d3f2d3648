// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Waiting for streams: inside a call, and in rpoll() and rselect().
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/select.h>
#include <time.h>

#include "stream.h"

enum { SPINS = 20 }; /* looks before a thread sleeps; waking it up takes longer */

int rsocket_poll(struct pollfd *fds, nfds_t count, int timeout_ms) STANDS_FOR(rpoll);
int rsocket_select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
	STANDS_FOR(rselect);

uint64_t stream_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void look_at_stream(struct rstream *s)
{
	stream_advance(s);
	if (s->state == STREAM_OPEN || s->state == STREAM_ENDED)
		flow_progress(s);
}

static bool is_over(const struct rstream *s)
{
	return s->state == STREAM_ENDED || s->state == STREAM_FAILED;
}

/* The descriptor that becomes ready when there is something to look for. Context: lock held. */
static int ready_fd(struct rstream *s)
{
	if (s->state == STREAM_LISTENING)
		return s->accept_fd;
	if (s->state != STREAM_OPEN)
		return s->id->channel->fd;
	flow_arm(s);
	return s->id->recv_cq_channel->fd;
}

int stream_wait(struct rstream *s, stream_condition *holds, uint64_t until_ms)
{
	struct pollfd fd = { .events = POLLIN };
	unsigned int looks;

	for (looks = 0;; looks++) {
		look_at_stream(s);
		if (holds(s) || is_over(s))
			return 0;
		if (stream_now_ms() >= until_ms)
			return -EAGAIN;
		if (looks >= SPINS) {
			fd.fd = ready_fd(s);
			look_at_stream(s); /* a completion before the arm */
		}
		if (looks < SPINS || holds(s) || is_over(s))
			continue;
		pthread_mutex_unlock(&s->lock);
		poll(&fd, 1, STREAM_NAP_MS);
		pthread_mutex_lock(&s->lock);
		flow_take_event(s);
	}
}

static short events_of(struct rstream *s)
{
	short events = 0;

	if (s->state == STREAM_LISTENING)
		return s->nr_accepted ? POLLIN : 0;
	look_at_stream(s);
	if (flow_has_bytes(s) || (s->state == STREAM_OPEN && !s->is_readable))
		events |= POLLIN;
	if (flow_can_send(s))
		events |= POLLOUT;
	if (s->state == STREAM_ENDED)
		events |= POLLIN | POLLOUT | POLLHUP;
	if (s->state == STREAM_FAILED)
		events |= POLLIN | POLLOUT | POLLERR | POLLHUP;
	return events;
}

/* With @wait, fill in the descriptor to wait for, before the last look. */
static short look_at(struct pollfd *fd, struct pollfd *wait)
{
	struct rstream *s = fd->fd < 0 ? NULL : stream_get(fd->fd);
	short events;

	if (!s) {
		fd->revents = 0;
		if (wait)
			*wait = (struct pollfd){ .fd = fd->fd, .events = fd->events };
		poll(fd, 1, 0);
		return fd->revents;
	}
	pthread_mutex_lock(&s->lock);
	flow_take_event(s);
	if (wait)
		*wait = (struct pollfd){ .fd = ready_fd(s), .events = POLLIN };
	events = events_of(s);
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	fd->revents = events & (fd->events | POLLERR | POLLHUP);
	return fd->revents;
}

static int look_at_all(struct pollfd *fds, nfds_t count, struct pollfd *waits)
{
	int ready = 0;
	nfds_t i;

	for (i = 0; i < count; i++)
		ready += !!look_at(&fds[i], waits ? &waits[i] : NULL);
	return ready;
}

/* Each wait is short, because another thread may take the event of a stream. */
static int nap_ms(uint64_t until_ms)
{
	uint64_t now_ms = stream_now_ms();

	if (now_ms >= until_ms)
		return 0;
	return until_ms - now_ms < STREAM_NAP_MS ? (int)(until_ms - now_ms) : STREAM_NAP_MS;
}

int rsocket_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	uint64_t until_ms = timeout_ms < 0 ? UINT64_MAX : stream_now_ms() + (uint64_t)timeout_ms;
	struct pollfd *waits;
	int ready, looks, rc = 0;

	for (looks = 0; looks < SPINS; looks++) {
		ready = look_at_all(fds, count, NULL);
		if (ready || !timeout_ms)
			return ready;
	}
	waits = malloc((count ? count : 1) * sizeof(*waits));
	if (!waits)
		return stream_return(-ENOMEM);
	do {
		ready = look_at_all(fds, count, waits);
		if (!ready)
			rc = poll(waits, count, nap_ms(until_ms));
	} while (!ready && rc >= 0 && stream_now_ms() < until_ms);
	free(waits);
	return rc < 0 ? rc : ready;
}

static bool is_in(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t from_sets(int count, const fd_set *in, const fd_set *out, const fd_set *except,
			struct pollfd *fds)
{
	nfds_t n = 0;
	int fd;

	for (fd = 0; fd < count; fd++)
		if (is_in(fd, in) || is_in(fd, out) || is_in(fd, except))
			fds[n++] = (struct pollfd){ .fd = fd,
						    .events = (is_in(fd, in) ? POLLIN : 0) |
							      (is_in(fd, out) ? POLLOUT : 0) };
	return n;
}

static int keep_ready(fd_set *set, const struct pollfd *fds, nfds_t n, short events)
{
	int kept = 0;
	nfds_t i;

	for (i = 0; set && i < n; i++) {
		if (!FD_ISSET(fds[i].fd, set))
			continue;
		if (fds[i].revents & events)
			kept++;
		else
			FD_CLR(fds[i].fd, set);
	}
	return kept;
}

int rsocket_select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t n;
	int rc;

	if (count < 0 || count > FD_SETSIZE)
		return stream_return(-EINVAL);
	n = from_sets(count, in, out, except, fds);
	rc = rsocket_poll(fds, n,
			  timeout ? (int)(timeout->tv_sec * 1000 + timeout->tv_usec / 1000) : -1);
	if (rc < 0)
		return rc;
	return keep_ready(in, fds, n, POLLIN | POLLHUP | POLLERR) +
	       keep_ready(out, fds, n, POLLOUT | POLLERR) + keep_ready(except, fds, n, POLLPRI);
}
