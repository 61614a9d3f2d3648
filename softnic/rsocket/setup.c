// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Streams that come and go: connecting, listening, accepting, closing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softnic/cm/cm.h"
#include "softnic/cm/event.h"
#include "stream.h"

enum {
	RETRIES_MAX = 7,
	CLOSE_MS = 5000, /* for bytes under way; a peer that is gone takes none */
};

int rsocket_socket(int domain, int type, int protocol) STANDS_FOR(rsocket);
int rsocket_bind(int fd, const struct sockaddr *addr, socklen_t length) STANDS_FOR(rbind);
int rsocket_listen(int fd, int backlog) STANDS_FOR(rlisten);
int rsocket_connect(int fd, const struct sockaddr *addr, socklen_t length) STANDS_FOR(rconnect);
int rsocket_shutdown(int fd, int how) STANDS_FOR(rshutdown);
int rsocket_close(int fd) STANDS_FOR(rclose);
int rsocket_getpeername(int fd, struct sockaddr *addr, socklen_t *length) STANDS_FOR(rgetpeername);
int rsocket_getsockname(int fd, struct sockaddr *addr, socklen_t *length) STANDS_FOR(rgetsockname);

struct rstream *stream_new(const struct rstream *like)
{
	struct rstream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	TAILQ_INIT(&s->maps);
	TAILQ_INIT(&s->accepted);
	s->accept_fd = -1;
	s->depth = like ? like->depth : STREAM_DEPTH;
	s->inline_max = like ? like->inline_max : STREAM_INLINE;
	s->maps_max = like ? like->maps_max : 0;
	s->out_size = like ? like->out_size : STREAM_BUFFER;
	s->in_size = like ? like->in_size : STREAM_BUFFER;
	s->nodelay = like ? like->nodelay : 0;
	s->is_nonblocking = like && like->is_nonblocking;
	return s;
}

void stream_free(struct rstream *s)
{
	struct rstream *child;

	while ((child = TAILQ_FIRST(&s->accepted))) {
		TAILQ_REMOVE(&s->accepted, child, link);
		stream_free(child);
	}
	if (s->accept_fd >= 0)
		close(s->accept_fd);
	flow_close(s);
	if (s->id)
		rdma_destroy_id(s->id);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int stream_unblock(const struct rdma_cm_id *id)
{
	return fcntl(id->channel->fd, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

int rsocket_socket(int domain, int type, int protocol)
{
	const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
	struct rstream *s;
	int fd;

	if ((domain != AF_INET && domain != AF_INET6) || (type & ~flags) != SOCK_STREAM ||
	    (protocol && protocol != IPPROTO_TCP))
		return stream_return(-EPROTONOSUPPORT);
	s = stream_new(NULL);
	if (!s)
		return stream_return(-ENOMEM);
	if (rdma_create_id(NULL, &s->id, s, RDMA_PS_TCP))
		goto free;
	s->id->route.addr.src_addr.sa_family = (sa_family_t)domain;
	s->is_nonblocking = type & SOCK_NONBLOCK;
	if (stream_unblock(s->id))
		goto free;
	fd = stream_publish(s);
	if (fd >= 0)
		return fd;
free:
	fd = errno;
	stream_free(s);
	return stream_return(-fd);
}

int rsocket_bind(int fd, const struct sockaddr *addr, socklen_t length)
{
	struct rstream *s = stream_get(fd);
	int rc;

	(void)length;
	if (!s)
		return -1;
	rc = rdma_bind_addr(s->id, (struct sockaddr *)addr);
	stream_put(s);
	return rc;
}

int rsocket_listen(int fd, int backlog)
{
	struct rstream *s = stream_get(fd);
	int rc = 0;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	if (s->state != STREAM_LISTENING)
		rc = stream_listen(s, backlog);
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	return stream_return(rc);
}

static void fail(struct rstream *s, int rc)
{
	s->state = STREAM_FAILED;
	s->error = -rc;
}

static void open_stream(struct rstream *s)
{
	s->state = STREAM_OPEN;
	s->is_readable = s->is_writable = true;
}

static void heard_answer(struct rstream *s)
{
	const struct rdma_conn_param *param = &s->id->event->param.conn;
	int rc = -EPROTO;

	if (param->private_data_len >= FLOW_HELLO_BYTES)
		rc = flow_hear_hello(s, param->private_data);
	if (rc)
		fail(s, rc);
	else
		open_stream(s);
}

/* The result of rdma_connect(), or of a later look for its event. */
static void connected(struct rstream *s, int rc)
{
	if (rc == -EAGAIN)
		s->state = STREAM_CONNECTING;
	else if (rc)
		fail(s, rc);
	else
		heard_answer(s);
}

void stream_accepted(struct rstream *s, int rc)
{
	if (rc == -EAGAIN)
		s->state = STREAM_ACCEPTING;
	else if (rc)
		fail(s, rc);
	else
		open_stream(s);
}

void stream_advance(struct rstream *s)
{
	if (s->state == STREAM_CONNECTING)
		connected(s, cm_event_complete(cm_id(s->id)));
	else if (s->state == STREAM_ACCEPTING)
		stream_accepted(s, cm_event_complete(cm_id(s->id)));
}

static int as_error(int rc)
{
	return rc ? -errno : 0;
}

static void call(struct rstream *s, const struct sockaddr *addr)
{
	uint8_t hello[FLOW_HELLO_BYTES];
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = sizeof(hello),
		.flow_control = 1,
		.retry_count = RETRIES_MAX,
		.rnr_retry_count = RETRIES_MAX,
	};
	int rc = as_error(rdma_resolve_addr(s->id, NULL, (struct sockaddr *)addr, 0));

	if (!rc)
		rc = as_error(rdma_resolve_route(s->id, 0));
	if (!rc)
		rc = flow_open(s);
	if (rc) {
		fail(s, rc);
		return;
	}
	flow_say_hello(s, hello);
	connected(s, as_error(rdma_connect(s->id, &param)));
}

static bool is_decided(const struct rstream *s)
{
	return s->state != STREAM_CONNECTING && s->state != STREAM_ACCEPTING;
}

/* Context: lock held. Return: 0 or a negative errno. */
static int connect_stream(struct rstream *s, const struct sockaddr *addr)
{
	switch (s->state) {
	case STREAM_NEW:
		call(s, addr);
		if (s->state == STREAM_CONNECTING && s->is_nonblocking)
			return -EINPROGRESS;
		break;
	case STREAM_CONNECTING:
		if (s->is_nonblocking)
			return -EALREADY;
		break;
	case STREAM_OPEN:
		return -EISCONN;
	default:
		return -EINVAL;
	}
	stream_wait(s, is_decided, UINT64_MAX);
	return s->state == STREAM_FAILED ? -s->error : 0;
}

int rsocket_connect(int fd, const struct sockaddr *addr, socklen_t length)
{
	struct rstream *s = stream_get(fd);
	int rc;

	(void)length;
	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	rc = connect_stream(s, addr);
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	return stream_return(rc);
}

void stream_copy_address(const struct sockaddr *from, struct sockaddr *to, socklen_t *length)
{
	socklen_t size = from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						       sizeof(struct sockaddr_in);

	memcpy(to, from, *length < size ? *length : size);
	*length = size;
}

/* Context: lock held. */
static void say_end(struct rstream *s, enum flow_end end)
{
	uint64_t until_ms = stream_now_ms() + CLOSE_MS;

	while (s->state == STREAM_OPEN && !flow_end(s, end))
		if (stream_wait(s, flow_is_idle, until_ms))
			return;
	stream_wait(s, flow_is_idle, until_ms);
	if (end == FLOW_DISCONNECT && s->state == STREAM_OPEN)
		s->state = STREAM_ENDED;
}

static void shut(struct rstream *s, int how)
{
	if (how != SHUT_WR)
		s->is_readable = false;
	if (how != SHUT_RD && s->is_writable) {
		s->is_writable = false;
		say_end(s, s->is_readable ? FLOW_SHUTDOWN : FLOW_DISCONNECT);
	} else if (how == SHUT_RD && !s->is_writable) {
		say_end(s, FLOW_DISCONNECT);
	}
}

int rsocket_shutdown(int fd, int how)
{
	struct rstream *s = stream_get(fd);
	int rc = 0;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	if (s->state == STREAM_OPEN)
		shut(s, how);
	else if (s->state != STREAM_ENDED)
		rc = -ENOTCONN;
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	return stream_return(rc);
}

int rsocket_close(int fd)
{
	struct rstream *s = stream_withdraw(fd);

	if (!s)
		return -1;
	stream_stop_listening(s);
	pthread_mutex_lock(&s->lock);
	if (s->state == STREAM_OPEN) {
		s->is_readable = s->is_writable = false;
		say_end(s, FLOW_DISCONNECT);
	}
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	return 0;
}

int rsocket_getpeername(int fd, struct sockaddr *addr, socklen_t *length)
{
	struct rstream *s = stream_get(fd);
	int rc = 0;

	if (!s)
		return -1;
	if (s->state == STREAM_NEW || s->state == STREAM_LISTENING)
		rc = -ENOTCONN;
	else
		stream_copy_address(rdma_get_peer_addr(s->id), addr, length);
	stream_put(s);
	return stream_return(rc);
}

int rsocket_getsockname(int fd, struct sockaddr *addr, socklen_t *length)
{
	struct rstream *s = stream_get(fd);

	if (!s)
		return -1;
	stream_copy_address(rdma_get_local_addr(s->id), addr, length);
	stream_put(s);
	return 0;
}
