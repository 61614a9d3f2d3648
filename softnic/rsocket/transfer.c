// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Sending and receiving bytes, with the calls of sockets. Flags other than MSG_DONTWAIT, MSG_PEEK
 * and MSG_WAITALL have no effect.
 */
#include <errno.h>
#include <sys/uio.h>

#include "stream.h"

ssize_t rsocket_recv(int fd, void *bytes, size_t size, int flags) STANDS_FOR(rrecv);
ssize_t rsocket_recvfrom(int fd, void *bytes, size_t size, int flags, struct sockaddr *from,
			 socklen_t *length) STANDS_FOR(rrecvfrom);
ssize_t rsocket_recvmsg(int fd, struct msghdr *message, int flags) STANDS_FOR(rrecvmsg);
ssize_t rsocket_read(int fd, void *bytes, size_t size) STANDS_FOR(rread);
ssize_t rsocket_readv(int fd, const struct iovec *v, int count) STANDS_FOR(rreadv);
ssize_t rsocket_send(int fd, const void *bytes, size_t size, int flags) STANDS_FOR(rsend);
ssize_t rsocket_sendto(int fd, const void *bytes, size_t size, int flags,
		       const struct sockaddr *to, socklen_t length) STANDS_FOR(rsendto);
ssize_t rsocket_sendmsg(int fd, const struct msghdr *message, int flags) STANDS_FOR(rsendmsg);
ssize_t rsocket_write(int fd, const void *bytes, size_t size) STANDS_FOR(rwrite);
ssize_t rsocket_writev(int fd, const struct iovec *v, int count) STANDS_FOR(rwritev);
size_t rsocket_iowrite(int fd, const void *bytes, size_t size, off_t offset, int flags)
	STANDS_FOR(riowrite);

static bool is_decided(const struct rstream *s)
{
	return s->state != STREAM_CONNECTING && s->state != STREAM_ACCEPTING;
}

/* Context of all below: lock held. */
static uint64_t deadline(const struct rstream *s, int flags)
{
	return s->is_nonblocking || (flags & MSG_DONTWAIT) ? 0 : UINT64_MAX;
}

/* A program may send or receive before the connection stands. Return: 0 or a negative errno. */
static int await_connection(struct rstream *s, int flags)
{
	int rc = stream_wait(s, is_decided, deadline(s, flags));

	if (rc || s->state == STREAM_OPEN || s->state == STREAM_ENDED)
		return rc;
	return s->state == STREAM_FAILED ? -s->error : -ENOTCONN;
}

static bool may_receive(const struct rstream *s)
{
	return flow_has_bytes(s) || !s->is_readable;
}

static ssize_t receive(struct rstream *s, void *bytes, size_t size, int flags)
{
	int rc = await_connection(s, flags);
	size_t done = 0;

	while (!rc && done < size) {
		rc = stream_wait(s, may_receive, deadline(s, flags));
		if (rc || !flow_has_bytes(s))
			break;
		done += flow_receive(s, (uint8_t *)bytes + done, size - done, flags & MSG_PEEK);
		if (!(flags & MSG_WAITALL) || (flags & MSG_PEEK))
			break;
	}
	if (!done && !rc && size && s->error)
		rc = -s->error;
	return done ? (ssize_t)done : rc;
}

static ssize_t send_bytes(struct rstream *s, const void *bytes, size_t size, int flags)
{
	int rc = await_connection(s, flags), n;
	size_t done = 0;

	while (!rc && done < size) {
		rc = stream_wait(s, flow_can_send, deadline(s, flags));
		if (!rc && !s->is_writable)
			rc = s->error ? -s->error : -EPIPE;
		if (rc)
			break;
		n = flow_send(s, (const uint8_t *)bytes + done, size - done);
		if (n < 0)
			rc = n;
		else
			done += (size_t)n;
	}
	return done ? (ssize_t)done : rc;
}

/* Tell the peer of buffers that riomap() has added. */
static int tell_maps(struct rstream *s, int flags)
{
	struct stream_map *map;
	int rc = 0;

	TAILQ_FOREACH(map, &s->maps, link) {
		if (map->is_told || map->index < 0)
			continue;
		rc = stream_wait(s, flow_can_send, deadline(s, flags));
		if (!rc && !s->is_writable)
			rc = -EPIPE;
		if (!rc)
			rc = flow_tell_map(s, map);
		if (rc)
			break;
		map->is_told = true;
	}
	return rc;
}

ssize_t rsocket_recv(int fd, void *bytes, size_t size, int flags)
{
	struct rstream *s = stream_get(fd);
	ssize_t n;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	n = receive(s, bytes, size, flags);
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	if (n < 0)
		errno = (int)-n;
	return n < 0 ? -1 : n;
}

ssize_t rsocket_recvfrom(int fd, void *bytes, size_t size, int flags, struct sockaddr *from,
			 socklen_t *length)
{
	(void)from; /* as with TCP, a stream's peer is not told */
	if (length)
		*length = 0;
	return rsocket_recv(fd, bytes, size, flags);
}

ssize_t rsocket_send(int fd, const void *bytes, size_t size, int flags)
{
	struct rstream *s = stream_get(fd);
	ssize_t n;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	n = await_connection(s, flags);
	if (!n)
		n = tell_maps(s, flags);
	if (!n)
		n = send_bytes(s, bytes, size, flags);
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	if (n < 0)
		errno = (int)-n;
	return n < 0 ? -1 : n;
}

ssize_t rsocket_sendto(int fd, const void *bytes, size_t size, int flags,
		       const struct sockaddr *to, socklen_t length)
{
	(void)to;
	(void)length;
	return rsocket_send(fd, bytes, size, flags);
}

/* The first piece may wait, the others only take what is there. */
static ssize_t receive_pieces(int fd, const struct iovec *v, size_t count, int flags)
{
	ssize_t done = 0, n;
	size_t i;

	for (i = 0; i < count; i++) {
		n = rsocket_recv(fd, v[i].iov_base, v[i].iov_len,
				 done ? flags | MSG_DONTWAIT : flags);
		if (n < 0)
			return done ? done : n;
		done += n;
		if ((size_t)n < v[i].iov_len)
			break;
	}
	return done;
}

static ssize_t send_pieces(int fd, const struct iovec *v, size_t count, int flags)
{
	ssize_t done = 0, n;
	size_t i;

	for (i = 0; i < count; i++) {
		n = rsocket_send(fd, v[i].iov_base, v[i].iov_len, flags);
		if (n < 0)
			return done ? done : n;
		done += n;
		if ((size_t)n < v[i].iov_len)
			break;
	}
	return done;
}

ssize_t rsocket_recvmsg(int fd, struct msghdr *message, int flags)
{
	message->msg_namelen = 0;
	message->msg_controllen = 0;
	message->msg_flags = 0;
	return receive_pieces(fd, message->msg_iov, message->msg_iovlen, flags);
}

ssize_t rsocket_sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (message->msg_controllen) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return send_pieces(fd, message->msg_iov, message->msg_iovlen, flags);
}

ssize_t rsocket_read(int fd, void *bytes, size_t size)
{
	return rsocket_recv(fd, bytes, size, 0);
}

ssize_t rsocket_readv(int fd, const struct iovec *v, int count)
{
	return receive_pieces(fd, v, (size_t)count, 0);
}

ssize_t rsocket_write(int fd, const void *bytes, size_t size)
{
	return rsocket_send(fd, bytes, size, 0);
}

ssize_t rsocket_writev(int fd, const struct iovec *v, int count)
{
	return send_pieces(fd, v, (size_t)count, 0);
}

/* The peer's buffer that has @offset, as far as we know. Return: the bytes from there on. */
static uint64_t find_map(const struct rstream *s, uint64_t offset, struct stream_iomap *map)
{
	uint32_t i;

	for (i = 0; i < s->maps_max; i++) {
		*map = s->shared->iomaps[i];
		if (offset >= map->offset && offset - map->offset < map->to.length)
			return map->to.length - (offset - map->offset);
	}
	return 0;
}

static ssize_t write_afar(struct rstream *s, const uint8_t *bytes, size_t size, uint64_t offset,
			  int flags)
{
	struct stream_iomap map;
	int rc = await_connection(s, flags), n;
	size_t done = 0;
	uint64_t room;

	if (!rc)
		rc = tell_maps(s, flags);
	while (!rc && done < size) {
		rc = stream_wait(s, flow_can_send, deadline(s, flags));
		if (!rc && !s->is_writable)
			rc = -EPIPE;
		room = rc ? 0 : find_map(s, offset + done, &map);
		if (!room)
			break;
		n = flow_write(s, bytes + done, size - done < room ? size - done : room, &map.to,
			       offset + done - map.offset);
		if (n < 0)
			rc = n;
		else
			done += (size_t)n;
	}
	return done || !rc ? (ssize_t)done : rc;
}

size_t rsocket_iowrite(int fd, const void *bytes, size_t size, off_t offset, int flags)
{
	struct rstream *s = stream_get(fd);
	ssize_t n;

	if (!s)
		return (size_t)-1;
	pthread_mutex_lock(&s->lock);
	n = write_afar(s, bytes, size, (uint64_t)offset, flags);
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	if (n < 0)
		errno = (int)-n;
	return n < 0 ? (size_t)-1 : (size_t)n;
}
