/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fsd/client.h"
#include "fsd/dir.h"
#include "fsd/handle.h"
#include "fsd/image/format.h"
#include "fsd/image/image.h"
#include "fsd/inode.h"
#include "fsd/lock.h"
#include "fsd/op.h"
#include "fsd/xattr.h"

/**
 * struct loaded - an inode of an image
 * @inode: in the server
 * @in: as the image has it
 * @names: of a directory, in the image
 * @is_named: of a directory: its parent has its name
 */
struct loaded {
	struct fsd_inode *inode;
	struct image_inode in;
	struct fsd_reader names;
	bool is_named;
};

/**
 * struct loading - an image on its way to a server
 * @image: the rest to read
 * @fsd: the server
 * @calls: of the caller
 * @head: the image's
 * @inodes: @head.inodes entries
 * @used: all extents so far, each a wire_fs_extent
 */
struct loading {
	struct fsd_reader *image;
	struct fsd *fsd;
	const struct fsd_image_calls *calls;
	struct image_head head;
	struct loaded *inodes;
	struct fsd_bytes used;
};

static int load_extents(struct loading *l, struct fsd_inode *inode, uint32_t nr)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct wire_fs_extent e;

		if (!fsd_reader_get(l->image, &e, sizeof(e)) || !e.length || e.offset < end ||
		    (e.offset | e.length | e.volume) % FS_BLOCK || e.length > INT64_MAX ||
		    e.offset > INT64_MAX - e.length)
			return -EIO;
		end = e.offset + e.length;
		fsd_bytes_put(&l->used, &e, sizeof(e));
		if (fsd_map_insert(&inode->map, &e, l->fsd->options.chunk_bytes))
			return -ENOMEM;
	}
	return l->used.is_short ? -ENOMEM : 0;
}

static int load_xattrs(struct loading *l, struct fsd_inode *inode, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct image_xattr x;
		const char *text;

		if (!fsd_reader_get(l->image, &x, sizeof(x)) || x.name_length > FS_NAME_MAX ||
		    x.value_length > FS_XATTR_MAX)
			return -EIO;
		text = fsd_reader_skip(l->image, x.name_length + x.value_length);
		if (!text ||
		    fsd_xattr_set(l->fsd, inode, (struct fsd_text){ text, x.name_length },
				  (struct fsd_text){ text + x.name_length, x.value_length }, 0))
			return -EIO;
	}
	return 0;
}

/* Names are loaded after all inodes. */
static int skip_names(struct fsd_reader *image, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct image_name name;

		if (!fsd_reader_get(image, &name, sizeof(name)) || name.length > FS_NAME_MAX ||
		    !fsd_reader_skip(image, name.length))
			return -EIO;
	}
	return 0;
}

static int make_inode(struct loading *l, struct loaded *one)
{
	const struct image_inode *in = &one->in;
	const void *target = NULL;
	uint32_t length = 0;

	if (in->ino == FS_ROOT) {
		one->inode = l->fsd->root;
		if (!S_ISDIR(in->mode))
			return -EIO;
		one->inode->mode = in->mode;
		return 0;
	}
	if (S_ISLNK(in->mode)) {
		if (!in->size || in->size > FS_TARGET_MAX)
			return -EIO;
		length = (uint32_t)in->size;
		target = fsd_reader_skip(l->image, length);
		if (!target)
			return -EIO;
	}
	return fsd_inode_restore(l->fsd, in->ino, in->mode, target, length, &one->inode);
}

/* Names and opens are counted later. */
static void set_attributes(struct fsd_inode *inode, const struct image_inode *in)
{
	inode->size = in->size;
	inode->change = in->change;
	inode->epoch = in->epoch;
	inode->atime = in->atime;
	inode->mtime = in->mtime;
	inode->ctime = in->ctime;
	inode->uid = in->uid;
	inode->gid = in->gid;
	inode->rdev = in->rdev;
	inode->kept_end = in->kept_end;
	inode->nlink = 0;
}

static int load_inode(struct loading *l, struct loaded *one, uint64_t after)
{
	const struct image_inode *in = &one->in;
	int rc = 0;

	if (!fsd_reader_get(l->image, &one->in, sizeof(one->in)) || in->ino <= after ||
	    in->ino >= l->head.next_ino || in->size > INT64_MAX)
		return -EIO;
	rc = make_inode(l, one);
	if (rc)
		return rc == -ENOMEM ? rc : -EIO;
	one->names = *l->image;
	if (fsd_inode_is_dir(one->inode))
		rc = skip_names(l->image, in->parts);
	else if (fsd_inode_is_file(one->inode))
		rc = load_extents(l, one->inode, in->parts);
	if (!rc)
		rc = load_xattrs(l, one->inode, in->xattrs);
	set_attributes(one->inode, in);
	return rc;
}

static int set_parent(struct loading *l, const struct loaded *one)
{
	struct fsd_inode *parent = fsd_inode_find(l->fsd, one->in.parent);

	if (!parent || !fsd_inode_is_dir(parent) ||
	    (one->inode == l->fsd->root && parent != one->inode))
		return -EIO;
	fsd_dir_init(one->inode, parent);
	return 0;
}

static int compare_numbers(const void *key, const void *one)
{
	uint64_t ino = *(const uint64_t *)key, other = ((const struct loaded *)one)->in.ino;

	return ino < other ? -1 : ino > other;
}

/* The inode must be there. Inodes are in the order of their numbers. */
static struct loaded *find_loaded(const struct loading *l, uint64_t ino)
{
	return bsearch(&ino, l->inodes, l->head.inodes, sizeof(*l->inodes), compare_numbers);
}

/* A directory has one name, in its parent. It counts its own entry "." too. */
static int name_directory(struct loading *l, struct fsd_inode *dir, struct fsd_inode *inode)
{
	struct loaded *one = find_loaded(l, inode->ino);

	if (inode == l->fsd->root || inode == dir || inode->dir.parent != dir || one->is_named)
		return -EIO;
	one->is_named = true;
	inode->nlink += 2;
	dir->nlink++;
	return 0;
}

static int load_names(struct loading *l, struct loaded *one)
{
	struct fsd_inode *dir = one->inode, *inode;
	struct image_name name;
	int rc = 0;

	for (uint32_t i = 0; i < one->in.parts && !rc; i++) {
		struct fsd_text text;

		(void)fsd_reader_get(&one->names, &name, sizeof(name));
		text = (struct fsd_text){ fsd_reader_skip(&one->names, name.length), name.length };
		inode = fsd_inode_find(l->fsd, name.ino);
		if (!inode || !fsd_is_name(text) || name.cookie >= one->in.next_cookie)
			return -EIO;
		if (fsd_inode_is_dir(inode))
			rc = name_directory(l, dir, inode);
		else
			inode->nlink++;
		if (!rc)
			rc = fsd_dir_restore(l->fsd, dir, text, inode, name.cookie);
	}
	if (one->in.next_cookie < dir->dir.next_cookie)
		rc = -EIO;
	dir->dir.next_cookie = one->in.next_cookie;
	return rc;
}

/*
 * A directory is below the root, or it was removed while open: then it is its own parent, and
 * empty. One in a ring of directories would be looked for without end.
 */
static bool has_place(const struct loading *l, const struct loaded *one)
{
	const struct fsd_inode *dir = one->inode;

	if (dir != l->fsd->root && dir->dir.parent == dir)
		return !one->in.nlink && !one->in.parts;
	for (uint64_t steps = 0; dir != l->fsd->root; dir = dir->dir.parent) {
		if (dir->dir.parent == dir || ++steps == l->head.inodes)
			return false;
	}
	return true;
}

/* Each directory has a name in its parent, unless it is its own parent. */
static int check_named(const struct loading *l)
{
	for (uint64_t i = 0; i < l->head.inodes; i++) {
		const struct loaded *one = &l->inodes[i];

		if (fsd_inode_is_dir(one->inode) &&
		    one->is_named != (one->inode->dir.parent != one->inode))
			return -EIO;
	}
	return 0;
}

static int load_tree(struct loading *l)
{
	int rc = 0;

	for (uint64_t i = 0; i < l->head.inodes && !rc; i++)
		rc = load_inode(l, &l->inodes[i], i ? l->inodes[i - 1].in.ino : 0);
	if (!rc && l->inodes[0].in.ino != FS_ROOT)
		rc = -EIO;
	for (uint64_t i = 0; i < l->head.inodes && !rc; i++) {
		if (fsd_inode_is_dir(l->inodes[i].inode))
			rc = set_parent(l, &l->inodes[i]);
	}
	l->fsd->root->nlink = 2;
	for (uint64_t i = 0; i < l->head.inodes && !rc; i++) {
		if (!fsd_inode_is_dir(l->inodes[i].inode))
			continue;
		rc = has_place(l, &l->inodes[i]) ? load_names(l, &l->inodes[i]) : -EIO;
	}
	if (!rc)
		rc = check_named(l);
	return rc == -ENOMEM ? rc : rc ? -EIO : 0;
}

static int compare_places(const void *a, const void *b)
{
	uint64_t left = ((const struct wire_fs_extent *)a)->volume;
	uint64_t right = ((const struct wire_fs_extent *)b)->volume;

	return left < right ? -1 : left > right;
}

/* Takes the extents from the free space. So no two extents overlap. */
static int claim_space(struct loading *l)
{
	struct wire_fs_extent *used = (struct wire_fs_extent *)l->used.at;
	size_t nr = l->used.length / sizeof(*used);
	uint64_t end = 0;

	fsd_space_grow(&l->fsd->space);
	if (!l->fsd->space.total)
		return -ENOMEM;
	if (nr)
		qsort(used, nr, sizeof(*used), compare_places);
	for (size_t i = 0; i < nr; i++) {
		if (used[i].volume < end ||
		    !fsd_space_claim(&l->fsd->space, end, used[i].volume, used[i].length))
			return -EIO;
		end = used[i].volume + used[i].length;
	}
	return 0;
}

static int load_client(struct loading *l)
{
	struct fsd_client *client;
	struct image_client in;
	int rc = 0;

	if (!fsd_reader_get(l->image, &in, sizeof(in)) || in.id >= l->head.next_client ||
	    fsd_client_find(l->fsd, in.id))
		return -EIO;
	if (fsd_join(l->fsd, NULL, &client))
		return -ENOMEM;
	client->id = in.id;
	client->state = in.is_mounted ? FSD_MOUNTED : FSD_NEW;
	for (uint32_t i = 0; i < in.handles && !rc; i++) {
		struct image_handle handle;
		struct fsd_inode *inode = NULL;

		if (fsd_reader_get(l->image, &handle, sizeof(handle)))
			inode = fsd_inode_find(l->fsd, handle.ino);
		if (!inode || !handle.opens || handle.opens > UINT32_MAX - inode->opens ||
		    fsd_handle_is_open(client, inode))
			return -EIO;
		rc = fsd_handle_open(client, inode);
		if (!rc)
			fsd_handle_count(client, inode, handle.opens - 1);
	}
	return rc ? -ENOMEM : 0;
}

/* Whether a call waits for a lock already. */
static bool is_waiting(const struct fsd_client *client, const void *call)
{
	const struct fsd_wait *wait;

	TAILQ_FOREACH(wait, &client->waits, of_client) {
		if (wait->call == call)
			return true;
	}
	return false;
}

/* No server that runs has a lock that its lists refuse. */
static int refusal(int rc)
{
	return rc && rc != -ENOMEM ? -EIO : rc;
}

static int load_lock(struct loading *l, struct fsd_inode *inode, bool waits)
{
	struct fsd_lock lock;
	struct image_lock in;
	void *call;

	if (!fsd_reader_get(l->image, &in, sizeof(in)) || in.start > in.end)
		return -EIO;
	lock = (struct fsd_lock){
		.client = fsd_client_find(l->fsd, in.client),
		.owner = in.owner,
		.start = in.start,
		.end = in.end,
		.type = in.type,
		.pid = in.pid,
		.flock = in.is_flock,
	};
	if (!lock.client || !fsd_handle_is_open(lock.client, inode) ||
	    (in.type != F_RDLCK && in.type != F_WRLCK))
		return -EIO;
	if (!waits)
		return refusal(fsd_lock_add(l->fsd, inode, &lock, in.has_spare));
	call = l->calls->call(l->calls->arg, in.client, in.call);
	if (!call || is_waiting(lock.client, call))
		return -EIO;
	return refusal(fsd_lock_wait_add(inode, &lock, in.cancel, call));
}

static int load_locks(struct loading *l)
{
	struct image_locks in;
	struct fsd_inode *inode;
	int rc = 0;

	if (!fsd_reader_get(l->image, &in, sizeof(in)))
		return -EIO;
	inode = fsd_inode_find(l->fsd, in.ino);
	if (!inode)
		return -EIO;
	for (uint32_t i = 0; i < in.held && !rc; i++)
		rc = load_lock(l, inode, false);
	for (uint32_t i = 0; i < in.waiting && !rc; i++)
		rc = load_lock(l, inode, true);
	return rc;
}

/* Each inode has as many names as it says, and lives by a name or an open. */
static int check_links(const struct loading *l)
{
	for (uint64_t i = 0; i < l->head.inodes; i++) {
		const struct loaded *one = &l->inodes[i];

		if (one->inode->nlink != one->in.nlink || (!one->in.nlink && !one->inode->opens))
			return -EIO;
	}
	return 0;
}

static int load_all(struct loading *l)
{
	int rc = 0;

	if (!fsd_reader_get(l->image, &l->head, sizeof(l->head)) ||
	    l->head.magic != IMAGE_MAGIC || !l->head.inodes ||
	    l->head.inodes > l->image->left / sizeof(struct image_inode))
		return -EIO;
	l->inodes = calloc(l->head.inodes, sizeof(*l->inodes));
	if (!l->inodes)
		return -ENOMEM;
	rc = load_tree(l);
	if (!rc)
		rc = claim_space(l);
	for (uint64_t i = 0; i < l->head.clients && !rc; i++)
		rc = load_client(l);
	if (!rc)
		rc = check_links(l);
	for (uint64_t i = 0; i < l->head.locks && !rc; i++)
		rc = load_locks(l);
	l->fsd->next_ino = l->head.next_ino;
	l->fsd->next_client = l->head.next_client;
	return rc;
}

int fsd_image_load(const struct fsd_host *host, const struct fsd_options *options,
		   const struct fsd_image_calls *calls, struct fsd_reader *image,
		   struct fsd **fsd)
{
	struct loading l = { .image = image, .calls = calls };
	int rc = fsd_open(host, options, &l.fsd);

	if (rc)
		return rc;
	l.fsd->is_loading = true;
	rc = load_all(&l);
	l.fsd->is_loading = false;
	free(l.inodes);
	fsd_bytes_free(&l.used);
	if (rc)
		fsd_close(l.fsd);
	else
		*fsd = l.fsd;
	return rc;
}
