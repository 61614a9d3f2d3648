/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations on names: lookup, creation, renaming and removal. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/fuse/ops.h"

void entry_fill(struct inode *inode, struct fuse_entry_param *entry)
{
	double seconds = sharing_cache_seconds(&inode->mount->share);

	*entry = (struct fuse_entry_param){
		.ino = inode->ino,
		.attr_timeout = seconds,
		.entry_timeout = seconds,
	};
	inode_stat(inode, &entry->attr);
}

static void forget_lookups(struct mount *m, uint64_t ino, uint64_t lookups)
{
	struct inode *inode = inode_get(m, ino);

	if (inode)
		inode_put(inode, lookups + 1);
}

void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	forget_lookups(mount_of(req), ino, lookups);
	fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		forget_lookups(mount_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void reply_entry(fuse_req_t req, int rc, const struct wire_fs_attr *attr,
			unsigned int phase)
{
	struct fuse_entry_param entry;
	struct inode *inode = rc ? NULL : inode_add(mount_of(req), attr, phase);

	if (!inode) {
		op_reply(req, rc ? rc : -ENOMEM);
		return;
	}
	entry_fill(inode, &entry);
	if (fuse_reply_entry(req, &entry))
		inode_put(inode, 1);
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct mount *m = mount_of(req);
	struct donor_message q;
	struct wire_fs_attr attr;
	int rc;

	call_begin(&q, FS_LOOKUP, parent, sizeof(struct wire_fs_head), req);
	rc = call_add_name(&q, name);
	if (!rc)
		rc = call_attr(m, &q, &attr);
	if (rc == -ENOENT && sharing_cache_seconds(&m->share) > 0) {
		/* The absence of a name may be cached, too. */
		const struct fuse_entry_param none = {
			.entry_timeout = sharing_cache_seconds(&m->share),
		};

		fuse_reply_entry(req, &none);
		return;
	}
	reply_entry(req, rc, &attr, q.phase);
}

int entry_change(struct mount *m, struct donor_message *q, struct donor_reply *reply,
		 struct wire_fs_attr *attrs, unsigned int nr)
{
	int rc = call_change(m, q, reply, nr * sizeof(*attrs));

	if (rc)
		return rc;
	memcpy(attrs, call_reply_body(reply), nr * sizeof(*attrs));
	for (unsigned int i = 0; i < nr; i++)
		inode_learn_changed(m, &attrs[i], q->phase);
	return 0;
}

static void make(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev,
		 const char *target)
{
	struct mount *m = mount_of(req);
	size_t target_length = strlen(target);
	struct donor_message q;
	struct wire_fs_make *make = call_begin(&q, FS_MAKE, parent, sizeof(*make), req);
	struct donor_reply reply;
	struct wire_fs_attr attrs[2]; /* the new inode's, the directory's */
	int rc;

	make->mode = mode;
	make->rdev = (uint32_t)rdev;
	make->make = FS_MAKE_EXCLUSIVE;
	make->target_length = (uint32_t)target_length;
	rc = target_length > FS_TARGET_MAX ? -ENAMETOOLONG : call_add_name(&q, name);
	if (!rc)
		rc = call_add_bytes(&q, target, target_length);
	if (!rc)
		rc = entry_change(m, &q, &reply, attrs, 2);
	reply_entry(req, rc, &attrs[0], q.phase);
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	make(req, parent, name, mode, rdev, "");
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	make(req, parent, name, (mode & ~(mode_t)S_IFMT) | S_IFDIR, 0, "");
}

void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	make(req, parent, name, S_IFLNK | 0777, 0, target);
}

/* Commits first, because the reply contains the inode's attributes. */
static void commit_ahead(struct mount *m, fuse_ino_t ino)
{
	struct inode *inode = inode_get(m, ino);

	if (!inode)
		return;
	inode_commit_ahead(inode);
	inode_put(inode, 1);
}

void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct mount *m = mount_of(req);
	struct donor_message q;
	struct wire_fs_link *link = call_begin(&q, FS_LINK, ino, sizeof(*link), req);
	struct donor_reply reply;
	struct wire_fs_attr attrs[2]; /* the inode's, the directory's */
	int rc = call_add_name(&q, name);

	link->parent = parent;
	commit_ahead(m, ino);
	if (!rc)
		rc = entry_change(m, &q, &reply, attrs, 2);
	reply_entry(req, rc, &attrs[0], q.phase);
}

void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct donor_message q;
	struct donor_reply reply;
	char target[FS_TARGET_MAX + 1];
	size_t length;
	int rc;

	call_begin(&q, FS_READLINK, ino, sizeof(struct wire_fs_head), req);
	rc = call(mount_of(req), &q, &reply, 0);
	length = reply.length - sizeof(reply.head);
	if (!rc && length > FS_TARGET_MAX)
		rc = -EIO;
	if (rc) {
		op_reply(req, rc);
		return;
	}
	memcpy(target, call_reply_body(&reply), length);
	target[length] = '\0';
	fuse_reply_readlink(req, target);
}

static void remove_name(fuse_req_t req, enum wire_fs_op op, fuse_ino_t parent, const char *name)
{
	struct mount *m = mount_of(req);
	struct donor_message q;
	struct donor_reply reply;
	struct wire_fs_attr attrs[2]; /* the directory's, the inode's */
	int rc;

	call_begin(&q, op, parent, sizeof(struct wire_fs_head), req);
	rc = call_add_name(&q, name);
	if (!rc)
		rc = entry_change(m, &q, &reply, attrs, 2);
	op_reply(req, rc);
}

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, FS_UNLINK, parent, name);
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, FS_RMDIR, parent, name);
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	       const char *new_name, unsigned int flags)
{
	struct mount *m = mount_of(req);
	struct donor_message q;
	struct wire_fs_rename *rename = call_begin(&q, FS_RENAME, parent, sizeof(*rename), req);
	struct donor_reply reply;
	struct wire_fs_attr attrs[4]; /* both directories', the inode's, that of the one replaced */
	size_t new_length = strlen(new_name);
	int rc = call_add_name(&q, name);

	rename->parent = new_parent;
	rename->flags = flags;
	rename->new_length = (uint32_t)new_length;
	if (!rc)
		rc = new_length > FS_NAME_MAX ? -ENAMETOOLONG :
						call_add_bytes(&q, new_name, new_length);
	if (!rc && flags & ~(unsigned int)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		rc = -EINVAL;
	if (!rc)
		rc = entry_change(m, &q, &reply, attrs, 4);
	op_reply(req, rc);
}
