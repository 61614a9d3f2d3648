/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/reader.h"
#include "apps/common/cmd.h"
#include "apps/common/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PART (64u << 20)
#define BUFFER (1u << 20)
#define PAGE 4096

void reader_fail(struct reader *r, const char *path, int error)
{
	pthread_mutex_lock(&r->lock);
	progress_clear(&r->progress);
	failure(r->cmd, "%s: %s", path, strerror(error));
	r->failures++;
	pthread_mutex_unlock(&r->lock);
}

static void note_read(struct reader *r, uint64_t bytes)
{
	pthread_mutex_lock(&r->lock);
	r->progress.done += bytes;
	progress_show(&r->progress);
	pthread_mutex_unlock(&r->lock);
}

/* Return: 0, also where the file has become shorter; or a negative errno. */
static int read_range(struct reader *r, int fd, char *buffer, const struct reader_part *part)
{
	uint64_t done = 0;

	while (done < part->length && !stop_requested()) {
		ssize_t got = pread(fd, buffer, BUFFER, (off_t)(part->offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : 0;
		done += (uint64_t)got;
		note_read(r, (uint64_t)got);
	}
	return 0;
}

static void read_part(struct reader *r, char *buffer, const struct reader_part *part)
{
	int fd = open(part->path, r->flags | O_NOFOLLOW | O_CLOEXEC), rc;

	if (fd < 0) {
		if (errno != ENOENT) /* removed meanwhile */
			reader_fail(r, part->path, errno);
		return;
	}
	rc = read_range(r, fd, buffer, part);
	close(fd);
	if (rc && !stop_requested())
		reader_fail(r, part->path, -rc);
}

/* Return: whether there is another part. */
static bool take_part(struct reader *r, struct reader_part *part)
{
	bool found;

	pthread_mutex_lock(&r->lock);
	while (!r->nr && !r->ends)
		pthread_cond_wait(&r->changed, &r->lock);
	found = r->nr;
	if (found) {
		*part = r->queue[r->first];
		r->first = (r->first + 1) % READER_QUEUE;
		r->nr--;
		pthread_cond_broadcast(&r->changed);
	}
	pthread_mutex_unlock(&r->lock);
	return found;
}

/* After a request for a stop the threads empty the queue, without reading. */
static void *run(void *arg)
{
	struct reader *r = arg;
	char *buffer = aligned_alloc(PAGE, BUFFER);
	struct reader_part part;

	while (take_part(r, &part)) {
		if (!buffer)
			reader_fail(r, part.path, ENOMEM);
		else if (!stop_requested())
			read_part(r, buffer, &part);
		free(part.path);
	}
	free(buffer);
	return NULL;
}

int reader_start(struct reader *r, const char *cmd, int flags, unsigned int threads)
{
	int rc = 0;

	*r = (struct reader){ .cmd = cmd, .flags = flags };
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	progress_begin(&r->progress);
	while (!rc && r->threads < threads) {
		rc = -pthread_create(&r->thread[r->threads], NULL, run, r);
		r->threads += !rc;
	}
	return rc && !r->threads ? rc : 0; /* fewer threads read, too */
}

static int add_part(struct reader *r, const char *path, uint64_t offset, uint64_t length)
{
	struct reader_part part = { .path = strdup(path), .offset = offset, .length = length };

	if (!part.path)
		return -ENOMEM;
	pthread_mutex_lock(&r->lock);
	while (r->nr == READER_QUEUE)
		pthread_cond_wait(&r->changed, &r->lock);
	r->queue[(r->first + r->nr++) % READER_QUEUE] = part;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	return 0;
}

int reader_add(struct reader *r, const char *path, uint64_t size)
{
	int rc = 0;

	for (uint64_t at = 0; !rc && at < size && !stop_requested(); at += PART)
		rc = add_part(r, path, at, size - at < PART ? size - at : PART);
	return rc;
}

void reader_finish(struct reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->ends = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	for (unsigned int i = 0; i < r->threads; i++)
		pthread_join(r->thread[i], NULL);
	progress_clear(&r->progress);
}
