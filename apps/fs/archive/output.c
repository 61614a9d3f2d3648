/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/archive/output.h"
#include "apps/common/cmd.h"
#include "apps/fs/folder.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define BUFFER (1u << 20)
#define SAVE_NS (2 * WEIR_NS_PER_S)
#define TITLE "weir-export 1 "

static int write_all(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t put = write(fd, bytes, length);

		if (put < 0 && errno != EINTR)
			return -errno;
		bytes += put > 0 ? put : 0;
		length -= put > 0 ? (size_t)put : 0;
	}
	return 0;
}

static int flush(struct output *o)
{
	if (!o->error)
		o->error = write_all(o->fd, o->buffer, o->held);
	o->held = 0;
	return o->error;
}

int output_write(struct output *o, const void *bytes, size_t length)
{
	const char *from = bytes;

	o->at += length;
	while (length && !o->error) {
		size_t part = BUFFER - o->held < length ? BUFFER - o->held : length;

		memcpy(o->buffer + o->held, from, part);
		o->held += part;
		from += part;
		length -= part;
		if (o->held == BUFFER)
			flush(o);
	}
	return o->error;
}

int output_rewind(struct output *o, uint64_t at)
{
	if (flush(o))
		return o->error;
	if (ftruncate(o->fd, (off_t)at) || lseek(o->fd, (off_t)at, SEEK_SET) < 0)
		o->error = -errno;
	o->at = at;
	return o->error;
}

static int add_entry(struct output *o, const char *path, const uint8_t *digest,
		     const struct output_entry *entry)
{
	if (o->sums.nr == o->room) {
		size_t room = o->room ? 2 * o->room : 256;
		struct output_entry *entries = realloc(o->entries, room * sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		o->entries = entries;
		o->room = room;
	}
	o->entries[o->sums.nr] = *entry;
	return sums_add(&o->sums, path, digest) ? 0 : -ENOMEM;
}

int output_note(struct output *o, const char *path, const struct stat *st, const uint8_t *digest)
{
	struct output_entry entry = {
		.end = o->at,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.ctime_s = st->st_ctim.tv_sec,
		.ctime_ns = st->st_ctim.tv_nsec,
	};
	int rc = add_entry(o, path, digest, &entry);

	if (rc || !o->index)
		return rc;
	fprintf(o->pending, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " ",
		entry.end, entry.ino, entry.size, entry.ctime_s, entry.ctime_ns);
	rc = sum_print(o->pending, path, digest);
	if (!rc && weir_now_ns() - o->saved_ns > SAVE_NS)
		rc = output_save(o);
	return rc;
}

int output_save(struct output *o)
{
	int rc = flush(o);

	if (rc || !o->pending)
		return rc;
	if (fdatasync(o->fd))
		rc = -errno;
	if (fclose(o->pending) && !rc)
		rc = -errno;
	if (!rc)
		rc = write_all(fileno(o->index), o->text, o->text_length);
	free(o->text);
	o->text = NULL;
	o->pending = open_memstream(&o->text, &o->text_length);
	o->saved_ns = weir_now_ns();
	return rc || o->pending ? rc : -ENOMEM;
}

int output_finish(struct output *o)
{
	int rc = flush(o);

	if (rc || !o->index)
		return rc;
	if (fsync(o->fd) || rename(o->part, o->name) || unlink(o->index_name))
		return -errno;
	return folder_sync(o->name);
}

/* Takes over the lines of an earlier run whose entries are in the archive. */
static int read_index(struct output *o, uint64_t length, long *good)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t got;
	int rc = 0;

	*good = ftell(o->index);
	while (!rc && (got = getline(&line, &room, o->index)) > 0 && line[got - 1] == '\n') {
		struct output_entry entry;
		struct sum sum;
		int begins = 0;

		line[got - 1] = 0;
		if (sscanf(line,
			   "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " %n",
			   &entry.end, &entry.ino, &entry.size, &entry.ctime_s, &entry.ctime_ns,
			   &begins) != 5 ||
		    !sum_parse(line + begins, &sum) || entry.end > length)
			break;
		rc = add_entry(o, sum.path, sum.has_digest ? sum.digest : NULL, &entry);
		o->at = entry.end;
		*good = ftell(o->index);
	}
	free(line);
	return rc;
}

/* Return: whether the index is of an export of @tree; its next line comes next. */
static bool check_title(struct output *o, const char *tree)
{
	char *line = NULL;
	size_t room = 0, begins = strlen(TITLE);
	ssize_t got = getline(&line, &room, o->index);
	bool is_good = got > (ssize_t)begins && line[got - 1] == '\n' &&
		       !strncmp(line, TITLE, begins);
	struct sum sum;

	if (is_good) {
		line[got - 1] = 0;
		is_good = sum_parse(line + begins, &sum) && !strcmp(sum.path, tree);
	}
	free(line);
	return is_good;
}

static int resume(struct output *o, const char *tree, uint64_t length)
{
	long good;
	int rc;

	if (!check_title(o, tree))
		return failure(o->cmd,
			       "%s is not an unfinished export of %s: remove it, or give --restart",
			       o->part, tree);
	rc = read_index(o, length, &good);
	if (!rc)
		rc = sums_sort(&o->sums);
	if (!rc)
		rc = output_rewind(o, o->at);
	if (!rc && (ftruncate(fileno(o->index), good) || fseek(o->index, good, SEEK_SET) ||
		    lseek(fileno(o->index), good, SEEK_SET) < 0))
		rc = -errno;
	return rc ? failure(o->cmd, "%s: %s", o->part, strerror(-rc)) : EXIT_OK;
}

static int begin(struct output *o, const char *tree)
{
	int rc = output_rewind(o, 0);

	if (!rc && (ftruncate(fileno(o->index), 0) || fseek(o->index, 0, SEEK_SET)))
		rc = -errno;
	if (rc)
		return failure(o->cmd, "%s: %s", o->part, strerror(-rc));
	fputs(TITLE, o->index);
	if (sum_print(o->index, tree, NULL) || fflush(o->index))
		return failure(o->cmd, "%s: %s", o->index_name, strerror(errno));
	return EXIT_OK;
}

static int open_part(struct output *o)
{
	int fd;

	if (snprintf(o->part, sizeof(o->part), "%s.part", o->name) >= (int)sizeof(o->part) ||
	    snprintf(o->index_name, sizeof(o->index_name), "%s.part.index", o->name) >=
		    (int)sizeof(o->index_name))
		return failure(o->cmd, "%s: %s", o->name, strerror(ENAMETOOLONG));
	/* An archive has what the modes of files hide. */
	o->fd = open(o->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (o->fd < 0)
		return failure(o->cmd, "%s: %s", o->part, strerror(errno));
	if (flock(o->fd, LOCK_EX | LOCK_NB))
		return failure(o->cmd, "%s: another export writes it", o->part);
	fd = open(o->index_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	o->index = fd < 0 ? NULL : fdopen(fd, "r+");
	if (!o->index)
		return failure(o->cmd, "%s: %s", o->index_name, strerror(errno));
	o->pending = open_memstream(&o->text, &o->text_length);
	return o->pending ? EXIT_OK : failure(o->cmd, "out of memory");
}

static int open_file(struct output *o, const char *tree, bool restart)
{
	int status = open_part(o);
	struct stat archive, index;

	if (status)
		return status;
	if (fstat(o->fd, &archive) || fstat(fileno(o->index), &index))
		return failure(o->cmd, "%s: %s", o->part, strerror(errno));
	if (restart || (!archive.st_size && !index.st_size))
		return begin(o, tree);
	return resume(o, tree, (uint64_t)archive.st_size);
}

int output_open(struct output *o, const char *name, const char *tree, bool overwrite, bool restart)
{
	o->name = name;
	o->fd = STDOUT_FILENO;
	o->saved_ns = weir_now_ns();
	o->buffer = malloc(BUFFER);
	if (!o->buffer)
		return failure(o->cmd, "out of memory");
	if (strcmp(name, "-"))
		return !overwrite && !access(name, F_OK) ?
			       failure(o->cmd, "%s exists: --overwrite replaces it", name) :
			       open_file(o, tree, restart);
	if (isatty(o->fd))
		return usage_error(o->cmd, "an archive is no text for a terminal: name a FILE");
	return EXIT_OK;
}

void output_close(struct output *o)
{
	if (o->pending)
		fclose(o->pending);
	if (o->index)
		fclose(o->index);
	if (o->fd > STDERR_FILENO)
		close(o->fd);
	free(o->text);
	free(o->buffer);
	free(o->entries);
	sums_free(&o->sums);
}
