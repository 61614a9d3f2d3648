/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each inode is checked against its own names, extents and opens. Link counts of files and the use
 * of memory concern many inodes. So these are summed up over all parts, and the client compares.
 *
 * The cursor counts in the reversed bits of the table's index. When the table doubles, a bucket
 * splits into two with the same low bits. So the rest of the buckets stays the rest.
 */
#include "fsd/check.h"

#include "fsd/handle.h"
#include "fsd/inode.h"
#include "fsd/lock.h"
#include "fsd/op.h"

#define PART_OBJECTS 4096 /* inodes and names in a part; a large directory may exceed it */

static void note_fault(struct wire_fs_checked *out, const struct fsd_inode *inode,
		       enum wire_fs_fault fault)
{
	if (!out->faults++) {
		out->fault = fault;
		out->fault_ino = inode->ino;
	}
}

static bool is_slot_right(const struct fsd *fsd, const struct fsd_inode *dir,
			  const struct fsd_slot *slot)
{
	const struct fsd_name *name = slot->name;
	const struct fsd_text text = { name->text, name->length };

	return name->dir == dir && name->cookie == slot->cookie && fsd_is_name(text) &&
	       fsd_inode_find(fsd, name->inode->ino) == name->inode &&
	       fsd_dir_find(fsd, dir, text) == name->inode &&
	       (!fsd_inode_is_dir(name->inode) || name->inode->dir.parent == dir);
}

/* Return: whether a walk towards the root ends there, or at a removed directory that is open. */
static bool has_way_up(const struct fsd *fsd, const struct fsd_inode *dir)
{
	for (uint64_t steps = 0; steps <= fsd->inodes.nr; steps++) {
		const struct fsd_inode *parent = dir->dir.parent;

		if (parent == dir) /* a removed directory is its own parent, too */
			return dir == fsd->root || !dir->nlink;
		if (fsd_inode_find(fsd, parent->ino) != parent)
			return false;
		dir = parent;
	}
	return false;
}

static void check_directory(const struct fsd *fsd, const struct fsd_inode *inode,
			    struct wire_fs_checked *out)
{
	const struct fsd_dir *dir = &inode->dir;
	uint32_t names = 0, directories = 0;
	bool is_right = true;

	for (uint32_t i = 0; i < dir->nr; i++) {
		const struct fsd_slot *slot = &dir->slot[i];

		is_right &= slot->cookie < dir->next_cookie &&
			    (!i || slot[-1].cookie < slot->cookie);
		if (!slot->name)
			continue;
		names++;
		if (fsd_inode_is_dir(slot->name->inode))
			directories++;
		is_right &= is_slot_right(fsd, inode, slot);
	}
	out->names += names;
	out->file_names += names - directories;
	if (!is_right || names != dir->names || (names && !inode->nlink))
		note_fault(out, inode, FS_FAULT_NAMES);
	if (inode->nlink && inode->nlink != 2 + directories)
		note_fault(out, inode, FS_FAULT_LINKS);
	if (!has_way_up(fsd, inode))
		note_fault(out, inode, FS_FAULT_PARENT);
}

static void check_extents(const struct fsd *fsd, const struct fsd_inode *inode,
			  struct wire_fs_checked *out)
{
	struct fsd_map_cursor place = fsd_map_seek(&inode->map, 0);
	uint64_t end = 0, bytes = 0, total = fsd->space.total;
	const struct wire_fs_extent *e;
	bool is_right = true;

	for (; (e = fsd_map_at(&place)); fsd_map_step(&place)) {
		is_right &= e->length && e->offset >= end &&
			    !((e->offset | e->length | e->volume) % FS_BLOCK) &&
			    e->length <= total && e->volume <= total - e->length;
		end = e->offset + e->length;
		bytes += e->length;
	}
	if (!is_right || bytes != inode->map.bytes)
		note_fault(out, inode, FS_FAULT_EXTENTS);
	out->mapped += bytes;
}

static void check_opens(const struct fsd_inode *inode, struct wire_fs_checked *out)
{
	const struct fsd_handle *handle;
	uint32_t opens = 0;

	TAILQ_FOREACH(handle, &inode->handles, of_inode)
		opens += handle->opens;
	if (opens != inode->opens || (!opens && !inode->nlink) ||
	    (!opens && !(TAILQ_EMPTY(&inode->locks) && TAILQ_EMPTY(&inode->waits))))
		note_fault(out, inode, FS_FAULT_OPENS);
}

static void check_inode(const struct fsd *fsd, const struct fsd_inode *inode,
			struct wire_fs_checked *out)
{
	out->inodes++;
	if (fsd_inode_is_dir(inode))
		check_directory(fsd, inode, out);
	else
		out->file_links += inode->nlink;
	if (fsd_inode_is_file(inode))
		check_extents(fsd, inode, out);
	check_opens(inode, out);
}

static uint64_t reverse_bits(uint64_t bits)
{
	uint64_t reversed = 0;

	for (int i = 0; i < 64; i++, bits >>= 1)
		reversed = reversed << 1 | (bits & 1);
	return reversed;
}

/* The bucket after, in the order of reversed bits; 0 after the last. */
static uint64_t next_cursor(uint64_t cursor, uint64_t mask)
{
	return reverse_bits(reverse_bits(cursor | ~mask) + 1);
}

/* A bucket of the table before its growth began, perhaps split in two since. */
static void check_buckets(const struct fsd *fsd, uint64_t bucket, uint64_t power,
			  struct wire_fs_checked *out)
{
	for (; bucket < fsd->inodes.buckets; bucket += power) {
		const struct fsd_hash_node *link = fsd_hashtable_bucket(&fsd->inodes, bucket);

		for (; link; link = link->next)
			check_inode(fsd, (const struct fsd_inode *)link, out);
	}
}

void fsd_check_part(const struct fsd *fsd, uint64_t cursor, struct wire_fs_checked *out)
{
	const uint64_t mask = fsd_hashtable_power(&fsd->inodes) - 1;

	*out = (struct wire_fs_checked){
		.changes = fsd->changes,
		.total = fsd->space.total,
		.unused = fsd->space.free + fsd->space.dirty + fsd->space.limbo,
	};
	do {
		check_buckets(fsd, cursor & mask, mask + 1, out);
		cursor = next_cursor(cursor, mask);
	} while (cursor && out->inodes + out->names < PART_OBJECTS);
	out->cursor = cursor;
}
