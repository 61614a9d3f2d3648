/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies between this process and another, without the other's help.
 */
#ifndef WEIR_SOFTNIC_SHM_COPY_H
#define WEIR_SOFTNIC_SHM_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "shared.h"

/* A process, and the ways to copy. copy_probe() proved at least one of the first two. */
struct copy_target {
	bool by_cma; /* process_vm_readv and process_vm_writev */
	bool by_mem; /* the peer's /proc/PID/mem, which we opened or the peer passed */
	bool by_mapping; /* may map files of the peer's memory: see peer_map.h */
	pid_t pid;
	int mem_fd;
	const struct shared_life *life; /* of process @pid */
};

/**
 * copy_probe() - find the ways to copy to and from a process
 * @t: pid, mem_fd and life are set by the caller; pid 0 and mem_fd -1 mean unknown. The
 *	function sets the ways
 * @addr: an address in the process
 * @nonce: the value at @addr
 *
 * A way works if a copy reads the nonce. A match also proves that @t->pid names the same process
 * in our PID namespace.
 *
 * Return: 0, -ESRCH if the process has ended, or -EPERM if neither way works.
 */
int copy_probe(struct copy_target *t, uint64_t addr, uint64_t nonce);

/**
 * copy_bytes() - copy between two vectors of equal total length
 * @t: the other process
 * @to: true to write into the other process, false to read from it
 * @here: vector in this process
 * @there: vector in the other process; the copy changes both vectors
 *
 * Return: 0, -EFAULT if a byte is not mapped in either process, -ESRCH if the other process has
 * ended, or another negative errno.
 */
int copy_bytes(const struct copy_target *t, bool to, struct iovec *here, int num_here,
	       struct iovec *there, int num_there);

/**
 * copy_here() - as copy_bytes(), with both vectors mapped in this process
 * @cut: nonzero once the other process goes on without us: see fenced_copy.h. NULL: it never does
 *
 * Return: 0, or -ESRCH if the process @t has ended, or has cut us off.
 */
int copy_here(const struct copy_target *t, bool to, struct iovec *here, int num_here,
	      struct iovec *there, int num_there, const uint32_t *cut);

#endif
