/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The C library's functions that this library stands before. Each does the call past the kernel if
 * it can, else calls the C library's. See docs/explanation/files.md for those that are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "preload/files/count.h"
#include "preload/files/move.h"
#include "preload/files/real.h"
#include "preload/files/table.h"
#include "preload/next.h"
#include "wire/files.h"

#define ALIAS(of) __attribute__((visibility("default"), alias(#of)))

/* Names of the C library's headers for calls whose buffer's size the compiler knows. */
ssize_t __read_chk(int fd, void *buffer, size_t length, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t length, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t length, off_t offset, size_t room);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
void __chk_fail(void) __attribute__((noreturn));

EXPORT ssize_t read(int fd, void *buffer, size_t length)
{
	const struct iovec iov = { buffer, length };
	ssize_t done;

	return move_read(fd, &iov, 1, 0, true, &done) ? done : real()->read(fd, buffer, length);
}

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t length, size_t room)
{
	if (length > room)
		__chk_fail();
	return read(fd, buffer, length);
}

EXPORT ssize_t write(int fd, const void *buffer, size_t length)
{
	const struct iovec iov = { (void *)buffer, length };
	ssize_t done;

	return move_write(fd, &iov, 1, 0, true, &done) ? done : real()->write(fd, buffer, length);
}

EXPORT ssize_t pread(int fd, void *buffer, size_t length, off_t offset)
{
	const struct iovec iov = { buffer, length };
	ssize_t done;

	return move_read(fd, &iov, 1, offset, false, &done) ?
		       done :
		       real()->pread(fd, buffer, length, offset);
}

ALIAS(pread) ssize_t pread64(int fd, void *buffer, size_t length, off_t offset);

EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t length, off_t offset, size_t room)
{
	if (length > room)
		__chk_fail();
	return pread(fd, buffer, length, offset);
}

ALIAS(__pread_chk)
ssize_t __pread64_chk(int fd, void *buffer, size_t length, off_t offset, size_t room);

EXPORT ssize_t pwrite(int fd, const void *buffer, size_t length, off_t offset)
{
	const struct iovec iov = { (void *)buffer, length };
	ssize_t done;

	return move_write(fd, &iov, 1, offset, false, &done) ?
		       done :
		       real()->pwrite(fd, buffer, length, offset);
}

ALIAS(pwrite) ssize_t pwrite64(int fd, const void *buffer, size_t length, off_t offset);

EXPORT ssize_t readv(int fd, const struct iovec *iov, int nr)
{
	ssize_t done;

	return move_read(fd, iov, nr, 0, true, &done) ? done : real()->readv(fd, iov, nr);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int nr)
{
	ssize_t done;

	return move_write(fd, iov, nr, 0, true, &done) ? done : real()->writev(fd, iov, nr);
}

EXPORT ssize_t preadv(int fd, const struct iovec *iov, int nr, off_t offset)
{
	ssize_t done;

	return move_read(fd, iov, nr, offset, false, &done) ? done :
							      real()->preadv(fd, iov, nr, offset);
}

ALIAS(preadv) ssize_t preadv64(int fd, const struct iovec *iov, int nr, off_t offset);

EXPORT ssize_t pwritev(int fd, const struct iovec *iov, int nr, off_t offset)
{
	ssize_t done;

	return move_write(fd, iov, nr, offset, false, &done) ?
		       done :
		       real()->pwritev(fd, iov, nr, offset);
}

ALIAS(pwritev) ssize_t pwritev64(int fd, const struct iovec *iov, int nr, off_t offset);

/* Offset -1 is the file's position. */
EXPORT ssize_t preadv2(int fd, const struct iovec *iov, int nr, off_t offset, int flags)
{
	ssize_t done;

	return !flags && move_read(fd, iov, nr, offset == -1 ? 0 : offset, offset == -1, &done) ?
		       done :
		       real()->preadv2(fd, iov, nr, offset, flags);
}

ALIAS(preadv2) ssize_t preadv64v2(int fd, const struct iovec *iov, int nr, off_t offset, int flags);

EXPORT ssize_t pwritev2(int fd, const struct iovec *iov, int nr, off_t offset, int flags)
{
	ssize_t done;

	return !flags && move_write(fd, iov, nr, offset == -1 ? 0 : offset, offset == -1, &done) ?
		       done :
		       real()->pwritev2(fd, iov, nr, offset, flags);
}

ALIAS(pwritev2)
ssize_t pwritev64v2(int fd, const struct iovec *iov, int nr, off_t offset, int flags);

/* Descriptors that are new. */

static int noted(int fd)
{
	table_forget(fd);
	return fd;
}

static mode_t mode_of(int flags, va_list args)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return noted(real()->open(path, flags, mode));
}

ALIAS(open) int open64(const char *path, int flags, ...);

EXPORT int __open_2(const char *path, int flags)
{
	return open(path, flags);
}

ALIAS(__open_2) int __open64_2(const char *path, int flags);

EXPORT int openat(int dir, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return noted(real()->openat(dir, path, flags, mode));
}

ALIAS(openat) int openat64(int dir, const char *path, int flags, ...);

EXPORT int __openat_2(int dir, const char *path, int flags)
{
	return openat(dir, path, flags);
}

ALIAS(__openat_2) int __openat64_2(int dir, const char *path, int flags);

EXPORT int creat(const char *path, mode_t mode)
{
	return noted(real()->creat(path, mode));
}

ALIAS(creat) int creat64(const char *path, mode_t mode);

EXPORT int dup(int fd)
{
	return noted(real()->dup(fd));
}

EXPORT int dup2(int fd, int other)
{
	return noted(real()->dup2(fd, other));
}

EXPORT int dup3(int fd, int other, int flags)
{
	return noted(real()->dup3(fd, other, flags));
}

EXPORT void *mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
	const int saved = errno;

	if (fd >= 0 && (flags & MAP_TYPE) != MAP_PRIVATE && !(flags & MAP_ANONYMOUS))
		table_mapped(fd);
	errno = saved;
	return real()->mmap(at, length, prot, flags, fd, offset);
}

ALIAS(mmap) void *mmap64(void *at, size_t length, int prot, int flags, int fd, off_t offset);

static void in_child(void)
{
	lanes_forget();
	table_forget_all();
	counts_forget();
}

static void __attribute__((constructor)) begin(void)
{
	(void)real();
	if (getenv(FILES_ALWAYS_VARIABLE))
		lanes_use_always();
	pthread_atfork(NULL, NULL, in_child);
}
