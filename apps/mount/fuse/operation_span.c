/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/fuse/operation_span.h"

#include <linux/fuse.h>
#include <stddef.h>

#include "apps/mount/mount.h"
#include "wire/fs.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Those without a name are not worth a span: nobody waits for them. */
static const char *const names[] = {
	[FUSE_LOOKUP] = "file lookup",
	[FUSE_GETATTR] = "file getattr",
	[FUSE_SETATTR] = "file setattr",
	[FUSE_READLINK] = "file readlink",
	[FUSE_SYMLINK] = "file symlink",
	[FUSE_MKNOD] = "file mknod",
	[FUSE_MKDIR] = "file mkdir",
	[FUSE_UNLINK] = "file unlink",
	[FUSE_RMDIR] = "file rmdir",
	[FUSE_RENAME] = "file rename",
	[FUSE_LINK] = "file link",
	[FUSE_OPEN] = "file open",
	[FUSE_READ] = "file read",
	[FUSE_WRITE] = "file write",
	[FUSE_STATFS] = "file statfs",
	[FUSE_RELEASE] = "file release",
	[FUSE_FSYNC] = "file fsync",
	[FUSE_SETXATTR] = "file setxattr",
	[FUSE_GETXATTR] = "file getxattr",
	[FUSE_LISTXATTR] = "file listxattr",
	[FUSE_REMOVEXATTR] = "file removexattr",
	[FUSE_FLUSH] = "file flush",
	[FUSE_OPENDIR] = "file opendir",
	[FUSE_READDIR] = "file readdir",
	[FUSE_RELEASEDIR] = "file releasedir",
	[FUSE_GETLK] = "file getlk",
	[FUSE_SETLK] = "file setlk",
	[FUSE_SETLKW] = "file setlkw",
	[FUSE_CREATE] = "file create",
	[FUSE_FALLOCATE] = "file fallocate",
	[FUSE_READDIRPLUS] = "file readdirplus",
	[FUSE_RENAME2] = "file rename",
	[FUSE_LSEEK] = "file lseek",
};

static const char *const calls[] = {
	[FS_MOUNT] = "donor mount",
	[FS_VOLUME] = "donor volume",
	[FS_LOOKUP] = "donor lookup",
	[FS_GETATTR] = "donor getattr",
	[FS_SETATTR] = "donor setattr",
	[FS_MAKE] = "donor make",
	[FS_LINK] = "donor link",
	[FS_UNLINK] = "donor unlink",
	[FS_RMDIR] = "donor rmdir",
	[FS_RENAME] = "donor rename",
	[FS_READLINK] = "donor readlink",
	[FS_OPEN] = "donor open",
	[FS_RELEASE] = "donor release",
	[FS_READDIR] = "donor readdir",
	[FS_MAP] = "donor map",
	[FS_ALLOC] = "donor alloc",
	[FS_COMMIT] = "donor commit",
	[FS_FALLOCATE] = "donor fallocate",
	[FS_STATFS] = "donor statfs",
	[FS_SETXATTR] = "donor setxattr",
	[FS_GETXATTR] = "donor getxattr",
	[FS_LISTXATTR] = "donor listxattr",
	[FS_REMOVEXATTR] = "donor removexattr",
	[FS_GETLK] = "donor getlk",
	[FS_SETLK] = "donor setlk",
	[FS_CANCELLK] = "donor cancellk",
	[FS_RETURN] = "donor return",
	[FS_READ] = "donor read",
	[FS_WRITE] = "donor write",
	[FS_CLOSE] = "donor close",
	[FS_RESERVE] = "donor reserve",
	[FS_SNAPSHOT] = "donor snapshot",
};

static __thread struct {
	struct weir_span *span;
	int rc;
} current;

static struct weir_span *begin(const struct mount *m, const char *name)
{
	struct weir_span *span = weir_span_begin(name, WEIR_SPAN_SERVER);

	weir_span_text(span, "weir.mountpoint", m->options->mountpoint);
	return span;
}

void operation_span_begin(const struct mount *m, uint32_t opcode)
{
	if (opcode < LENGTH(names) && names[opcode])
		current.span = begin(m, names[opcode]);
	current.rc = 0;
}

void operation_span_failed(int rc)
{
	current.rc = rc;
}

void operation_span_end(void)
{
	weir_span_end(current.span, current.rc);
	current.span = NULL;
}

struct weir_span *operation_span(void)
{
	return current.span;
}

struct weir_span *operation_span_io(const struct mount *m, bool is_write, uint64_t ino,
				    uint64_t offset, uint64_t length)
{
	struct weir_span *span = begin(m, is_write ? "file write" : "file read");

	weir_span_number(span, "weir.inode", ino);
	weir_span_number(span, "weir.offset", offset);
	weir_span_number(span, "weir.bytes", length);
	return span;
}

struct weir_span *operation_span_call(const struct mount *m, const struct weir_span *of,
				      uint16_t op)
{
	struct weir_span *span = weir_span_part(
		of, op < LENGTH(calls) && calls[op] ? calls[op] : "donor call", WEIR_SPAN_CLIENT);

	weir_span_text(span, "server.address", m->options->donor);
	return span;
}
