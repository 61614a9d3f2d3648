/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/archive/journal.h"
#include "apps/common/cmd.h"
#include "apps/fs/archive/archive.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SAVE_NS (WEIR_NS_PER_S / 2)
#define TITLE "weir-import 1\n"

static int append(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t put = write(fd, text, length);

		if (put < 0 && errno != EINTR)
			return -errno;
		text += put > 0 ? put : 0;
		length -= put > 0 ? (size_t)put : 0;
	}
	return 0;
}

static int begin_pending(struct journal *j)
{
	free(j->text);
	j->text = NULL;
	j->saved_ns = weir_now_ns();
	j->pending = open_memstream(&j->text, &j->length);
	return j->pending ? 0 : -ENOMEM;
}

/* Reads whole lines. A part of a line at the end is of a run that was killed. */
static int read_lines(struct journal *j, FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t got = getline(&line, &room, file);
	off_t good = got;
	int rc = got > 0 && !strcmp(line, TITLE) ? 0 : -EBADMSG;

	while (!rc && (got = getline(&line, &room, file)) > 0 && line[got - 1] == '\n') {
		struct sum sum;

		line[got - 1] = 0;
		if (!sum_parse(line, &sum))
			rc = -EBADMSG;
		else if (!sums_add(&j->done, sum.path, sum.has_digest ? sum.digest : NULL))
			rc = -ENOMEM;
		good += got;
	}
	free(line);
	j->earlier = j->done.nr;
	if (!rc && (ftruncate(j->fd, good) || lseek(j->fd, good, SEEK_SET) < 0))
		rc = -errno;
	return rc;
}

static int resume(struct journal *j)
{
	int fd = dup(j->fd), rc = -errno;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (file) {
		rc = read_lines(j, file);
		fclose(file);
	} else if (fd >= 0) {
		close(fd);
	}
	return rc;
}

int journal_open(struct journal *j, const char *cmd, bool restart, bool *is_new)
{
	off_t length;
	int rc;

	j->fd = open(ARCHIVE_JOURNAL, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (j->fd < 0)
		return failure(cmd, "%s: %s", ARCHIVE_JOURNAL, strerror(errno));
	if (flock(j->fd, LOCK_EX | LOCK_NB))
		return failure(cmd, "%s: %s", ARCHIVE_JOURNAL,
			       errno == EWOULDBLOCK ? "another import is under way" :
						      strerror(errno));
	length = lseek(j->fd, 0, SEEK_END);
	*is_new = restart || length <= 0;
	rc = begin_pending(j);
	if (!rc && (length < 0 || lseek(j->fd, 0, SEEK_SET) < 0 ||
		    (*is_new && ftruncate(j->fd, 0))))
		rc = -errno;
	if (!rc)
		rc = *is_new ? append(j->fd, TITLE, strlen(TITLE)) : resume(j);
	if (rc == -EBADMSG)
		return failure(cmd, "%s is not the journal of an import: remove it, or give "
				    "--restart", ARCHIVE_JOURNAL);
	return rc ? failure(cmd, "%s: %s", ARCHIVE_JOURNAL, strerror(-rc)) : EXIT_OK;
}

int journal_note(struct journal *j, const char *path, const uint8_t *digest)
{
	int rc = sums_add(&j->done, path, digest) ? sum_print(j->pending, path, digest) : -ENOMEM;

	if (!rc && weir_now_ns() - j->saved_ns > SAVE_NS)
		rc = journal_save(j);
	return rc;
}

int journal_save(struct journal *j)
{
	int rc;

	if (!j->pending)
		return 0;
	rc = fclose(j->pending) ? -errno : append(j->fd, j->text, j->length);
	j->pending = NULL;
	return rc ? rc : begin_pending(j);
}

int journal_remove(struct journal *j)
{
	(void)j;
	return unlink(ARCHIVE_JOURNAL) ? -errno : 0;
}

void journal_close(struct journal *j)
{
	if (j->pending)
		fclose(j->pending);
	if (j->fd >= 0)
		close(j->fd);
	free(j->text);
	sums_free(&j->done);
}
