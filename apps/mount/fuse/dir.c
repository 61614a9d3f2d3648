/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Directories. A reply of the donor holds about a hundred entries with attributes, and the kernel
 * takes a page at a time. The rest stays with the open directory. It is used if the kernel
 * continues there and this client has changed nothing meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/ops.h"

#define LISTING_MAX 1000 /* replies */

struct dir {
	LIST_ENTRY(dir) entry; /* in mount.dirs */
	pthread_mutex_t lock; /* guards the fields below */
	uint64_t cookie; /* of the last entry returned */
	unsigned long changes; /* mount.changes before the call to the donor */
	unsigned int phase; /* of the reply */
	struct names_ticket ticket; /* of the listing */
	bool whole; /* each reply of the listing has been learned, from the first name on */
	size_t at; /* of the next entry in reply */
	struct donor_reply reply;
};

static struct dir *open_dir(const struct fuse_file_info *fi)
{
	return (struct dir *)(uintptr_t)fi->fh;
}

void dirs_init(struct open_dirs *dirs)
{
	pthread_mutex_init(&dirs->lock, NULL);
	LIST_INIT(&dirs->list);
}

static void close_dir(struct open_dirs *dirs, struct dir *dir)
{
	pthread_mutex_lock(&dirs->lock);
	LIST_REMOVE(dir, entry);
	pthread_mutex_unlock(&dirs->lock);
	pthread_mutex_destroy(&dir->lock);
	free(dir);
}

void dirs_fini(struct open_dirs *dirs)
{
	while (!LIST_EMPTY(&dirs->list))
		close_dir(dirs, LIST_FIRST(&dirs->list));
	pthread_mutex_destroy(&dirs->lock);
}

void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct open_dirs *dirs = &mount_of(req)->dirs;
	struct dir *dir = malloc(sizeof(*dir));

	(void)ino;
	if (!dir) {
		op_reply(req, -ENOMEM);
		return;
	}
	pthread_mutex_init(&dir->lock, NULL);
	dir->cookie = 0;
	dir->at = dir->reply.length = 0;
	dir->whole = false;
	pthread_mutex_lock(&dirs->lock);
	LIST_INSERT_HEAD(&dirs->list, dir, entry);
	pthread_mutex_unlock(&dirs->lock);
	fi->fh = (uintptr_t)dir;
	if (fuse_reply_open(req, fi))
		close_dir(dirs, dir);
}

void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	close_dir(&mount_of(req)->dirs, open_dir(fi));
	fuse_reply_err(req, 0);
}

/* Reads the next entry and its name. Returns false at the end of the donor's reply. */
static bool peek_entry(const struct dir *dir, struct wire_fs_dirent *entry, char *name,
		       size_t *bytes)
{
	size_t left = dir->reply.length - dir->at;

	if (dir->reply.length <= dir->at || left < sizeof(*entry))
		return false;
	memcpy(entry, dir->reply.bytes + dir->at, sizeof(*entry));
	*bytes = sizeof(*entry) + (entry->name_length + 7) / 8 * 8;
	if (entry->name_length > FS_NAME_MAX || *bytes > left)
		return false;
	memcpy(name, dir->reply.bytes + dir->at + sizeof(*entry), entry->name_length);
	name[entry->name_length] = '\0';
	return true;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* An empty reply is the end of the listing. */
static void learn_names(struct mount *m, fuse_ino_t ino, struct dir *dir)
{
	const size_t begin = dir->at;
	struct inode *inode = inode_get(m, ino);
	struct wire_fs_dirent entry;
	char name[FS_NAME_MAX + 1];
	size_t bytes;

	if (!inode)
		return;
	dir->whole = dir->whole && dir->phase != SHARING_NO_PHASE;
	for (; peek_entry(dir, &entry, name, &bytes); dir->at += bytes)
		if (!is_dots(name) &&
		    !names_learn(inode, dir->ticket, dir->phase, name, entry.attr.ino))
			dir->whole = false;
	if (dir->at == begin && dir->whole)
		names_learn_all(inode, dir->ticket, dir->phase);
	dir->at = begin;
	inode_put(inode, 1);
}

/* Notes that a listing begins, or goes on elsewhere than it ended. */
static void begin_listing(struct mount *m, fuse_ino_t ino, struct dir *dir, uint64_t cookie)
{
	struct inode *inode = inode_get(m, ino);

	dir->whole = !cookie && inode;
	if (!inode)
		return;
	dir->ticket = names_note_question(inode);
	inode_put(inode, 1);
}

static int fetch_entries(struct mount *m, fuse_ino_t ino, struct dir *dir, uint64_t cookie)
{
	struct donor_message q;
	struct wire_fs_readdir *readdir = call_begin(&q, FS_READDIR, ino, sizeof(*readdir), NULL);
	int rc;

	if (!cookie || dir->cookie != cookie || !dir->whole)
		begin_listing(m, ino, dir, cookie);
	readdir->cookie = cookie;
	dir->changes = atomic_load(&m->changes);
	dir->cookie = cookie;
	dir->at = sizeof(struct wire_fs_reply);
	rc = call(m, &q, &dir->reply, 0);
	dir->phase = q.phase;
	if (rc)
		dir->reply.length = 0;
	else
		learn_names(m, ino, dir);
	return rc;
}

void dir_list_names(struct mount *m, fuse_ino_t ino)
{
	struct dir dir = { .cookie = 0 };
	struct wire_fs_dirent entry;
	char name[FS_NAME_MAX + 1];
	unsigned int replies = 0;
	size_t bytes;
	bool more;

	do {
		more = false;
		if (fetch_entries(m, ino, &dir, dir.cookie))
			return;
		for (; peek_entry(&dir, &entry, name, &bytes); dir.at += bytes, more = true)
			dir.cookie = entry.cookie;
	} while (more && dir.whole && ++replies < LISTING_MAX);
}

/* Return: the entry's size; if larger than @size, the entry was not added. */
static size_t add_entry(fuse_req_t req, char *page, size_t size, const struct wire_fs_dirent *entry,
			const char *name)
{
	struct stat st;

	attr_stat(&entry->attr, &st);
	return fuse_add_direntry(req, page, size, name, &st, (off_t)entry->cookie);
}

/*
 * The same with attributes. Counts as a lookup, except for "." and "..". Return: 0 if out of
 * memory.
 */
static size_t add_entry_plus(fuse_req_t req, char *page, size_t size,
			     const struct wire_fs_dirent *entry, const char *name,
			     unsigned int phase)
{
	struct fuse_entry_param param = { 0 };
	struct inode *inode;
	size_t bytes = fuse_add_direntry_plus(req, NULL, 0, name, NULL, 0);

	if (bytes > size)
		return bytes;
	if (is_dots(name)) {
		attr_stat(&entry->attr, &param.attr);
	} else {
		inode = inode_add(mount_of(req), &entry->attr, phase);
		if (!inode)
			return 0;
		entry_fill(inode, &param, phase);
	}
	return fuse_add_direntry_plus(req, page, size, name, &param, (off_t)entry->cookie);
}

static void read_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi, bool plus)
{
	struct mount *m = mount_of(req);
	struct dir *dir = open_dir(fi);
	struct wire_fs_dirent entry;
	char name[FS_NAME_MAX + 1];
	char *page = malloc(size);
	size_t used = 0, bytes;
	int rc = page ? 0 : -ENOMEM;

	pthread_mutex_lock(&dir->lock);
	if (!rc && (dir->cookie != (uint64_t)offset || !peek_entry(dir, &entry, name, &bytes) ||
		    dir->changes != atomic_load(&m->changes)))
		rc = fetch_entries(m, ino, dir, (uint64_t)offset);
	while (!rc && peek_entry(dir, &entry, name, &bytes)) {
		size_t taken = plus ? add_entry_plus(req, page + used, size - used, &entry, name,
						     dir->phase) :
				      add_entry(req, page + used, size - used, &entry, name);

		/* An empty page would mean the end of the directory. */
		if (!taken && !used)
			rc = -ENOMEM;
		if (!taken || taken > size - used)
			break;
		used += taken;
		dir->at += bytes;
		dir->cookie = entry.cookie;
	}
	pthread_mutex_unlock(&dir->lock);
	if (rc)
		op_reply(req, rc);
	else
		fuse_reply_buf(req, page, used);
	free(page);
}

void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		struct fuse_file_info *fi)
{
	read_dir(req, ino, size, offset, fi, false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	read_dir(req, ino, size, offset, fi, true);
}
