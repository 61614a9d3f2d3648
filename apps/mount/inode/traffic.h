/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic by file, for "weir fs top". Counted only while somebody asks, so that transfers pay
 * nothing otherwise.
 */
#ifndef WEIR_APPS_MOUNT_INODE_TRAFFIC_H
#define WEIR_APPS_MOUNT_INODE_TRAFFIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct inode;
struct mount;
struct wire_files_top;

/* Of an inode, since the last answer. @is_listed: the inode is in the mount's list */
struct traffic_counts {
	atomic_bool is_listed;
	atomic_uint calls[2], past[2]; /* reads, writes; of these, past the kernel */
	atomic_ullong bytes[2];
	LIST_ENTRY(inode) entry;
};

LIST_HEAD(traffic_list, inode);

/**
 * struct traffic - of a mount
 * @until_ns: transfers are counted until then; 0: none are
 * @lock: guards @listed, a leaf; each inode there has a reference
 */
struct traffic {
	_Atomic uint64_t until_ns;
	pthread_mutex_t lock;
	struct traffic_list listed;
};

void traffic_init(struct traffic *traffic);
/* Counts a transfer. Context: any thread, callbacks too; no lock of an inode is held. */
void traffic_add(struct inode *inode, bool write, bool past, uint64_t bytes);
/* The files with most bytes since the last answer; counting begins, or goes on. */
void traffic_answer(struct mount *m, struct wire_files_top *top);

#endif
