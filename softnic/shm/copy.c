// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Cross-memory attach names a process by its number, so it needs a common PID namespace
 * and the right to trace; that the number still means the same process is what its life
 * says, right before each copy. A descriptor of the peer's own /proc/self/mem carries the
 * right with it, but takes one system call a piece, and each byte is copied twice. So it is
 * for where cross-memory attach is refused, and for what is so small that finding the
 * process and asking for the right would take longer than the copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copy.h"

/* On x86 both ways take as long at 4 KiB; at 64 bytes, this one takes four fifths of the time. */
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
		errno = ESRCH; /* its address space is gone */
	else if (n < 0 && errno == EIO)
		errno = EFAULT;
	return n ? n : -1;
}

static bool prefer_mem(const struct copy_target *t, const struct iovec *here, int num_here,
		       int num_there)
{
	if (!t->by_cma)
		return true;
	return t->by_mem && num_here == 1 && num_there == 1 && here->iov_len <= SMALL_BYTES_MAX;
}

int copy_bytes(const struct copy_target *t, bool to, struct iovec *here, int num_here,
	       struct iovec *there, int num_there)
{
	ssize_t n;

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

/*
 * The end of a message comes last, in a word where it is one: programs poll it, and expect all
 * before it to be there, as behind a NIC. memcpy() promises no order. At least one byte.
 */
static void copy_in_order(char *to, const char *from, size_t n)
{
	uint64_t word;

	if (n < sizeof(word) || ((uintptr_t)to + n) % sizeof(word)) {
		memcpy(to, from, --n);
		__atomic_store_n(to + n, from[n], __ATOMIC_RELEASE);
		return;
	}
	n -= sizeof(word);
	memcpy(to, from, n);
	memcpy(&word, from + n, sizeof(word));
	__atomic_store_n((uint64_t *)(to + n), word, __ATOMIC_RELEASE);
}

int copy_here(const struct copy_target *t, bool to, struct iovec *here, int num_here,
	      struct iovec *there, int num_there)
{
	size_t n;

	if (shared_life_ended(t->life))
		return -ESRCH;
	/* A read does not overtake the write before it. The kernel's copies have barriers. */
	if (!to)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	advance(&here, &num_here, 0);
	advance(&there, &num_there, 0);
	while (num_here && num_there) {
		n = here->iov_len < there->iov_len ? here->iov_len : there->iov_len;
		if (to)
			copy_in_order(there->iov_base, here->iov_base, n);
		else
			memcpy(here->iov_base, there->iov_base, n);
		advance(&here, &num_here, n);
		advance(&there, &num_there, n);
	}
	return 0;
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
