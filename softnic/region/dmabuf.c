// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A NIC reaches a dma-buf by the bus. softnic copies by the CPU, so softnic maps the buffer. The
 * kernel maps no buffer out of the CPU's reach, such as memory of a GPU, and the region is refused.
 * The data path copies as for any region: peers have the kernel look up the pages. It refuses pages
 * of VM_PFNMAP, as the system heap, TTM and, since Linux 6.12, udmabuf map them.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dmabuf.h"
#include "softnic/verbs/mr.h"

/* The inode has the size, of a dma-buf and of a memfd. */
static int check_bounds(int fd, uint64_t offset, size_t length)
{
	struct stat file;

	if (fstat(fd, &file))
		return errno;
	if (!length || offset > (uint64_t)file.st_size || length > file.st_size - offset)
		return EINVAL;
	return 0;
}

static int map_range(int fd, uint64_t begin, size_t bytes, int access, void **at)
{
	const int writes = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	const int prot = PROT_READ | (access & writes ? PROT_WRITE : 0);

	*at = mmap(NULL, bytes, prot, MAP_SHARED, fd, (off_t)begin);
	return *at == MAP_FAILED ? errno : 0;
}

/* Where process_vm_readv is forbidden (EPERM, ENOSYS), nothing speaks against the mapping. */
static bool can_peers_copy(void *at)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { at, 1 };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

/* As in libibverbs, the address of such a region is the offset in the buffer. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	const uint64_t within = offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	int rc = mr_check_rights((unsigned int)access);
	struct ibv_mr *mr;
	void *map;

	if (!rc && (access & IBV_ACCESS_ON_DEMAND))
		rc = EOPNOTSUPP;
	if (!rc)
		rc = check_bounds(fd, offset, length);
	if (!rc)
		rc = map_range(fd, offset - within, within + length, access, &map);
	if (rc) {
		errno = rc;
		return NULL;
	}
	mr = NULL;
	if (can_peers_copy((uint8_t *)map + within))
		mr = ibv_reg_mr_iova2(pd, (uint8_t *)map + within, length, iova,
				      (unsigned int)access);
	else
		errno = EOPNOTSUPP;
	if (!mr) {
		rc = errno;
		munmap(map, within + length);
		errno = rc;
		return NULL;
	}
	mr->addr = (void *)(uintptr_t)offset;
	to_mr(mr)->map = map;
	to_mr(mr)->map_bytes = within + length;
	return mr;
}

void dmabuf_unmap(const struct mr *mr)
{
	if (mr->map)
		munmap(mr->map, mr->map_bytes);
}
