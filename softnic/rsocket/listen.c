// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Listening. One thread of the process takes the requests of all listeners, and accepts them. As
 * with TCP, a program may then connect to itself, or to a program that accepts much later.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "softnic/cm/cm.h"
#include "stream.h"

enum {
	CHANNEL_FD_MIN = 512, /* above most programs' descriptors, below FD_SETSIZE */
	RETRIES_MAX = 7,
	BACKLOG_MAX = 1024,
};

int rsocket_accept(int fd, struct sockaddr *addr, socklen_t *length) STANDS_FOR(raccept);

static int listeners = -1; /* an epoll instance */

/*
 * The new channel gets a high number. librspreload before rdma-core 63 takes the lower of two
 * numbers, an rsocket's own and the program's for it, for the program's. Its select() then reports
 * a descriptor that the program does not know.
 */
static void lift_channel(struct rdma_cm_id *id)
{
	int fd = fcntl(id->channel->fd, F_DUPFD_CLOEXEC, CHANNEL_FD_MIN);

	if (fd < 0)
		return; /* the limit of descriptors is low: the program then has few, too */
	pthread_mutex_lock(&cm_lock); /* the engine adds events */
	close(id->channel->fd);
	id->channel->fd = fd;
	pthread_mutex_unlock(&cm_lock);
}

/* Context: without locks; @s is of this thread alone. */
static int welcome(struct rstream *s)
{
	struct rdma_conn_param param = s->id->event->param.conn;
	uint8_t hello[FLOW_HELLO_BYTES];
	int rc;

	if (param.private_data_len < FLOW_HELLO_BYTES)
		return -EPROTO;
	rc = flow_hear_hello(s, param.private_data);
	if (!rc)
		rc = flow_open(s);
	if (rc)
		return rc;
	flow_say_hello(s, hello);
	param.private_data = hello;
	param.private_data_len = sizeof(hello);
	param.flow_control = 1;
	param.rnr_retry_count = RETRIES_MAX;
	stream_accepted(s, rdma_accept(s->id, &param) ? -errno : 0);
	return s->state == STREAM_FAILED ? -s->error : 0;
}

/* A request that cannot be served is rejected, and the next one is taken. Context: lock held. */
static struct rstream *take_request(const struct rstream *listener)
{
	struct rdma_cm_id *id;
	struct rstream *s;
	int rc;

	for (;;) {
		if (rdma_get_request(listener->id, &id))
			return NULL;
		lift_channel(id);
		s = stream_new(listener);
		rc = s ? stream_unblock(id) : -ENOMEM;
		if (s)
			s->id = id;
		if (!rc)
			rc = welcome(s);
		if (!rc)
			return s;
		rdma_reject(id, NULL, 0);
		if (s)
			stream_free(s);
		else
			rdma_destroy_id(id);
	}
}

/* Wait for the listener's next request. */
static void watch(const struct rstream *s, int operation)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.fd = s->fd };

	epoll_ctl(listeners, operation, s->fd, &event);
}

/* A full queue is watched again when raccept() has made room. Context: lock held. */
static void take_requests(struct rstream *listener)
{
	struct rstream *s;

	while (listener->nr_accepted < listener->backlog) {
		s = take_request(listener);
		if (!s) {
			watch(listener, EPOLL_CTL_MOD);
			return;
		}
		TAILQ_INSERT_TAIL(&listener->accepted, s, link);
		listener->nr_accepted++;
		eventfd_write(listener->accept_fd, 1);
	}
}

static void *accept_for_all(void *unused)
{
	struct epoll_event event;
	struct rstream *s;

	(void)unused;
	for (;;) {
		if (epoll_wait(listeners, &event, 1, -1) < 1)
			continue;
		s = stream_get(event.data.fd);
		if (!s)
			continue; /* closed since */
		pthread_mutex_lock(&s->lock);
		if (s->state == STREAM_LISTENING)
			take_requests(s);
		pthread_mutex_unlock(&s->lock);
		stream_put(s);
	}
	return NULL;
}

static void start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	listeners = epoll_create1(EPOLL_CLOEXEC);
	if (listeners < 0)
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, accept_for_all, NULL)) {
		close(listeners);
		listeners = -1;
	}
	pthread_attr_destroy(&attr);
}

int stream_listen(struct rstream *s, int backlog)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start_thread);
	s->accept_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (listeners < 0 || s->accept_fd < 0)
		return -ENOMEM;
	if (rdma_listen(s->id, backlog))
		return -errno;
	s->backlog = backlog > 0 && backlog < BACKLOG_MAX ? (unsigned int)backlog : BACKLOG_MAX;
	s->state = STREAM_LISTENING;
	watch(s, EPOLL_CTL_ADD);
	return 0;
}

void stream_stop_listening(struct rstream *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->state == STREAM_LISTENING)
		epoll_ctl(listeners, EPOLL_CTL_DEL, s->fd, NULL);
	if (s->state == STREAM_LISTENING)
		s->state = STREAM_ENDED;
	pthread_mutex_unlock(&s->lock);
}

/* Context: lock held. */
static struct rstream *take_accepted(struct rstream *listener)
{
	bool was_full = listener->nr_accepted == listener->backlog;
	struct rstream *s = TAILQ_FIRST(&listener->accepted);
	eventfd_t count;

	if (!s)
		return NULL;
	TAILQ_REMOVE(&listener->accepted, s, link);
	listener->nr_accepted--;
	eventfd_read(listener->accept_fd, &count);
	if (was_full)
		watch(listener, EPOLL_CTL_MOD);
	return s;
}

/* Context: lock held; released while waiting. Return: 0 or a negative errno. */
static int await_accepted(struct rstream *listener, struct rstream **s)
{
	struct pollfd fd = { .fd = listener->accept_fd, .events = POLLIN };

	while (listener->state == STREAM_LISTENING) {
		*s = take_accepted(listener);
		if (*s)
			return 0;
		if (listener->is_nonblocking)
			return -EAGAIN;
		pthread_mutex_unlock(&listener->lock);
		poll(&fd, 1, STREAM_NAP_MS);
		pthread_mutex_lock(&listener->lock);
	}
	return -EINVAL;
}

int rsocket_accept(int fd, struct sockaddr *addr, socklen_t *length)
{
	struct rstream *listener = stream_get(fd), *s = NULL;
	int rc;

	if (!listener)
		return -1;
	pthread_mutex_lock(&listener->lock);
	rc = await_accepted(listener, &s);
	pthread_mutex_unlock(&listener->lock);
	stream_put(listener);
	if (rc)
		return stream_return(rc);
	if (addr && length)
		stream_copy_address(rdma_get_peer_addr(s->id), addr, length);
	rc = stream_publish(s);
	if (rc < 0)
		stream_free(s);
	return rc;
}
