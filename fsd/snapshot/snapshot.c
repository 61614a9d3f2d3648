/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The copy shares no memory with the original: clients write to extents one-sidedly, so no write
 * could be noticed in time to separate a shared block.
 *
 * The root of the copy has no name until all is copied, and looks like a directory of the root
 * meanwhile. All its inodes have numbers from @first on. A copy that fails is removed name by
 * name, the last of a directory first, so that each takes the same time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/client.h"
#include "fsd/data/file.h"
#include "fsd/deferred.h"
#include "fsd/inode.h"
#include "fsd/snapshot/snapshot.h"
#include "fsd/xattr.h"

#define SLICE 1024 /* units of work, of about a microsecond each */
#define UNIT_BYTES 2048
#define NAME_UNITS 2
#define PIECE_BYTES (256u << 10) /* copied in one go */
#define XATTRS_PER_UNIT 8 /* looked at */

/* A directory to be filled. */
struct snapshot_pair {
	struct fsd_inode *from, *to;
};

/* A file with several names, copied at the first. */
struct snapshot_linked {
	struct fsd_hash_node link;
	struct snapshot_linked *next;
	struct fsd_inode *from, *to;
};

enum snapshot_phase {
	SNAPSHOT_MEASURES,
	SNAPSHOT_COPIES, /* requests wait until here */
	SNAPSHOT_REMOVES, /* the copy, which is not whole */
	SNAPSHOT_FORGETS, /* @all_linked */
};

struct fsd_snapshot {
	struct fsd *fsd;
	struct fsd_client *client;
	void *call;
	uint64_t until_ns;
	enum snapshot_phase phase;
	unsigned int left; /* units of this slice */
	struct fsd_inode *dir, *parent;
	struct fsd_inode *copy; /* NULL: there is none, or it has its name */
	uint64_t first, end; /* numbers of the copy */
	struct snapshot_pair *pair; /* to be looked at from @done on */
	size_t done, nr, room;
	uint32_t slot; /* next, of pair @done */
	struct fsd_inode *from, *to; /* being copied, or NULL */
	uint64_t at; /* in @from */
	const struct fsd_xattr *xattr; /* next, of @from */
	struct fsd_inode *emptied; /* of the copy, being removed */
	uint64_t names, bytes, meta;
	struct fsd_hashtable linked;
	struct snapshot_linked *all_linked;
	uint32_t name_length;
	char name[FS_NAME_MAX];
};

static void spend(struct fsd_snapshot *s, uint64_t units)
{
	s->left = units < s->left ? s->left - (unsigned int)units : 0;
}

static int add_pair(struct fsd_snapshot *s, struct fsd_inode *from, struct fsd_inode *to)
{
	if (s->nr == s->room) {
		const size_t room = s->room ? 2 * s->room : 64;
		struct snapshot_pair *bigger = realloc(s->pair, room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		s->pair = bigger;
		s->room = room;
	}
	s->pair[s->nr++] = (struct snapshot_pair){ from, to };
	return 0;
}

/* The next name of the directories, unless it is left out. Return: NULL: look again. */
static const struct fsd_name *next_name(struct fsd_snapshot *s)
{
	const struct fsd_dir *d = &s->pair[s->done].from->dir;
	const struct fsd_name *name = d->slot[s->slot++].name;

	spend(s, 1);
	return name && name->inode != s->parent ? name : NULL;
}

/* End of the blocks that are copied: blocks ahead of a writer are not. */
static uint64_t copied_end(const struct fsd_inode *file)
{
	const uint64_t end = file->size > file->kept_end ? file->size : file->kept_end;

	return (end + FS_BLOCK - 1) / FS_BLOCK * FS_BLOCK;
}

/* At most. A file with n names counts n times. */
static uint64_t bytes_to_copy(const struct fsd_inode *file)
{
	const uint64_t end = copied_end(file);

	return file->map.bytes < end ? file->map.bytes : end;
}

static uint64_t measure_inode(struct fsd_snapshot *s, const struct fsd_inode *inode)
{
	uint64_t cost = fsd_inode_cost(inode);
	const struct fsd_xattr *x;
	unsigned int nr = 0;

	TAILQ_FOREACH(x, &inode->xattrs, entry) {
		cost += fsd_xattr_cost(x);
		nr++;
	}
	spend(s, nr / XATTRS_PER_UNIT);
	return cost;
}

static int measure_name(struct fsd_snapshot *s, const struct fsd_name *name)
{
	s->names++;
	s->meta += measure_inode(s, name->inode) +
		   fsd_dir_name_cost((struct fsd_text){ name->text, name->length });
	if (fsd_inode_is_file(name->inode))
		s->bytes += bytes_to_copy(name->inode);
	if (s->names > FS_SNAPSHOT_NAMES_MAX || s->bytes > FS_SNAPSHOT_BYTES_MAX)
		return -EFBIG;
	return fsd_inode_is_dir(name->inode) ? add_pair(s, name->inode, NULL) : 0;
}

/* Whether there is room for all. Other changes wait, so the room stays. */
static int begin_copy(struct fsd_snapshot *s)
{
	struct fsd *fsd = s->fsd;
	int rc;

	if (s->meta > fsd_meta_room(fsd) ||
	    s->bytes > fsd_space_room(&fsd->space) + fsd->space.limbo)
		return -ENOSPC;
	s->nr = s->done = 0;
	s->phase = SNAPSHOT_COPIES;
	rc = fsd_inode_new(fsd, s->dir->mode, 0, NULL, 0, &s->copy);
	if (rc)
		return rc;
	fsd_dir_init(s->copy, fsd->root);
	s->copy->nlink = 2;
	s->from = s->dir;
	s->to = s->copy;
	s->xattr = TAILQ_FIRST(&s->dir->xattrs);
	return add_pair(s, s->dir, s->copy);
}

static int measure_step(struct fsd_snapshot *s)
{
	const struct fsd_name *name;

	if (s->done == s->nr)
		return begin_copy(s);
	if (s->slot == s->pair[s->done].from->dir.nr) {
		s->done++;
		s->slot = 0;
		spend(s, 1);
		return 0;
	}
	name = next_name(s);
	return name ? measure_name(s, name) : 0;
}

/* The extents of @to get the bytes of @e from @begin to @end. */
static void copy_bytes(struct fsd *fsd, const struct wire_fs_extent *e, struct fsd_inode *to,
		       uint64_t begin, uint64_t end)
{
	const uint8_t *source = fsd_space_memory(&fsd->space, e->volume);
	struct fsd_map_cursor place = fsd_map_seek(&to->map, begin);
	const struct wire_fs_extent *t;

	for (; (t = fsd_map_at(&place)) && t->offset < end; fsd_map_step(&place)) {
		const uint64_t from = t->offset > begin ? t->offset : begin;
		const uint64_t stop = t->offset + t->length < end ? t->offset + t->length : end;

		memcpy((uint8_t *)fsd_space_memory(&fsd->space, t->volume) + (from - t->offset),
		       source + (from - e->offset), stop - from);
	}
}

/* Copies a piece of the file. Return: 1: all is copied; 0; -EINPROGRESS; another error. */
static int copy_piece(struct fsd_snapshot *s)
{
	struct fsd_map_cursor place = fsd_map_seek(&s->from->map, s->at);
	const struct wire_fs_extent *e = fsd_map_at(&place);
	uint64_t begin, end = copied_end(s->from);
	int rc;

	if (!e || e->offset >= end || s->at >= end) {
		s->to->size = s->from->size;
		s->to->kept_end = s->from->kept_end;
		return 1;
	}
	begin = e->offset > s->at ? e->offset : s->at;
	if (end > e->offset + e->length)
		end = e->offset + e->length;
	if (end > begin + PIECE_BYTES)
		end = begin + PIECE_BYTES;
	rc = fsd_file_fill(s->fsd, s->to, begin, end - begin);
	if (rc)
		return rc;
	copy_bytes(s->fsd, e, s->to, begin, end);
	s->at = end;
	spend(s, NAME_UNITS + (end - begin) / UNIT_BYTES);
	return 0;
}

static int copy_xattr(struct fsd_snapshot *s)
{
	const struct fsd_xattr *x = s->xattr;
	const struct fsd_text name = { x->text, x->name_length };
	const struct fsd_text value = { x->text + x->name_length, x->value_length };

	s->xattr = TAILQ_NEXT(x, entry);
	spend(s, NAME_UNITS + value.length / UNIT_BYTES);
	return fsd_xattr_set(s->fsd, s->to, name, value, 0);
}

/* All that names and times of making have left. */
static void copy_attr(const struct fsd_inode *from, struct fsd_inode *to)
{
	to->uid = from->uid;
	to->gid = from->gid;
	to->atime = from->atime;
	to->mtime = from->mtime;
	to->ctime = from->ctime;
}

static struct snapshot_linked *find_linked(const struct fsd_snapshot *s,
					   const struct fsd_inode *from)
{
	struct fsd_hash_node *link = fsd_hashtable_first(&s->linked, from->ino);

	while (link && ((struct snapshot_linked *)link)->from != from)
		link = fsd_hashtable_next(link);
	return (struct snapshot_linked *)link;
}

static int add_linked(struct fsd_snapshot *s, struct fsd_inode *from, struct fsd_inode *to)
{
	struct snapshot_linked *linked = malloc(sizeof(*linked));

	if (!linked)
		return -ENOMEM;
	linked->from = from;
	linked->to = to;
	linked->next = s->all_linked;
	s->all_linked = linked;
	fsd_hashtable_add(&s->linked, &linked->link, from->ino);
	return 0;
}

/* Makes the copy, and begins with what it holds. */
static int copy_inode(struct fsd_snapshot *s, struct fsd_inode *from, struct fsd_inode *dir,
		      struct fsd_text name)
{
	const bool is_link = S_ISLNK(from->mode), is_dir = fsd_inode_is_dir(from);
	int rc = fsd_inode_new(s->fsd, from->mode, from->rdev, is_link ? from->target : NULL,
			       is_link ? (uint32_t)from->size : 0, &s->to);

	if (rc)
		return rc;
	rc = fsd_dir_link(s->fsd, dir, name, s->to);
	if (rc) {
		fsd_inode_put(s->fsd, s->to);
		return rc;
	}
	s->from = from;
	s->at = 0;
	s->xattr = TAILQ_FIRST(&from->xattrs);
	if (is_dir)
		return add_pair(s, from, s->to);
	return from->nlink > 1 ? add_linked(s, from, s->to) : 0;
}

static int copy_name(struct fsd_snapshot *s, const struct fsd_name *name, struct fsd_inode *to)
{
	const struct fsd_text text = { name->text, name->length };
	struct fsd_inode *from = name->inode;
	struct snapshot_linked *linked =
		!fsd_inode_is_dir(from) && from->nlink > 1 ? find_linked(s, from) : NULL;
	int rc;

	spend(s, NAME_UNITS);
	if (!linked)
		return copy_inode(s, from, to, text);
	rc = fsd_dir_link(s->fsd, to, text, linked->to);
	copy_attr(from, linked->to);
	return rc;
}

static void answer(struct fsd_snapshot *s, int status, const struct fsd_inode *copy)
{
	struct {
		struct wire_fs_reply head;
		struct wire_fs_attr attr;
	} reply;

	s->phase = s->copy ? SNAPSHOT_REMOVES : SNAPSHOT_FORGETS;
	s->emptied = s->copy;
	s->end = s->fsd->next_ino;
	if (copy) {
		reply.head = fsd_client_reply(s->client, 0);
		fsd_inode_attr(copy, &reply.attr);
		s->fsd->host.answer(s->fsd->host.arg, s->call, &reply, sizeof(reply));
	} else {
		fsd_client_answer(s->client, s->call, status);
	}
	s->client = NULL;
	fsd_deferred_thaw(s->fsd);
}

/* Gives the copy its name. */
static int publish(struct fsd_snapshot *s)
{
	struct fsd_inode *copy = s->copy;
	const uint64_t next_cookie = copy->dir.next_cookie;
	const uint32_t nlink = copy->nlink;
	int rc;

	rc = fsd_dir_link(s->fsd, s->parent, (struct fsd_text){ s->name, s->name_length }, copy);
	if (rc)
		return rc;
	copy->nlink = nlink;
	copy->dir.next_cookie = next_cookie;
	copy_attr(s->dir, copy);
	s->copy = NULL;
	answer(s, 0, copy);
	return 0;
}

static int copy_step(struct fsd_snapshot *s)
{
	const struct snapshot_pair *pair = &s->pair[s->done];
	const struct fsd_name *name;
	int rc = 1;

	if (s->from && s->xattr)
		return copy_xattr(s);
	if (s->from) {
		if (fsd_inode_is_file(s->from))
			rc = copy_piece(s);
		if (rc > 0) {
			copy_attr(s->from, s->to);
			s->from = NULL;
		}
		return rc < 0 ? rc : 0;
	}
	if (s->done == s->nr)
		return publish(s);
	if (s->slot == pair->from->dir.nr) {
		copy_attr(pair->from, pair->to);
		s->done++;
		s->slot = 0;
		spend(s, 1);
		return 0;
	}
	name = next_name(s);
	return name ? copy_name(s, name, pair->to) : 0;
}

static unsigned int nr_xattrs(const struct fsd_inode *inode)
{
	const struct fsd_xattr *x;
	unsigned int nr = 0;

	TAILQ_FOREACH(x, &inode->xattrs, entry)
		nr++;
	return nr;
}

static void remove_step(struct fsd_snapshot *s)
{
	struct fsd_inode *dir = s->emptied;
	const struct fsd_name *last;
	struct fsd_text text;

	spend(s, NAME_UNITS);
	if (!dir->dir.names && dir == s->copy) {
		s->copy = NULL;
		s->phase = SNAPSHOT_FORGETS;
		dir->nlink = 0;
		fsd_inode_put(s->fsd, dir);
		return;
	}
	if (!dir->dir.names) {
		s->emptied = dir->dir.parent;
		return;
	}
	while (!dir->dir.slot[dir->dir.nr - 1].name)
		dir->dir.nr--;
	last = dir->dir.slot[dir->dir.nr - 1].name;
	text = (struct fsd_text){ last->text, last->length };
	if (fsd_inode_is_dir(last->inode) && last->inode->dir.names) {
		s->emptied = last->inode;
		return;
	}
	spend(s, nr_xattrs(last->inode) / XATTRS_PER_UNIT);
	if (fsd_inode_is_dir(last->inode))
		fsd_dir_rmdir(s->fsd, dir, text);
	else
		fsd_dir_unlink(s->fsd, dir, text);
}

/* Return: whether something is left. */
static bool forget_step(struct fsd_snapshot *s)
{
	struct snapshot_linked *linked = s->all_linked;

	if (!linked)
		return false;
	s->all_linked = linked->next;
	free(linked);
	spend(s, 1);
	return true;
}

void fsd_snapshot_fini(struct fsd *fsd)
{
	struct fsd_snapshot *s = fsd->snapshot;

	if (!s)
		return;
	while (forget_step(s))
		;
	fsd_hashtable_fini(&s->linked);
	free(s->pair);
	free(s);
	fsd->snapshot = NULL;
}

/* Return: -EINPROGRESS: the rest of the slice would be in vain. */
static int freezing_step(struct fsd_snapshot *s)
{
	return s->phase == SNAPSHOT_MEASURES ? measure_step(s) : copy_step(s);
}

void fsd_snapshot_work(struct fsd *fsd)
{
	struct fsd_snapshot *s = fsd->snapshot;
	int rc = 0;

	if (!s)
		return;
	fsd->changes++;
	s->left = SLICE;
	if (fsd_snapshot_freezes(fsd) && fsd->host.clock_ns(fsd->host.arg) >= s->until_ns)
		rc = -ETIMEDOUT;
	while (!rc && s->left && fsd_snapshot_freezes(fsd))
		rc = freezing_step(s);
	if (rc && rc != -EINPROGRESS)
		answer(s, rc, NULL);
	while (s->left && s->phase == SNAPSHOT_REMOVES)
		remove_step(s);
	while (s->left && s->phase == SNAPSHOT_FORGETS && forget_step(s))
		;
	if (s->phase == SNAPSHOT_FORGETS && !s->all_linked)
		fsd_snapshot_fini(fsd);
}

int fsd_snapshot_begin(struct fsd_client *client, void *call, struct fsd_inode *dir,
		       struct fsd_inode *parent, struct fsd_text name, uint32_t patience_ms)
{
	struct fsd *fsd = client->fsd;
	struct fsd_snapshot *s;

	if (fsd->snapshot)
		return -EAGAIN;
	if (!parent->nlink)
		return -ENOENT;
	if (fsd_dir_find(fsd, parent, name))
		return -EEXIST;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (patience_ms > FS_SNAPSHOT_MS_MAX)
		patience_ms = FS_SNAPSHOT_MS_MAX;
	*s = (struct fsd_snapshot){
		.fsd = fsd,
		.client = client,
		.call = call,
		.until_ns = fsd->host.clock_ns(fsd->host.arg) + patience_ms * 1000000ull,
		.dir = dir,
		.parent = parent,
		.first = fsd->next_ino,
		.end = UINT64_MAX,
		.name_length = name.length,
	};
	memcpy(s->name, name.at, name.length);
	s->meta = measure_inode(s, dir) + fsd_dir_name_cost(name);
	if (fsd_hashtable_init(&s->linked) || add_pair(s, dir, NULL)) {
		fsd_hashtable_fini(&s->linked);
		free(s);
		return -ENOMEM;
	}
	fsd->snapshot = s;
	return 0;
}

bool fsd_snapshot_freezes(const struct fsd *fsd)
{
	return fsd->snapshot && fsd->snapshot->phase <= SNAPSHOT_COPIES;
}

bool fsd_snapshot_hides(const struct fsd *fsd, uint64_t ino)
{
	const struct fsd_snapshot *s = fsd->snapshot;

	return s && s->copy && ino >= s->first && ino < s->end;
}

void fsd_snapshot_drop(struct fsd_client *client)
{
	struct fsd_snapshot *s = client->fsd->snapshot;

	if (s && s->client == client)
		answer(s, -ECONNRESET, NULL);
}
