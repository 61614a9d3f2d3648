/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/client/stats_shm.h"

_Static_assert(!(WEIR_STATS_SHM_SLOTS & (WEIR_STATS_SHM_SLOTS - 1)),
	       "what weir_trace_init() wants");

/* Systems that forbid executable memfds require the flag; older kernels do not know it. */
static int create_memfd(void)
{
#ifdef MFD_NOEXEC_SEAL
	int fd = memfd_create(WEIR_STATS_SHM_NAME,
			      MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd >= 0 || errno != EINVAL)
		return fd;
#endif
	return memfd_create(WEIR_STATS_SHM_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* A forked child has no session, and must not write to its parent's shared memory. */
int weir_stats_shm_open(struct weir_stats_shm **shm, int *fd)
{
	int rc, seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	void *map;

	*fd = create_memfd();
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, sizeof(**shm)))
		goto close;
	map = mmap(NULL, sizeof(**shm), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (map == MAP_FAILED)
		goto close;
	if (madvise(map, sizeof(**shm), MADV_DONTFORK) || fcntl(*fd, F_ADD_SEALS, seals))
		goto unmap;
	*shm = map;
	return 0;
unmap:
	rc = -errno;
	munmap(map, sizeof(**shm));
	errno = -rc;
close:
	rc = -errno;
	close(*fd);
	*fd = -1;
	return rc;
}

void weir_stats_shm_publish(struct weir_stats_shm *shm, const char *device, const char *peer,
			    uint64_t now_ns)
{
	snprintf(shm->device, sizeof(shm->device), "%s", device);
	snprintf(shm->peer, sizeof(shm->peer), "%s", peer);
	shm->version = WEIR_STATS_SHM_VERSION;
	shm->slots = WEIR_STATS_SHM_SLOTS;
	shm->opened_ns = now_ns;
	weir_store_release(&shm->magic, WEIR_STATS_SHM_MAGIC); /* pairs with the readers' load */
}

static enum weir_stats_shm_cause cause_of(int status, enum ibv_wc_status verbs)
{
	switch (verbs) {
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return WEIR_STATS_SHM_NO_ANSWER;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return WEIR_STATS_SHM_NO_BUFFER;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
		return WEIR_STATS_SHM_REFUSED;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_LOC_LEN_ERR:
		return WEIR_STATS_SHM_LOCAL_MEMORY;
	case IBV_WC_SUCCESS: /* a refusal of an unloaded write is a message */
		return status == -EACCES     ? WEIR_STATS_SHM_REFUSED :
		       status == -ECONNRESET ? WEIR_STATS_SHM_FLUSHED :
					       WEIR_STATS_SHM_OTHER;
	case IBV_WC_WR_FLUSH_ERR:
		return status == -EACCES ? WEIR_STATS_SHM_REFUSED : WEIR_STATS_SHM_FLUSHED;
	default:
		return WEIR_STATS_SHM_OTHER;
	}
}

void weir_stats_shm_failed(struct weir_stats_shm *shm, int status, enum ibv_wc_status verbs)
{
	shm->counters.errors++;
	shm->failures[cause_of(status, verbs)]++;
}

void weir_stats_shm_close(struct weir_stats_shm *shm, int fd)
{
	if (!shm)
		return;
	munmap(shm, sizeof(*shm));
	close(fd);
}
