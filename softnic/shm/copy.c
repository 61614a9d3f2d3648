// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Three ways to copy. iov_list.c chooses copies into files that both processes map, see peer_map.h;
 * this file chooses between the other two. Cross-memory attach names the process by PID, so both
 * processes need a common PID namespace and the right to trace. Before each copy, the peer's
 * shared_life shows whether the PID still names the peer. A descriptor of the peer's /proc/PID/mem
 * comes from the kernel, or from the peer. The descriptor carries the right, but costs one system
 * call per segment and copies each byte twice. softnic uses the descriptor where cross-memory
 * attach is refused. It also does so for small copies, where finding the process and checking the
 * right would take longer than the copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "copy.h"
#include "fenced_copy.h"

/* On x86 both ways take equally long at 4 KiB. At 64 bytes, /proc/PID/mem takes 0.8 as long. */
enum { SMALL_BYTES_MAX = 2048 };

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
	/* The kernel may have reused the PID. */
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

	/* pwrite() is a cancellation point, and the caller has a lock and an odd guard. */
	n = syscall(to ? SYS_pwrite64 : SYS_pread64, t->mem_fd, here->iov_base, len, at);
	if (n == 0)
		errno = ESRCH; /* the address space is gone */
	else if (n < 0 && errno == EIO)
		errno = EFAULT;
	return n ? n : -1;
}

/* Through /proc/PID/mem the kernel also reaches pages that the process itself may not touch. */
static bool prefer_mem(const struct copy_target *t, const struct iovec *here, int num_here,
		       int num_there)
{
	if (!t->by_cma)
		return true;
	return t->by_mem && !load_relaxed(&t->life->pages_on_demand) && num_here == 1 &&
	       num_there == 1 && here->iov_len <= SMALL_BYTES_MAX;
}

/* A small copy of one piece, as most are. False: nothing is copied, or not all of it. */
static bool copy_small(const struct copy_target *t, bool to, struct iovec *here, int num_here,
		       struct iovec *there, int num_there)
{
	const size_t length = here->iov_len;

	return num_here == 1 && num_there == 1 && length && length == there->iov_len &&
	       prefer_mem(t, here, num_here, num_there) && length <= SMALL_BYTES_MAX &&
	       copy_mem(t, to, here, there) == (ssize_t)length;
}

int copy_bytes(const struct copy_target *t, bool to, struct iovec *here, int num_here,
	       struct iovec *there, int num_there)
{
	ssize_t n;

	if (copy_small(t, to, here, num_here, there, num_there))
		return 0;
	advance(&here, &num_here, 0);
	advance(&there, &num_there, 0);
	while (num_here && num_there) {
		if (!prefer_mem(t, here, num_here, num_there))
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

/* Return: false if the peer has cut us off. */
static bool copy_run(bool to, void *here, void *there, size_t n, const uint32_t *cut)
{
	static const uint32_t never;

	if (to)
		return fenced_copy(there, here, n, cut ? cut : &never);
	memcpy(here, there, n);
	return true;
}

/* Not inline: the common copy of one piece shall save no registers for this one. */
__attribute__((noinline)) static int copy_runs(bool to, struct iovec *here, int num_here,
					       struct iovec *there, int num_there,
					       const uint32_t *cut)
{
	size_t n;

	advance(&here, &num_here, 0);
	advance(&there, &num_there, 0);
	while (num_here && num_there) {
		n = here->iov_len < there->iov_len ? here->iov_len : there->iov_len;
		if (n > FENCED_BYTES_MAX)
			n = FENCED_BYTES_MAX;
		if (!copy_run(to, here->iov_base, there->iov_base, n, cut))
			return -ESRCH;
		advance(&here, &num_here, n);
		advance(&there, &num_there, n);
	}
	return 0;
}

int copy_here(const struct copy_target *t, bool to, struct iovec *here, int num_here,
	      struct iovec *there, int num_there, const uint32_t *cut)
{
	if (shared_life_ended(t->life))
		return -ESRCH;
	/* A read must not overtake an earlier write. The kernel's copies contain barriers. */
	if (!to)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* Most are short and of one piece. */
	if (num_here == 1 && num_there == 1 && here->iov_len && here->iov_len <= FENCED_BYTES_MAX)
		return copy_run(to, here->iov_base, there->iov_base, here->iov_len, cut) ? 0 :
											   -ESRCH;
	return copy_runs(to, here, num_here, there, num_there, cut);
}

static int try_way(const struct copy_target *t, uint64_t addr, uint64_t nonce)
{
	uint64_t found = 0;
	struct iovec here = { &found, sizeof(found) };
	struct iovec there = { (void *)(uintptr_t)addr, sizeof(found) };
	int rc = copy_bytes(t, false, &here, 1, &there, 1);

	return rc || found == nonce ? rc : -EPERM;
}

int copy_probe(struct copy_target *t, uint64_t addr, uint64_t nonce)
{
	const char *only = getenv("WEIR_SOFTNIC_COPY"); /* for tests: "cma" or "mem" */
	int cma, mem;

	t->by_mem = false;
	t->by_cma = true;
	cma = try_way(t, addr, nonce);
	t->by_cma = false;
	mem = try_way(t, addr, nonce);
	t->by_cma = !cma && !(only && !strcmp(only, "mem"));
	t->by_mem = !mem && !(only && !strcmp(only, "cma"));
	t->by_mapping = !only;
	if (t->by_cma || t->by_mem)
		return 0;
	return mem == -ESRCH ? mem : -EPERM;
}
