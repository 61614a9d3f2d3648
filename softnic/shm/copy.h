/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Moving bytes between this process and another, without its taking part.
 */
#ifndef WEIR_SOFTNIC_SHM_COPY_H
#define WEIR_SOFTNIC_SHM_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "shared.h"

/* A process, and which of the first two ways were proved to lead to it: at least one. */
struct copy_target {
	bool by_cma; /* process_vm_readv and process_vm_writev */
	bool by_mem; /* its /proc/self/mem, which it passed to us */
	bool by_mapping; /* files of its memory may be mapped; peer_map.h */
	pid_t pid;
	int mem_fd;
	const struct shared_life *life; /* of the process that @pid means */
};

/**
 * copy_probe() - prove that a process can be reached, and how
 * @t: pid, mem_fd and life set; pid and mem_fd may be missing (0, -1); the ways are written
 * @addr: an address in it
 * @nonce: what must be found there
 *
 * A way that reads the nonce leads there: that it does also proves that the number we know
 * the process by is its own in our PID namespace.
 *
 * Return: 0, -ESRCH if it has ended meanwhile, or -EPERM if neither way leads to it.
 */
int copy_probe(struct copy_target *t, uint64_t addr, uint64_t nonce);

/**
 * copy_bytes() - copy between lists of pieces of equal total length
 * @t: the other process
 * @to: into it, else out of it
 * @here: pieces in this process
 * @there: pieces in the other; both lists are used up (changed) on the way
 *
 * Return: 0, -EFAULT if some of it is not mapped in either process, -ESRCH if the other
 * process has ended, or another negative errno.
 */
int copy_bytes(const struct copy_target *t, bool to, struct iovec *here, int num_here,
	       struct iovec *there, int num_there);

/**
 * copy_here() - the same, between lists of pieces that are all in this process
 *
 * Return: 0, or -ESRCH if the process that @t means has ended.
 */
int copy_here(const struct copy_target *t, bool to, struct iovec *here, int num_here,
	      struct iovec *there, int num_there);

#endif
