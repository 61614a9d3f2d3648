/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file's position is the kernel's, because duplicates and children share it. A call at the
 * position first moves it by lseek(): that claims the range in one step, whatever other threads and
 * processes do. The unused rest is given back.
 */
#include "preload/files/move.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>

#include "preload/files/count.h"
#include "preload/files/real.h"
#include "preload/files/table.h"

#define KERNEL_BYTES_MAX 0x7ffff000u /* of one call of the kernel's */

/* Return: 0: nothing to move, or not valid, which the kernel knows best. */
static size_t total(const struct iovec *iov, int nr)
{
	size_t length = 0;

	if (nr <= 0 || nr > IOV_MAX)
		return 0;
	for (int i = 0; i < nr; i++) {
		if (iov[i].iov_len > KERNEL_BYTES_MAX - length)
			return 0;
		length += iov[i].iov_len;
	}
	return length;
}

static bool claim(int fd, size_t length, off_t *offset)
{
	off_t end = lseek(fd, (off_t)length, SEEK_CUR);

	*offset = end - (off_t)length;
	return end >= 0;
}

static void give_back(int fd, size_t length)
{
	if (length)
		(void)lseek(fd, -(off_t)length, SEEK_CUR);
}

/* The kernel moves what is left from byte @from on. Return: bytes in all, or -1. */
static ssize_t finish(int fd, const struct iovec *iov, int nr, off_t offset, size_t from,
		      bool write)
{
	size_t done = from, before = 0;

	for (int i = 0; i < nr; before += iov[i++].iov_len) {
		size_t skip = done - before;
		ssize_t n;

		if (skip >= iov[i].iov_len)
			continue;
		if (write)
			n = real()->pwrite(fd, (char *)iov[i].iov_base + skip,
					   iov[i].iov_len - skip, offset + (off_t)done);
		else
			n = real()->pread(fd, (char *)iov[i].iov_base + skip,
					  iov[i].iov_len - skip, offset + (off_t)done);
		if (n < 0)
			return done ? (ssize_t)done : -1;
		done += (size_t)n;
		if ((size_t)n < iov[i].iov_len - skip)
			break;
	}
	return (ssize_t)done;
}

/*
 * The last steps before bytes move. A number that has another file by now is the kernel's. This is
 * a cancellation point, as the kernel's call would be.
 */
static bool begin(int fd, const struct grant *grant, size_t length, bool at_position,
		  off_t *offset)
{
	pthread_testcancel();
	if (at_position && !claim(fd, length, offset))
		return false;
	if (table_holds(fd, grant))
		return true;
	if (at_position)
		give_back(fd, length);
	table_forget(fd);
	return false;
}

static void end(int fd, size_t length, bool at_position, ssize_t done)
{
	if (at_position)
		give_back(fd, length - (done < 0 ? 0 : (size_t)done));
}

bool move_read(int fd, const struct iovec *iov, int nr, off_t offset, bool at_position,
	       ssize_t *done)
{
	const size_t length = total(iov, nr);
	const struct bytes bytes = { iov, nr, 0 };
	int saved = errno;
	struct grant grant;
	enum lane_use use;
	size_t moved;

	if (!length || offset < 0 || !table_find(fd, FILES_MAY_READ, &grant) ||
	    !begin(fd, &grant, length, at_position, &offset)) {
		errno = saved;
		return false;
	}
	use = lane_read(&grant, bytes, length, offset, &moved);
	if (use == LANE_STALE)
		table_forget(fd);
	*done = (ssize_t)moved;
	if (use != LANE_MOVED)
		*done = finish(fd, iov, nr, offset, moved, false);
	count(use == LANE_MOVED ? COUNT_READ : COUNT_KERNEL);
	if (*done < 0)
		saved = errno;
	end(fd, length, at_position, *done);
	errno = saved;
	return true;
}

/* Whether a descriptor writes where the call says, and waits for no commit. */
static bool is_plain(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY &&
	       !(flags & (O_APPEND | O_DSYNC | O_SYNC));
}

bool move_write(int fd, const struct iovec *iov, int nr, off_t offset, bool at_position,
		ssize_t *done)
{
	const size_t length = total(iov, nr);
	const struct bytes bytes = { iov, nr, 0 };
	int saved = errno, error = 0;
	struct grant grant;
	enum lane_use use;
	size_t moved;

	if (!length || length > FILES_SLOT_BYTES || offset < 0 ||
	    !table_find(fd, FILES_MAY_WRITE, &grant) || table_grows(fd) || !is_plain(fd) ||
	    !begin(fd, &grant, length, at_position, &offset)) {
		errno = saved;
		return false;
	}
	use = lane_write(&grant, bytes, length, offset, &moved, &error);
	if (use == LANE_STALE)
		table_forget(fd);
	if (use == LANE_REFUSED)
		table_note_growth(fd);
	*done = (ssize_t)moved;
	if (use != LANE_MOVED)
		*done = real()->pwritev(fd, iov, nr, offset);
	else if (error)
		*done = -1;
	count(use == LANE_MOVED ? COUNT_WRITE : COUNT_KERNEL);
	if (*done < 0)
		saved = error ? error : errno;
	end(fd, length, at_position, *done);
	errno = saved;
	return true;
}
