/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Setting attributes. The kernel has checked permissions, so the donor will not refuse. While this
 * client is alone, attributes are set locally, and the donor is informed without waiting: for a
 * dirty file together with the commit of its writes. A program that unpacks an archive sets three
 * attributes per file before the close.
 */
#include <string.h>

#include "apps/mount/donor/call.h"
#include "apps/mount/inode/inode.h"

#define MODE_BITS 07777u

/* Inode's lock held. The kernel sets a NOW flag only together with the time's flag. */
static void apply_attr(struct inode *inode, const struct wire_fs_setattr *set)
{
	struct wire_fs_attr *attr = &inode->attr;

	inode_changed_now(inode);
	if (set->mask & FS_SET_MODE)
		attr->mode = (attr->mode & S_IFMT) | (set->mode & MODE_BITS);
	if (set->mask & FS_SET_UID)
		attr->uid = set->uid;
	if (set->mask & FS_SET_GID)
		attr->gid = set->gid;
	if (set->mask & FS_SET_ATIME)
		attr->atime = set->mask & FS_SET_ATIME_NOW ? attr->ctime : set->atime;
	if (set->mask & FS_SET_MTIME)
		attr->mtime = set->mask & FS_SET_MTIME_NOW ? attr->ctime : set->mtime;
	inode->set |= set->mask & ~(FS_SET_ATIME_NOW | FS_SET_MTIME_NOW);
}

/*
 * Sets attributes locally if those that the inode has are current. Returns false if the donor must
 * be asked. @send: the change must be sent at once. @phase: receives that of the attributes.
 */
static bool set_here(struct inode *inode, const struct wire_fs_setattr *set, bool *send,
		     unsigned int *phase)
{
	struct mount *m = inode->mount;
	bool here;

	pthread_mutex_lock(&inode->lock);
	here = !(set->mask & FS_SET_SIZE) && sharing_knows(&m->share, inode->known);
	if (here) {
		apply_attr(inode, set);
		*phase = inode->known;
		atomic_fetch_add(&m->changes, 1);
		*send = !inode->dirty;
	}
	pthread_mutex_unlock(&inode->lock);
	return here;
}

static int set_there(struct inode *inode, struct donor_message *q, uint32_t mask)
{
	struct donor_reply reply;
	struct wire_fs_attr attr;
	int rc;

	inode_commit_ahead(inode);
	pthread_mutex_lock(&inode->lock);
	inode->sent &= ~mask;
	pthread_mutex_unlock(&inode->lock);
	rc = call_change(inode->mount, q, &reply, sizeof(attr));
	if (rc)
		return rc;
	memcpy(&attr, call_reply_body(&reply), sizeof(attr));
	if (mask & FS_SET_SIZE)
		inode_learn_size(inode, &attr, q->phase);
	else
		inode_learn(inode, &attr, q->phase);
	return 0;
}

int inode_set(struct inode *inode, struct donor_message *q)
{
	const struct wire_fs_setattr *set = (const struct wire_fs_setattr *)q->bytes;
	bool send = false;

	if (!set_here(inode, set, &send, &q->phase))
		return set_there(inode, q, set->mask);
	return send ? inode_flush(inode) : 0;
}

void inode_trim(struct inode *inode)
{
	struct donor_message q;
	struct wire_fs_setattr *set =
		call_begin(&q, FS_SETATTR, inode->ino, sizeof(*set), NULL);
	bool any;

	pthread_mutex_lock(&inode->lock);
	any = inode->first_blocks;
	inode->first_blocks = false;
	pthread_mutex_unlock(&inode->lock);
	if (!any)
		return;
	set->mask = FS_SET_TRIM;
	inode_enter_alone(inode);
	(void)set_there(inode, &q, set->mask); /* without it, the hole is not one */
	inode_leave(inode);
}
