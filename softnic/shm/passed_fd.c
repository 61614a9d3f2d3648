// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Nearly every call on a file asks the file system: fstat(), fstatfs(), even close(). So we first
 * ask for properties that the kernel itself knows: the seals, which only memfds have; the domain
 * of a socket; the block size, which is the same in each procfs, but differs in any file system
 * that a user may mount.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "passed_fd.h"

enum { PROC_BLOCK_SIZE = 1024 };

static bool is_on_filesystem(int fd, unsigned long magic)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == magic;
}

static bool is_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

/* No huge pages: after a hole is punched, a fault may find no free huge page and raise SIGBUS. */
bool passed_fd_is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && is_on_filesystem(fd, TMPFS_MAGIC);
}

bool passed_fd_is_procfs(int fd)
{
	int block = 0;

	return ioctl(fd, FIGETBSZ, &block) == 0 && block == PROC_BLOCK_SIZE &&
	       is_on_filesystem(fd, PROC_SUPER_MAGIC);
}

static bool has_sockopt(int fd, int option, int value)
{
	int found;
	socklen_t len = sizeof(found);

	return getsockopt(fd, SOL_SOCKET, option, &found, &len) == 0 && found == value;
}

bool passed_fd_is_socket(int fd, int type)
{
	return has_sockopt(fd, SO_DOMAIN, AF_UNIX) && has_sockopt(fd, SO_TYPE, type);
}

static void *close_slowly(void *fd)
{
	close((int)(intptr_t)fd);
	return NULL;
}

/* If no thread can start, the descriptor leaks, because close() might block for ever. */
static void close_apart(int fd)
{
	pthread_t thread;
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!pthread_create(&thread, NULL, close_slowly, (void *)(intptr_t)fd))
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void passed_fd_close(int fd)
{
	if (fd < 0)
		return;
	if (is_memory(fd) || has_sockopt(fd, SO_DOMAIN, AF_UNIX) || passed_fd_is_procfs(fd))
		close(fd);
	else
		close_apart(fd);
}
