/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/inode/traffic.h"

#include <string.h>

#include "apps/mount/mount.h"
#include "wire/files.h"

#define WATCHED_NS (10 * WEIR_NS_PER_S) /* after an answer */

void traffic_init(struct traffic *traffic)
{
	pthread_mutex_init(&traffic->lock, NULL);
	LIST_INIT(&traffic->listed);
}

void traffic_add(struct inode *inode, bool write, bool past, uint64_t bytes)
{
	struct traffic *traffic = &inode->mount->traffic;
	struct traffic_counts *counts = &inode->traffic;
	uint64_t until_ns = atomic_load_explicit(&traffic->until_ns, memory_order_relaxed);

	if (!until_ns)
		return;
	if (weir_now_ns() > until_ns) {
		atomic_compare_exchange_strong(&traffic->until_ns, &until_ns, 0);
		return;
	}
	atomic_fetch_add(&counts->calls[write], 1);
	atomic_fetch_add(&counts->past[write], past);
	atomic_fetch_add(&counts->bytes[write], bytes);
	if (atomic_exchange(&counts->is_listed, true))
		return;
	inode_ref(inode);
	pthread_mutex_lock(&traffic->lock);
	LIST_INSERT_HEAD(&traffic->listed, inode, traffic.entry);
	pthread_mutex_unlock(&traffic->lock);
}

static struct wire_files_traffic take_counts(struct inode *inode)
{
	struct wire_files_traffic file = { .ino = inode->ino };

	atomic_store(&inode->traffic.is_listed, false);
	for (int write = 0; write < 2; write++) {
		file.calls[write] = atomic_exchange(&inode->traffic.calls[write], 0);
		file.past[write] = atomic_exchange(&inode->traffic.past[write], 0);
		file.bytes[write] = atomic_exchange(&inode->traffic.bytes[write], 0);
	}
	return file;
}

static uint64_t weight(const struct wire_files_traffic *file)
{
	return file->bytes[0] + file->bytes[1];
}

/* Keeps the files in order, those with most bytes first. */
static void insert(struct wire_files_top *top, const struct wire_files_traffic *file)
{
	uint32_t at = top->nr;

	while (at && weight(&top->file[at - 1]) < weight(file))
		at--;
	if (at == FILES_TOP_MAX)
		return;
	if (top->nr < FILES_TOP_MAX)
		top->nr++;
	memmove(&top->file[at + 1], &top->file[at], (top->nr - 1 - at) * sizeof(*file));
	top->file[at] = *file;
}

void traffic_answer(struct mount *m, struct wire_files_top *top)
{
	struct traffic_list listed = LIST_HEAD_INITIALIZER(listed);
	struct inode *inode;

	*top = (struct wire_files_top){ .nr = 0 };
	pthread_mutex_lock(&m->traffic.lock);
	while ((inode = LIST_FIRST(&m->traffic.listed))) {
		LIST_REMOVE(inode, traffic.entry);
		LIST_INSERT_HEAD(&listed, inode, traffic.entry);
	}
	pthread_mutex_unlock(&m->traffic.lock);
	/* An inode is listed again as soon as take_counts() has said that it is not. */
	while ((inode = LIST_FIRST(&listed))) {
		struct wire_files_traffic file;

		LIST_REMOVE(inode, traffic.entry);
		file = take_counts(inode);
		top->files++;
		insert(top, &file);
		inode_put(inode, 1);
	}
	atomic_store(&m->traffic.until_ns, weir_now_ns() + WATCHED_NS);
}
