/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/files/mounts.h"

#include <errno.h>
#include <stdlib.h>

void mounts_init(struct file_mounts *mounts)
{
	TAILQ_INIT(&mounts->list);
	mounts->nr = 0;
}

static void set_conn(struct file_mount *mount, struct staging_conn *conn, uint64_t now_ns)
{
	if (conn == mount->conn)
		return;
	if (conn)
		staging_ref(conn);
	if (mount->conn)
		staging_unref(mount->conn);
	mount->conn = conn;
	mount->gone_ns = now_ns;
}

static void forget(struct file_mounts *mounts, struct file_mount *mount)
{
	set_conn(mount, NULL, 0);
	TAILQ_REMOVE(&mounts->list, mount, entry);
	mounts->nr--;
	free(mount);
}

void mounts_fini(struct file_mounts *mounts)
{
	while (!TAILQ_EMPTY(&mounts->list))
		forget(mounts, TAILQ_FIRST(&mounts->list));
}

static struct file_mount *find_mount(const struct file_mounts *mounts, uint64_t id)
{
	struct file_mount *mount;

	TAILQ_FOREACH(mount, &mounts->list, entry) {
		if (mount->id == id)
			break;
	}
	return mount;
}

int mounts_restore(struct file_mounts *mounts, uint64_t id, uint64_t now_ns)
{
	struct file_mount *mount = calloc(1, sizeof(*mount));

	if (!mount)
		return -ENOMEM;
	mount->id = id;
	mount->gone_ns = now_ns;
	TAILQ_INSERT_TAIL(&mounts->list, mount, entry);
	mounts->nr++;
	return 0;
}

static unsigned int count_of_key(const struct file_mounts *mounts, unsigned int tenant)
{
	const struct file_mount *mount;
	unsigned int count = 0;

	TAILQ_FOREACH(mount, &mounts->list, entry)
		count += mount->newest && mount->tenant == tenant;
	return count;
}

static int add(struct file_mounts *mounts, const struct staging_conn *conn, uint64_t id,
	       uint64_t now_ns)
{
	if (mounts->nr == FSD_MOUNTS_MAX)
		return -ENFILE;
	if (count_of_key(mounts, conn->tenant) == MOUNTS_OF_KEY_MAX)
		return -EDQUOT;
	return mounts_restore(mounts, id, now_ns);
}

int mounts_note(struct file_mounts *mounts, struct staging_conn *conn, uint64_t id,
		enum wire_fs_op op, uint64_t now_ns)
{
	struct file_mount *mount = find_mount(mounts, id);
	int rc = 0;

	if (conn->mount && conn->mount != id)
		return -EPERM;
	conn->mount = id;
	if (!mount && op == FS_MOUNT && id)
		rc = add(mounts, conn, id, now_ns);
	if (rc)
		return rc;
	mount = find_mount(mounts, id);
	if (!mount)
		return 0; /* the file system refuses it */
	if (conn->number < mount->newest)
		return -ECONNRESET;
	mount->newest = conn->number;
	mount->tenant = conn->tenant;
	if (op == FS_UNMOUNT)
		forget(mounts, mount);
	else
		set_conn(mount, conn, now_ns);
	return 0;
}

bool mounts_expire(struct file_mounts *mounts, uint64_t now_ns, uint64_t grace_ns, uint64_t *id)
{
	struct file_mount *mount;

	TAILQ_FOREACH(mount, &mounts->list, entry) {
		bool is_revoked = false;

		if (mount->conn && staging_is_gone(mount->conn, &is_revoked))
			set_conn(mount, NULL, now_ns);
		if (is_revoked || (!mount->conn && now_ns >= mount->gone_ns + grace_ns)) {
			*id = mount->id;
			forget(mounts, mount);
			return true;
		}
	}
	return false;
}
