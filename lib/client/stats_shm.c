/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/client/stats_shm.h"

_Static_assert(!(WEIR_LEDGER_SLOTS & (WEIR_LEDGER_SLOTS - 1)), "what weir_trace_init() wants");

/* Where executable memfds are forbidden, that has to be said; older kernels do not know it. */
static int create(void)
{
#ifdef MFD_NOEXEC_SEAL
	int fd = memfd_create(WEIR_LEDGER_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd >= 0 || errno != EINVAL)
		return fd;
#endif
	return memfd_create(WEIR_LEDGER_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* A child that is forked has no session, and must not write into its parent's ledger. */
int weir_ledger_open(struct weir_ledger **ledger, int *fd)
{
	int rc, seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	void *map;

	*fd = create();
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, sizeof(**ledger)))
		goto close;
	map = mmap(NULL, sizeof(**ledger), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (map == MAP_FAILED)
		goto close;
	if (madvise(map, sizeof(**ledger), MADV_DONTFORK) || fcntl(*fd, F_ADD_SEALS, seals))
		goto unmap;
	*ledger = map;
	return 0;
unmap:
	rc = -errno;
	munmap(map, sizeof(**ledger));
	errno = -rc;
close:
	rc = -errno;
	close(*fd);
	*fd = -1;
	return rc;
}

void weir_ledger_show(struct weir_ledger *ledger, const char *device, const char *peer,
		      uint64_t now_ns)
{
	snprintf(ledger->device, sizeof(ledger->device), "%s", device);
	snprintf(ledger->peer, sizeof(ledger->peer), "%s", peer);
	ledger->version = WEIR_LEDGER_VERSION;
	ledger->slots = WEIR_LEDGER_SLOTS;
	ledger->opened_ns = now_ns;
	weir_store_release(&ledger->magic, WEIR_LEDGER_MAGIC); /* pairs with who reads it first */
}

void weir_ledger_close(struct weir_ledger *ledger, int fd)
{
	if (!ledger)
		return;
	munmap(ledger, sizeof(*ledger));
	close(fd);
}
