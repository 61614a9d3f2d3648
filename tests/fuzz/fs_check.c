/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <assert.h>
#include <string.h>

#include "fsd/check.h"
#include "fsd/inode.h"
#include "tests/fuzz/fs_check.h"

#define BLOCKS_MAX 4096

/* The objects of a table, one after another. */
struct table_walk {
	const struct fsd_hashtable *table;
	struct fsd_hash_node *next;
	uint64_t bucket;
};

static void *step(struct table_walk *w)
{
	struct fsd_hash_node *node;

	while (!w->next && w->bucket < w->table->buckets)
		w->next = fsd_hashtable_bucket(w->table, w->bucket++);
	node = w->next;
	if (node)
		w->next = node->next;
	return node;
}

struct fsd_inode *check_inode(const struct fsd *fsd, uint64_t k)
{
	struct table_walk w = { .table = &fsd->inodes };
	struct fsd_inode *inode;

	while ((inode = step(&w)) && k--)
		;
	return inode;
}

static bool is_alive(const struct fsd *fsd, const struct fsd_inode *wanted)
{
	struct table_walk w = { .table = &fsd->inodes };
	const struct fsd_inode *inode;

	while ((inode = step(&w)) && inode != wanted)
		;
	return inode;
}

/* Names of an inode, and names of directories in it. */
static void count_names(const struct fsd *fsd, const struct fsd_inode *inode, uint32_t *links,
			uint32_t *names, uint32_t *subdirs)
{
	struct table_walk w = { .table = &fsd->names };
	const struct fsd_name *name;

	*links = *names = *subdirs = 0;
	while ((name = step(&w))) {
		*links += name->inode == inode;
		*names += name->dir == inode;
		*subdirs += name->dir == inode && fsd_inode_is_dir(name->inode);
		if (name->inode == inode && fsd_inode_is_dir(inode))
			assert(inode->dir.parent == name->dir);
	}
}

/* A name is valid, and a directory has it once. */
static void check_name(const struct fsd_name *name)
{
	const struct fsd_name *other = name;

	assert(name->length && !memchr(name->text, '/', name->length) &&
	       !memchr(name->text, 0, name->length) && name->text[name->length - 1] != '.');
	while ((other = (const struct fsd_name *)fsd_hashtable_next(&other->link)))
		assert(other->dir != name->dir || other->length != name->length ||
		       memcmp(other->text, name->text, name->length) != 0);
}

static void check_slots(const struct fsd_inode *dir)
{
	const struct fsd_dir *d = &dir->dir;
	uint32_t used = 0;

	for (uint32_t i = 0; i < d->nr; i++) {
		assert(d->slot[i].cookie < d->next_cookie);
		assert(!i || d->slot[i - 1].cookie < d->slot[i].cookie);
		if (!d->slot[i].name)
			continue;
		used++;
		assert(d->slot[i].name->dir == dir);
		assert(d->slot[i].name->cookie == d->slot[i].cookie);
	}
	assert(used == d->names);
}

/* A walk towards the root ends there, or at a removed directory that is open. */
static void check_ancestors(const struct fsd *fsd, const struct fsd_inode *dir)
{
	uint64_t steps = 0;

	for (; dir != dir->dir.parent; dir = dir->dir.parent)
		assert(is_alive(fsd, dir->dir.parent) && steps++ < fsd->inodes.nr);
	assert(dir == fsd->root || !dir->nlink);
}

static void check_links(const struct fsd *fsd, const struct fsd_inode *inode)
{
	bool is_root = inode == fsd->root;
	uint32_t links, names, subdirs;

	count_names(fsd, inode, &links, &names, &subdirs);
	if (!fsd_inode_is_dir(inode)) {
		assert(inode->nlink == links && !names);
		return;
	}
	assert(links + is_root <= 1);
	assert(inode->nlink == (links + is_root > 0 ? 2 + subdirs : 0));
	assert(inode->dir.names == names && (inode->nlink || !names));
	check_ancestors(fsd, inode);
	check_slots(inode);
}

static bool has_joined(const struct fsd *fsd, const struct fsd_client *wanted)
{
	const struct fsd_client *client;

	TAILQ_FOREACH(client, &fsd->clients, entry) {
		if (client == wanted)
			return true;
	}
	return false;
}

static void check_opens(const struct fsd *fsd, const struct fsd_inode *inode)
{
	const struct fsd_handle *handle;
	uint32_t opens = 0;

	TAILQ_FOREACH(handle, &inode->handles, of_inode) {
		assert(handle->inode == inode && handle->opens && has_joined(fsd, handle->client));
		assert(handle->newest <= inode->epoch && handle->oldest <= inode->epoch);
		opens += handle->opens;
	}
	assert(inode->opens == opens && (inode->opens || inode->nlink));
	assert(opens || (TAILQ_EMPTY(&inode->locks) && TAILQ_EMPTY(&inode->waits)));
	assert(opens || TAILQ_EMPTY(&inode->limbo));
}

/* The server's own check finds no fault where there is none. */
static void check_parts(const struct fsd *fsd)
{
	uint64_t cursor = 0, inodes = 0, names = 0, file_names = 0, file_links = 0, mapped = 0;
	struct wire_fs_checked part;

	do {
		fsd_check_part(fsd, cursor, &part);
		assert(!part.faults);
		cursor = part.cursor;
		inodes += part.inodes;
		names += part.names;
		file_names += part.file_names;
		file_links += part.file_links;
		mapped += part.mapped;
	} while (cursor);
	assert(inodes == fsd->inodes.nr && names == fsd->names.nr && file_names == file_links);
	assert(mapped + part.unused == part.total);
}

void check_tree(const struct fsd *fsd)
{
	struct table_walk w = { .table = &fsd->inodes }, names = { .table = &fsd->names };
	const struct fsd_inode *inode;
	const struct fsd_name *name;

	while ((name = step(&names)))
		check_name(name);
	while ((inode = step(&w))) {
		check_links(fsd, inode);
		check_opens(fsd, inode);
	}
	check_parts(fsd);
}

struct owners {
	uint64_t ino[BLOCKS_MAX];
	uint64_t bytes;
};

static void check_block(struct owners *now, const struct owners *last,
			const struct fsd_inode *inode, uint64_t offset, uint64_t block,
			uint8_t *memory)
{
	uint64_t used = inode->size > offset ? inode->size - offset : 0;

	assert(block < BLOCKS_MAX && !now->ino[block]);
	now->ino[block] = inode->ino;
	if (last->ino[block] != inode->ino)
		used = 0;
	if (used < FS_BLOCK)
		assert(!memory[used] && !memory[FS_BLOCK - 1]);
	if (inode->size > offset)
		memory[0] = 0x5a;
	if (inode->size >= offset + FS_BLOCK)
		memory[FS_BLOCK - 1] = 0x5a;
	else if (inode->size > offset)
		memory[inode->size - offset - 1] = 0x5a;
}

static void check_file(const struct fsd *fsd, const struct fsd_inode *inode, struct owners *now,
		       const struct owners *last)
{
	struct fsd_map_cursor place = fsd_map_seek(&inode->map, 0);
	const struct wire_fs_extent *e;
	uint64_t end = 0, bytes = 0;

	for (; (e = fsd_map_at(&place)); fsd_map_step(&place)) {
		assert(e->length && !((e->offset | e->length | e->volume) % FS_BLOCK));
		assert(e->offset >= end && e->volume + e->length <= fsd->space.total);
		for (uint64_t i = 0; i < e->length; i += FS_BLOCK)
			check_block(now, last, inode, e->offset + i, (e->volume + i) / FS_BLOCK,
				    fsd_space_memory(&fsd->space, e->volume + i));
		end = e->offset + e->length;
		bytes += e->length;
	}
	assert(bytes == inode->map.bytes);
	now->bytes += bytes;
}

void check_blocks(const struct fsd *fsd)
{
	static struct owners owners[2];
	static const struct fsd *checked;
	static unsigned int turn;
	struct table_walk w = { .table = &fsd->inodes };
	struct owners *now = &owners[++turn & 1], *last = &owners[~turn & 1];
	const struct fsd_inode *inode;

	if (checked != fsd || !fsd->space.nr_chunks)
		memset(last, 0, sizeof(*last));
	checked = fsd;
	memset(now, 0, sizeof(*now));
	while ((inode = step(&w))) {
		if (fsd_inode_is_file(inode))
			check_file(fsd, inode, now, last);
	}
	assert(now->bytes + fsd->space.free + fsd->space.dirty + fsd->space.limbo ==
	       fsd->space.total);
}

static void check_listing(const uint8_t *entries, size_t length)
{
	struct wire_fs_dirent entry;
	uint64_t cookie = 0;
	size_t size;

	for (; length; entries += size, length -= size) {
		assert(length >= sizeof(entry));
		memcpy(&entry, entries, sizeof(entry));
		size = sizeof(entry) + (entry.name_length + 7) / 8 * 8;
		assert(size <= length && entry.cookie > cookie);
		assert(entry.name_length && entry.name_length <= FS_NAME_MAX);
		cookie = entry.cookie;
	}
}

/* A map without its head. */
static void check_map(const uint8_t *body, size_t length)
{
	const size_t fixed = sizeof(struct wire_fs_map) - sizeof(struct wire_fs_reply);
	struct wire_fs_map map;
	struct wire_fs_extent e;
	uint64_t end = 0;

	assert(length >= fixed);
	memcpy((uint8_t *)&map + sizeof(map.reply), body, fixed);
	assert(map.extents <= FS_EXTENTS_MAX && length == fixed + map.extents * sizeof(e));
	for (uint32_t i = 0; i < map.extents; i++, end = e.offset + e.length) {
		memcpy(&e, body + fixed + i * sizeof(e), sizeof(e));
		assert(e.length && e.offset >= end && e.offset < map.end);
	}
}

/* Attributes, and perhaps a map. */
static void check_opened(const uint8_t *body, size_t length, size_t attrs)
{
	const size_t fixed = attrs * sizeof(struct wire_fs_attr);

	assert(length >= fixed);
	if (length > fixed)
		check_map(body + fixed, length - fixed);
}

void check_reply(uint8_t op, const uint8_t *reply, size_t length)
{
	size_t body = length - sizeof(struct wire_fs_reply);

	switch (op) {
	case FS_LOOKUP:
	case FS_GETATTR:
	case FS_SETATTR:
	case FS_COMMIT:
	case FS_CLOSE:
	case FS_FALLOCATE:
	case FS_SETXATTR:
	case FS_REMOVEXATTR:
		assert(body == sizeof(struct wire_fs_attr));
		break;
	case FS_LINK:
	case FS_UNLINK:
	case FS_RMDIR:
		assert(body == 2 * sizeof(struct wire_fs_attr));
		break;
	case FS_RENAME:
		assert(body == 4 * sizeof(struct wire_fs_attr));
		break;
	case FS_MAKE:
		check_opened(reply + sizeof(struct wire_fs_reply), body, 2);
		break;
	case FS_OPEN:
		check_opened(reply + sizeof(struct wire_fs_reply), body, 1);
		break;
	case FS_READDIR:
		check_listing(reply + sizeof(struct wire_fs_reply), body);
		break;
	case FS_MAP:
	case FS_ALLOC:
		check_map(reply + sizeof(struct wire_fs_reply), body);
		break;
	case FS_VOLUME:
		assert(body % sizeof(struct wire_fs_chunk) == 0);
		break;
	case FS_READLINK:
		assert(body && body <= FS_TARGET_MAX);
		break;
	case FS_LISTXATTR:
		assert(body <= FS_XATTR_MAX && (!body || !reply[length - 1]));
		break;
	case FS_GETXATTR:
		assert(body <= FS_XATTR_MAX);
		break;
	}
}
