/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Allocation of shared memory. Memory for another process is sealed: truncation would make
 * others fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/mux/local/memory.h"

int weir_mux_memfd(const char *name, size_t length)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && !ftruncate(fd, (off_t)length) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENOMEM;
}

void weir_mux_fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Maps @fd, or private memory if @fd is -1. */
static void *map_fd(int fd, size_t length)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *base = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, fd, 0);

	return base == MAP_FAILED ? NULL : base;
}

void *weir_mux_account_map(const struct weir_mux_account *account, size_t length, int *fd)
{
	*fd = account->is_shared ? weir_mux_memfd("weir-share", length) : -1;
	if (account->is_shared && *fd < 0)
		return NULL;
	return map_fd(*fd, length);
}

void *weir_mux_ring_slab_map(size_t length, int *fd)
{
	int found = weir_mux_memfd("weir-mux", length);

	*fd = found < 0 ? -1 : found;
	return map_fd(*fd, length);
}
