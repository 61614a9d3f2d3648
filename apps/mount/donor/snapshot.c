/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/donor/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/mount/donor/call.h"
#include "lib/base/clock.h"

#define WAIT_SECONDS 3 /* for opens and transfers to end */
#define CALL_SECONDS (FS_SNAPSHOT_MS_MAX / 1000 + 5) /* the answer of a donor that lives */

struct open_files {
	struct inode **inode;
	size_t nr;
};

/* Takes references to all open files. Return: 0; -ENOMEM. */
static int find_open_files(struct mount *m, struct open_files *files)
{
	struct inodes *inodes = &m->inodes;
	bool open;

	pthread_mutex_lock(&inodes->lock);
	files->inode = malloc((inodes->nr + 1) * sizeof(*files->inode));
	for (size_t i = 0; files->inode && i < inodes->buckets; i++)
		for (struct inode *inode = inodes->bucket[i]; inode; inode = inode->next) {
			inode->refs++;
			files->inode[files->nr++] = inode;
		}
	pthread_mutex_unlock(&inodes->lock);
	for (size_t i = 0; i < files->nr;) {
		struct inode *inode = files->inode[i];

		pthread_mutex_lock(&inode->lock);
		open = inode->opens && S_ISREG(inode->attr.mode);
		pthread_mutex_unlock(&inode->lock);
		if (open) {
			i++;
			continue;
		}
		files->inode[i] = files->inode[--files->nr];
		inode_put(inode, 1);
	}
	return files->inode ? 0 : -ENOMEM;
}

static void leave_files(struct open_files *files, size_t entered)
{
	for (size_t i = 0; i < files->nr; i++) {
		if (i < entered)
			inode_leave(files->inode[i]);
		inode_put(files->inode[i], 1);
	}
	free(files->inode);
}

/* Less than the calls of programs wait at the donor, so none of them fails. */
static uint32_t patience_ms(const struct mount *m)
{
	const uint64_t ms = m->options->timeout * 750ull;

	return m->options->hard || ms > FS_SNAPSHOT_MS_MAX ? FS_SNAPSHOT_MS_MAX : (uint32_t)ms;
}

static int copy_at_donor(struct mount *m, fuse_req_t req, uint64_t ino,
			 const struct wire_files_snapshot *wanted)
{
	struct donor_message q;
	struct wire_fs_snapshot *snapshot =
		call_begin(&q, FS_SNAPSHOT, ino, sizeof(*snapshot), req);
	struct donor_reply reply;
	int rc = call_add_name(&q, wanted->name);

	snapshot->parent = wanted->parent;
	snapshot->patience_ms = patience_ms(m);
	if (!rc)
		rc = call_change(m, &q, &reply, sizeof(struct wire_fs_attr));
	if (!rc)
		sharing_forget(&m->share); /* of the parent's names and attributes */
	return rc;
}

/* Opens wait. @until: ends the wait for transfers */
static int copy_alone(struct mount *m, fuse_req_t req, uint64_t ino,
		      const struct wire_files_snapshot *wanted, const struct timespec *until)
{
	struct open_files files = { .nr = 0 };
	size_t entered = 0;
	int rc = find_open_files(m, &files);

	while (!rc && entered < files.nr) {
		rc = inode_enter_writing_until(files.inode[entered], until);
		entered += !rc;
	}
	for (size_t i = 0; !rc && i < files.nr; i++)
		rc = inode_commit(files.inode[i], req);
	if (!rc) {
		call_end_at(weir_now_ns() + CALL_SECONDS * WEIR_NS_PER_S);
		rc = copy_at_donor(m, req, ino, wanted);
	}
	leave_files(&files, entered);
	return rc == -EINTR && call_is_late() ? -EBUSY : rc;
}

int snapshot_take(fuse_req_t req, uint64_t ino, const struct wire_files_snapshot *wanted)
{
	struct mount *m = mount_of(req);
	struct timespec until;
	int rc;

	if (m->options->read_only)
		return -EROFS;
	if (m->is_pool || m->sealed)
		return -EOPNOTSUPP;
	if (!memchr(wanted->name, 0, sizeof(wanted->name)))
		return -EINVAL;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_SECONDS;
	if (pthread_rwlock_timedwrlock(&m->opening, &until))
		return -EBUSY;
	call_end_at(weir_now_ns() + WAIT_SECONDS * WEIR_NS_PER_S);
	rc = copy_alone(m, req, ino, wanted, &until);
	call_end_at(0);
	pthread_rwlock_unlock(&m->opening);
	return rc;
}
