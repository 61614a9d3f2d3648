// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Options of streams, and buffers that the peer may write.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "stream.h"

/* Of rdma/rsocket.h, level SOL_RDMA. */
enum { LEVEL_RDMA = 0x10000 };
enum { RDMA_OPTION_SQSIZE, RDMA_OPTION_RQSIZE, RDMA_OPTION_INLINE, RDMA_OPTION_IOMAPSIZE };

int rsocket_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
	STANDS_FOR(rsetsockopt);
int rsocket_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
	STANDS_FOR(rgetsockopt);
int rsocket_fcntl(int fd, int command, ...) STANDS_FOR(rfcntl);
off_t rsocket_iomap(int fd, void *bytes, size_t size, int prot, int flags, off_t offset)
	STANDS_FOR(riomap);
int rsocket_iounmap(int fd, void *bytes, size_t size) STANDS_FOR(riounmap);

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Sizes are fixed by the connection. Halves stay even. */
static int set_size(const struct rstream *s, uint32_t *size, uint32_t value)
{
	if (s->state != STREAM_NEW && s->state != STREAM_LISTENING)
		return -EINVAL;
	*size = clamp(value, STREAM_BUFFER_MIN, STREAM_BUFFER_MAX) & ~63u;
	return 0;
}

static int set_id_option(struct rstream *s, int option, int value, int *kept)
{
	*kept = value;
	return rdma_set_option(s->id, RDMA_OPTION_ID, option, &value, sizeof(value)) ? -errno : 0;
}

static int set_socket_option(struct rstream *s, int name, int value)
{
	switch (name) {
	case SO_REUSEADDR:
		return set_id_option(s, RDMA_OPTION_ID_REUSEADDR, value, &s->reuse);
	case SO_RCVBUF:
		return set_size(s, &s->in_size, (uint32_t)value);
	case SO_SNDBUF:
		return set_size(s, &s->out_size, (uint32_t)value);
	case SO_LINGER: /* rclose() always waits, for a while */
	case SO_KEEPALIVE: /* softnic notices the death of a peer */
	case SO_OOBINLINE:
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_rdma_option(struct rstream *s, int name, uint32_t value)
{
	if (s->state != STREAM_NEW && s->state != STREAM_LISTENING)
		return -EINVAL;
	switch (name) {
	case RDMA_OPTION_SQSIZE:
	case RDMA_OPTION_RQSIZE:
		s->depth = clamp(value, STREAM_DEPTH_MIN, STREAM_DEPTH_MAX);
		return 0;
	case RDMA_OPTION_INLINE:
		s->inline_max = value;
		return 0;
	case RDMA_OPTION_IOMAPSIZE:
		s->maps_max = clamp(value, 0, STREAM_IOMAPS_MAX);
		return 0;
	default:
		return -ENOTSUP;
	}
}

static int set_option(struct rstream *s, int level, int name, int value)
{
	switch (level) {
	case SOL_SOCKET:
		return set_socket_option(s, name, value);
	case IPPROTO_TCP:
		if (name != TCP_NODELAY)
			return -ENOTSUP;
		s->nodelay = value; /* nothing is ever held back */
		return 0;
	case IPPROTO_IPV6:
		return name == IPV6_V6ONLY ?
			       set_id_option(s, RDMA_OPTION_ID_AFONLY, value, &s->v6only) :
			       -ENOTSUP;
	case LEVEL_RDMA:
		return set_rdma_option(s, name, (uint32_t)value);
	default:
		return -ENOTSUP;
	}
}

int rsocket_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	struct rstream *s = stream_get(fd);
	int rc = -EINVAL;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	if (length >= sizeof(int))
		rc = set_option(s, level, name, *(const int *)value);
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	return stream_return(rc);
}

/* Return: the value, or a negative errno. */
static int get_socket_option(struct rstream *s, int name)
{
	int error = s->error;

	switch (name) {
	case SO_ERROR:
		stream_advance(s);
		error = s->error;
		s->error = 0;
		return error;
	case SO_REUSEADDR:
		return s->reuse;
	case SO_TYPE:
		return SOCK_STREAM;
	case SO_RCVBUF:
		return (int)s->in_size;
	case SO_SNDBUF:
		return (int)s->out_size;
	case SO_ACCEPTCONN:
		return s->state == STREAM_LISTENING;
	default:
		return -ENOTSUP;
	}
}

static int get_rdma_option(const struct rstream *s, int name)
{
	switch (name) {
	case RDMA_OPTION_SQSIZE:
	case RDMA_OPTION_RQSIZE:
		return (int)s->depth;
	case RDMA_OPTION_INLINE:
		return (int)s->inline_max;
	case RDMA_OPTION_IOMAPSIZE:
		return (int)s->maps_max;
	default:
		return -ENOTSUP;
	}
}

static int get_option(struct rstream *s, int level, int name)
{
	switch (level) {
	case SOL_SOCKET:
		return get_socket_option(s, name);
	case IPPROTO_TCP:
		return name == TCP_NODELAY ? s->nodelay :
		       name == TCP_MAXSEG  ? STREAM_CHUNK_MAX / 2 :
					     -ENOTSUP;
	case IPPROTO_IPV6:
		return name == IPV6_V6ONLY ? s->v6only : -ENOTSUP;
	case LEVEL_RDMA:
		return get_rdma_option(s, name);
	default:
		return -ENOTSUP;
	}
}

int rsocket_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	struct rstream *s = stream_get(fd);
	int rc = -EINVAL;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	if (*length >= sizeof(int))
		rc = get_option(s, level, name);
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	if (rc < 0)
		return stream_return(rc);
	*(int *)value = rc;
	*length = sizeof(int);
	return 0;
}

static int control_file(struct rstream *s, int command, int value)
{
	switch (command) {
	case F_GETFL:
		return O_RDWR | (s->is_nonblocking ? O_NONBLOCK : 0);
	case F_SETFL:
		s->is_nonblocking = value & O_NONBLOCK;
		return 0;
	case F_GETFD:
		return s->fd_flags;
	case F_SETFD:
		s->fd_flags = value;
		return 0;
	default:
		return -ENOTSUP;
	}
}

int rsocket_fcntl(int fd, int command, ...)
{
	struct rstream *s = stream_get(fd);
	bool has_value = command == F_SETFL || command == F_SETFD;
	va_list list;
	int rc;

	if (!s)
		return -1;
	va_start(list, command);
	pthread_mutex_lock(&s->lock);
	rc = control_file(s, command, has_value ? va_arg(list, int) : 0);
	pthread_mutex_unlock(&s->lock);
	va_end(list);
	stream_put(s);
	return stream_return(rc);
}

/* A free place in the peer's table, or -1. */
static int free_place(const struct rstream *s)
{
	const struct stream_map *map;
	int place;

	for (place = 0; place < (int)s->peer_maps; place++) {
		TAILQ_FOREACH(map, &s->maps, link)
			if (map->index == place)
				break;
		if (!map)
			return place;
	}
	return -1;
}

/* Context: lock held. */
static int map_buffer(struct rstream *s, void *bytes, size_t size, int prot, uint64_t offset)
{
	struct stream_map *map;

	if (!s->id->pd || (prot & ~PROT_WRITE) || size > UINT32_MAX)
		return -EINVAL;
	map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	map->offset = offset;
	map->index = prot & PROT_WRITE ? free_place(s) : -1;
	if ((prot & PROT_WRITE) && map->index < 0) {
		free(map);
		return -ENOMEM;
	}
	map->mr = ibv_reg_mr(s->id->pd, bytes, size,
			     IBV_ACCESS_LOCAL_WRITE |
				     (prot & PROT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (!map->mr) {
		free(map);
		return -errno;
	}
	TAILQ_INSERT_TAIL(&s->maps, map, link);
	return 0;
}

off_t rsocket_iomap(int fd, void *bytes, size_t size, int prot, int flags, off_t offset)
{
	struct rstream *s = stream_get(fd);
	int rc;

	(void)flags;
	if (!s)
		return -1;
	if (offset == -1)
		offset = (off_t)(uintptr_t)bytes;
	pthread_mutex_lock(&s->lock);
	rc = map_buffer(s, bytes, size, prot, (uint64_t)offset);
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	return rc ? stream_return(rc) : offset;
}

int rsocket_iounmap(int fd, void *bytes, size_t size)
{
	struct rstream *s = stream_get(fd);
	struct stream_map *map;

	if (!s)
		return -1;
	pthread_mutex_lock(&s->lock);
	TAILQ_FOREACH(map, &s->maps, link)
		if (map->mr->addr == bytes && map->mr->length == size)
			break;
	if (map) {
		TAILQ_REMOVE(&s->maps, map, link);
		ibv_dereg_mr(map->mr);
		free(map);
	}
	pthread_mutex_unlock(&s->lock);
	stream_put(s);
	return stream_return(map ? 0 : -EINVAL);
}
