/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ioctl()s of wire/files.h: a process asks for a way past the kernel; weir fs asks the donor.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "apps/mount/direct/direct.h"
#include "apps/mount/donor/snapshot.h"
#include "apps/mount/fuse/ops.h"

static void reply_ioctl(fuse_req_t req, int rc, const void *out, size_t length)
{
	if (rc)
		op_reply(req, rc);
	else
		fuse_reply_ioctl(req, 0, out, length);
}

static unsigned int access_of(const struct fuse_file_info *fi)
{
	return files_access(fi->fh & FILE_HANDLE_ACCESS);
}

static void hello(fuse_req_t req)
{
	struct wire_files_hello hello;
	int rc = direct_hello(mount_of(req), &hello);

	reply_ioctl(req, rc, &hello, sizeof(hello));
}

static void ask(fuse_req_t req, struct fuse_file_info *fi, const void *in, size_t length)
{
	struct wire_files_ask ask;
	int rc = -EINVAL;

	if (length == sizeof(ask)) {
		memcpy(&ask, in, sizeof(ask));
		rc = direct_ask(mount_of(req), file_inode(fi), access_of(fi), &ask);
	}
	reply_ioctl(req, rc, &ask, sizeof(ask));
}

/* To hear of other users' files, or to have the donor work. */
static bool may_look(fuse_req_t req)
{
	const struct fuse_ctx *caller = fuse_req_ctx(req);

	return !caller->uid || caller->uid == geteuid();
}

static void check(fuse_req_t req, const void *in, size_t length)
{
	struct wire_fs_check *part;
	struct wire_fs_checked checked;
	struct wire_files_check out;
	struct donor_message q;
	struct donor_reply reply;
	int rc = may_look(req) ? 0 : -EPERM;

	part = call_begin(&q, FS_CHECK, FS_ROOT, sizeof(*part), req);
	if (!rc && length != sizeof(out))
		rc = -EINVAL;
	if (!rc) {
		memcpy(&out, in, sizeof(out));
		part->cursor = out.cursor;
		rc = call(mount_of(req), &q, &reply, sizeof(checked) - sizeof(checked.reply));
	}
	if (!rc) {
		memcpy(&checked, reply.bytes, sizeof(checked));
		out = (struct wire_files_check){
			.cursor = checked.cursor,
			.changes = checked.changes,
			.total = checked.total,
			.unused = checked.unused,
			.fault_ino = checked.fault_ino,
			.fault = checked.fault,
			.faults = checked.faults,
			.inodes = checked.inodes,
			.names = checked.names,
			.file_names = checked.file_names,
			.file_links = checked.file_links,
			.mapped = checked.mapped,
		};
	}
	reply_ioctl(req, rc, &out, sizeof(out));
}

static void take_snapshot(fuse_req_t req, fuse_ino_t ino, const void *in, size_t length)
{
	struct wire_files_snapshot wanted;
	int rc = may_look(req) ? 0 : -EPERM;

	if (!rc && length != sizeof(wanted))
		rc = -EINVAL;
	if (!rc) {
		memcpy(&wanted, in, sizeof(wanted));
		rc = snapshot_take(req, ino, &wanted);
	}
	reply_ioctl(req, rc, NULL, 0);
}

static void show_traffic(fuse_req_t req)
{
	struct wire_files_top top = { .nr = 0 };
	int rc = may_look(req) ? 0 : -EPERM;

	if (!rc)
		traffic_answer(mount_of(req), &top);
	reply_ioctl(req, rc, &top, sizeof(top));
}

void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
	      struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_length,
	      size_t out_length)
{
	(void)arg;
	(void)out_length;
	if (cmd == FILES_CHECK) {
		check(req, in, in_length);
	} else if (cmd == FILES_SNAPSHOT) {
		take_snapshot(req, ino, in, in_length);
	} else if (cmd == FILES_TOP) {
		show_traffic(req);
	} else if (flags & FUSE_IOCTL_DIR) {
		op_reply(req, -ENOTTY);
	} else if (cmd == FILES_HELLO) {
		hello(req);
	} else if (cmd == FILES_ASK) {
		ask(req, fi, in, in_length);
	} else if (cmd == FILES_MAPPED) {
		direct_mapped(file_inode(fi));
		reply_ioctl(req, 0, NULL, 0);
	} else if (cmd == FILES_WAKE) {
		direct_wake(mount_of(req));
		reply_ioctl(req, 0, NULL, 0);
	} else {
		op_reply(req, -ENOTTY);
	}
}
