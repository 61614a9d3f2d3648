// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Cross-memory attach names a process by its number, so it needs a common PID namespace
 * and the right to trace; that the number still means the same process is what its life
 * says, right before each copy. Where one of them is missing, a descriptor of the peer's own
 * /proc/self/mem carries the right with it, at one system call a piece.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "copy.h"

static void advance(struct iovec **v, int *n, size_t done)
{
	while (*n && done >= (*v)->iov_len) {
		done -= (*v)->iov_len;
		(*v)++;
		(*n)--;
	}
	if (done) {
		(*v)->iov_base = (char *)(*v)->iov_base + done;
		(*v)->iov_len -= done;
	}
}

static ssize_t copy_cma(const struct copy_target *t, bool to, struct iovec *here, int num_here,
			struct iovec *there, int num_there)
{
	/* The number may be another process's by now. */
	if (shared_life_ended(t->life)) {
		errno = ESRCH;
		return -1;
	}
	if (to)
		return process_vm_writev(t->pid, here, num_here, there, num_there, 0);
	return process_vm_readv(t->pid, here, num_here, there, num_there, 0);
}

static ssize_t copy_mem(const struct copy_target *t, bool to, struct iovec *here,
			struct iovec *there)
{
	size_t len = here->iov_len < there->iov_len ? here->iov_len : there->iov_len;
	off_t at = (uintptr_t)there->iov_base;
	ssize_t n;

	n = to ? pwrite(t->mem_fd, here->iov_base, len, at) :
		 pread(t->mem_fd, here->iov_base, len, at);
	if (n == 0)
		errno = ESRCH;	/* its address space is gone */
	else if (n < 0 && errno == EIO)
		errno = EFAULT;
	return n ? n : -1;
}

int copy_bytes(const struct copy_target *t, bool to, struct iovec *here, int num_here,
	       struct iovec *there, int num_there)
{
	ssize_t n;

	advance(&here, &num_here, 0);
	advance(&there, &num_there, 0);
	while (num_here && num_there) {
		if (t->way == COPY_CMA)
			n = copy_cma(t, to, here, num_here, there, num_there);
		else
			n = copy_mem(t, to, here, there);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EFAULT;
		advance(&here, &num_here, n);
		advance(&there, &num_there, n);
	}
	return 0;
}

int copy_find_way(struct copy_target *t, uint64_t addr, uint64_t nonce)
{
	static const char *const only = "WEIR_SOFTNIC_COPY";	/* for tests: "mem" */
	enum copy_way way = getenv(only) ? COPY_MEM : COPY_CMA;
	int err;

	for (; way <= COPY_MEM; way++) {
		uint64_t found = 0;
		struct iovec here = { &found, sizeof(found) };
		struct iovec there = { (void *)(uintptr_t)addr, sizeof(found) };

		t->way = way;
		err = copy_bytes(t, false, &here, 1, &there, 1);
		if (!err && found == nonce)
			return 0;
	}
	return err == -ESRCH ? err : -EPERM;
}
