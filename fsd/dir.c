/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A single hash table holds all names of all directories, keyed by directory and text. Each
 * directory also keeps its names in an array in order of creation. A cookie is a name's number in
 * this order, so a listing resumes correctly even if names were added or removed meanwhile.
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/dir.h"
#include "fsd/inode.h"

#define COOKIE_DOT 1
#define COOKIE_DOTDOT 2
#define COOKIE_FIRST 3
#define LINKS_MAX 0x7fffffffu

void fsd_dir_init(struct fsd_inode *dir, struct fsd_inode *parent)
{
	dir->dir.parent = parent;
	dir->dir.next_cookie = COOKIE_FIRST;
}

void fsd_dir_fini(struct fsd_inode *dir)
{
	free(dir->dir.slot);
}

static uint64_t hash(const struct fsd *fsd, const struct fsd_inode *dir, struct fsd_text text)
{
	uint8_t key[8 + FS_NAME_MAX];
	uint64_t hash;

	memcpy(key, &dir->ino, 8);
	memcpy(key + 8, text.at, text.length);
	crypto_shorthash((uint8_t *)&hash, key, 8 + text.length, fsd->options.hash_key);
	return hash;
}

static struct fsd_name *find_name(const struct fsd *fsd, const struct fsd_inode *dir,
				  struct fsd_text text)
{
	struct fsd_hash_node *link = fsd_hashtable_first(&fsd->names, hash(fsd, dir, text));

	for (; link; link = fsd_hashtable_next(link)) {
		struct fsd_name *name = (struct fsd_name *)link;

		if (name->dir == dir && name->length == text.length &&
		    !memcmp(name->text, text.at, text.length))
			return name;
	}
	return NULL;
}

struct fsd_inode *fsd_dir_find(const struct fsd *fsd, const struct fsd_inode *dir,
			       struct fsd_text text)
{
	struct fsd_name *name = find_name(fsd, dir, text);

	return name ? name->inode : NULL;
}

/* The first slot with a cookie of at least @cookie. */
static uint32_t slot_of(const struct fsd_dir *dir, uint64_t cookie)
{
	uint32_t low = 0, high = dir->nr;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (dir->slot[mid].cookie < cookie)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Removes the slots of deleted names. */
static void compact_slots(struct fsd_dir *dir)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < dir->nr; i++) {
		if (dir->slot[i].name)
			dir->slot[nr++] = dir->slot[i];
	}
	dir->nr = nr;
}

static int slot_reserve(struct fsd_dir *dir)
{
	uint32_t room = dir->room ? dir->room * 2 : 4;
	struct fsd_slot *slot;

	if (dir->nr < dir->room)
		return 0;
	slot = realloc(dir->slot, room * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	dir->slot = slot;
	dir->room = room;
	return 0;
}

uint64_t fsd_dir_name_cost(struct fsd_text text)
{
	return sizeof(struct fsd_name) + text.length + 2 * sizeof(struct fsd_slot);
}

/* @cookie: higher than that of each name of the directory. */
static int insert_name(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text,
		       struct fsd_inode *inode, uint64_t cookie)
{
	struct fsd_name *name;
	int rc;

	rc = fsd_charge(fsd, fsd_dir_name_cost(text));
	if (rc)
		return rc;
	name = malloc(sizeof(*name) + text.length);
	if (!name || slot_reserve(&dir->dir)) {
		free(name);
		fsd_uncharge(fsd, fsd_dir_name_cost(text));
		return -ENOMEM;
	}
	name->dir = dir;
	name->inode = inode;
	name->cookie = cookie;
	dir->dir.next_cookie = cookie + 1;
	name->length = text.length;
	memcpy(name->text, text.at, text.length);
	dir->dir.slot[dir->dir.nr++] = (struct fsd_slot){ name->cookie, name };
	dir->dir.names++;
	fsd_hashtable_add(&fsd->names, &name->link, hash(fsd, dir, text));
	return 0;
}

static int name_add(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text,
		    struct fsd_inode *inode)
{
	if (!dir->nlink)
		return -ENOENT;
	return insert_name(fsd, dir, text, inode, dir->dir.next_cookie);
}

int fsd_dir_restore(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text,
		    struct fsd_inode *inode, uint64_t cookie)
{
	if (cookie < dir->dir.next_cookie || find_name(fsd, dir, text))
		return -EEXIST;
	return insert_name(fsd, dir, text, inode, cookie);
}

static void name_remove(struct fsd *fsd, struct fsd_name *name)
{
	struct fsd_dir *dir = &name->dir->dir;

	dir->slot[slot_of(dir, name->cookie)].name = NULL;
	dir->names--;
	if (dir->nr > 16 && dir->names < dir->nr / 2)
		compact_slots(dir);
	fsd_hashtable_remove(&fsd->names, &name->link);
	fsd_uncharge(fsd, fsd_dir_name_cost((struct fsd_text){ name->text, name->length }));
	free(name);
}

int fsd_dir_link(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text,
		 struct fsd_inode *inode)
{
	int rc;

	if (inode->nlink >= LINKS_MAX || dir->nlink >= LINKS_MAX)
		return -EMLINK;
	rc = name_add(fsd, dir, text, inode);
	if (rc)
		return rc;
	if (fsd_inode_is_dir(inode)) {
		fsd_dir_init(inode, dir);
		inode->nlink = 2;
		dir->nlink++;
	} else {
		inode->nlink++;
	}
	fsd_inode_changed(fsd, dir);
	fsd_inode_stamp(fsd, inode);
	return 0;
}

/* Drops a link of an inode after one of its names was removed or replaced. */
static void inode_unlinked(struct fsd *fsd, struct fsd_inode *dir, struct fsd_inode *inode)
{
	fsd_inode_stamp(fsd, inode);
	if (fsd_inode_is_dir(inode)) {
		inode->nlink = 0;
		/* the old parent may be freed before this directory, if this directory is open */
		inode->dir.parent = inode;
		dir->nlink--;
	} else {
		inode->nlink--;
	}
	fsd_inode_put(fsd, inode);
}

static void remove_name(struct fsd *fsd, struct fsd_name *name)
{
	struct fsd_inode *dir = name->dir, *inode = name->inode;

	name_remove(fsd, name);
	fsd_inode_changed(fsd, dir);
	inode_unlinked(fsd, dir, inode);
}

int fsd_dir_unlink(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text)
{
	struct fsd_name *name = find_name(fsd, dir, text);

	if (!name)
		return -ENOENT;
	if (fsd_inode_is_dir(name->inode))
		return -EISDIR;
	remove_name(fsd, name);
	return 0;
}

int fsd_dir_rmdir(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text)
{
	struct fsd_name *name = find_name(fsd, dir, text);

	if (!name)
		return -ENOENT;
	if (!fsd_inode_is_dir(name->inode))
		return -ENOTDIR;
	if (name->inode->dir.names)
		return -ENOTEMPTY;
	remove_name(fsd, name);
	return 0;
}

/* Whether @inode is @dir or an ancestor of @dir. */
static bool is_ancestor(const struct fsd_inode *inode, const struct fsd_inode *dir)
{
	if (!fsd_inode_is_dir(inode))
		return false;
	while (dir != inode && dir != dir->dir.parent)
		dir = dir->dir.parent;
	return dir == inode;
}

/* Moves the link that a directory's ".." counts for. */
static void reparent(struct fsd_inode *inode, struct fsd_inode *from, struct fsd_inode *to)
{
	if (!fsd_inode_is_dir(inode))
		return;
	inode->dir.parent = to;
	from->nlink--;
	to->nlink++;
}

static void stamp_renamed(struct fsd *fsd, struct fsd_name *a, struct fsd_inode *from,
			  struct fsd_inode *to)
{
	fsd_inode_changed(fsd, from);
	fsd_inode_changed(fsd, to);
	fsd_inode_stamp(fsd, a->inode);
}

static int exchange_names(struct fsd *fsd, struct fsd_name *a, struct fsd_name *b)
{
	struct fsd_inode *a_inode = a->inode;

	if (is_ancestor(a->inode, b->dir) || is_ancestor(b->inode, a->dir))
		return -EINVAL;
	reparent(a->inode, a->dir, b->dir);
	reparent(b->inode, b->dir, a->dir);
	a->inode = b->inode;
	b->inode = a_inode;
	stamp_renamed(fsd, a, b->dir, a->dir);
	fsd_inode_stamp(fsd, b->inode);
	return 0;
}

static int may_replace(const struct fsd_inode *inode, const struct fsd_inode *replaced)
{
	if (fsd_inode_is_dir(inode) && !fsd_inode_is_dir(replaced))
		return -ENOTDIR;
	if (!fsd_inode_is_dir(inode) && fsd_inode_is_dir(replaced))
		return -EISDIR;
	if (fsd_inode_is_dir(replaced) && replaced->dir.names)
		return -ENOTEMPTY;
	return 0;
}

static int replace_name(struct fsd *fsd, struct fsd_name *a, struct fsd_name *b)
{
	struct fsd_inode *from = a->dir, *replaced = b->inode;
	int rc = may_replace(a->inode, replaced);

	if (rc)
		return rc;
	reparent(a->inode, from, b->dir);
	b->inode = a->inode;
	name_remove(fsd, a);
	stamp_renamed(fsd, b, from, b->dir);
	inode_unlinked(fsd, b->dir, replaced);
	return 0;
}

static int move_name(struct fsd *fsd, struct fsd_name *a, struct fsd_inode *to,
		     struct fsd_text text)
{
	struct fsd_inode *from = a->dir, *inode = a->inode;
	int rc;

	if (to->nlink >= LINKS_MAX)
		return -EMLINK;
	rc = name_add(fsd, to, text, inode);
	if (rc)
		return rc;
	name_remove(fsd, a);
	reparent(inode, from, to);
	stamp_renamed(fsd, find_name(fsd, to, text), from, to);
	return 0;
}

int fsd_dir_rename(struct fsd *fsd, struct fsd_inode *from, struct fsd_text old,
		   struct fsd_inode *to, struct fsd_text new, uint32_t flags)
{
	struct fsd_name *a = find_name(fsd, from, old), *b = find_name(fsd, to, new);

	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE) ||
	    flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	if (!a || !to->nlink || (!b && flags & RENAME_EXCHANGE))
		return -ENOENT;
	if (b && flags & RENAME_NOREPLACE)
		return -EEXIST;
	if (flags & RENAME_EXCHANGE)
		return exchange_names(fsd, a, b);
	if (is_ancestor(a->inode, to))
		return -EINVAL;
	if (b && b->inode == a->inode) /* two names of the same file: POSIX requires a no-op */
		return 0;
	return b ? replace_name(fsd, a, b) : move_name(fsd, a, to, new);
}

static size_t dirent_size(uint32_t name_length)
{
	return sizeof(struct wire_fs_dirent) + (name_length + 7) / 8 * 8;
}

static size_t put_dirent(void *out, size_t room, uint64_t cookie, struct fsd_text text,
			 const struct fsd_inode *inode)
{
	struct wire_fs_dirent entry = { .cookie = cookie, .name_length = text.length };
	size_t size = dirent_size(text.length);

	if (size > room)
		return 0;
	fsd_inode_attr(inode, &entry.attr);
	memset(out, 0, size);
	memcpy(out, &entry, sizeof(entry));
	memcpy((char *)out + sizeof(entry), text.at, text.length);
	return size;
}

size_t fsd_dir_read(const struct fsd_inode *dir, uint64_t cookie, void *out, size_t room)
{
	const struct fsd_dir *d = &dir->dir;
	size_t used = 0, size;

	if (!dir->nlink)
		return 0;
	if (cookie < COOKIE_DOT)
		used += put_dirent(out, room, COOKIE_DOT, (struct fsd_text){ ".", 1 }, dir);
	if (cookie < COOKIE_DOTDOT)
		used += put_dirent((char *)out + used, room - used, COOKIE_DOTDOT,
				   (struct fsd_text){ "..", 2 }, d->parent);
	if (cookie == UINT64_MAX)
		return used;
	for (uint32_t i = slot_of(d, cookie + 1); i < d->nr; i++) {
		const struct fsd_name *name = d->slot[i].name;

		if (!name)
			continue;
		size = put_dirent((char *)out + used, room - used, name->cookie,
				  (struct fsd_text){ name->text, name->length }, name->inode);
		if (!size)
			break;
		used += size;
	}
	return used;
}
