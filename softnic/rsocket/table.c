// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Streams by descriptor. A descriptor is that of the id's event channel, so the kernel gives it to
 * nothing else.
 */
#include <errno.h>

#include "stream.h"

enum { DESCRIPTORS = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rstream *streams[DESCRIPTORS];

struct rstream *stream_get(int fd)
{
	struct rstream *s = NULL;

	pthread_mutex_lock(&lock);
	if (fd >= 0 && fd < DESCRIPTORS)
		s = streams[fd];
	if (s)
		s->users++;
	pthread_mutex_unlock(&lock);
	if (!s)
		errno = EBADF;
	return s;
}

void stream_put(struct rstream *s)
{
	bool is_last;

	pthread_mutex_lock(&lock);
	is_last = !--s->users;
	pthread_mutex_unlock(&lock);
	if (is_last)
		stream_free(s);
}

int stream_publish(struct rstream *s)
{
	int fd = s->id->channel->fd;

	if (fd >= DESCRIPTORS) {
		errno = EMFILE;
		return -1;
	}
	pthread_mutex_lock(&lock);
	s->fd = fd;
	s->users = 1;
	streams[fd] = s;
	pthread_mutex_unlock(&lock);
	return fd;
}

struct rstream *stream_withdraw(int fd)
{
	struct rstream *s = NULL;

	pthread_mutex_lock(&lock);
	if (fd >= 0 && fd < DESCRIPTORS) {
		s = streams[fd];
		streams[fd] = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (!s)
		errno = EBADF;
	return s;
}
