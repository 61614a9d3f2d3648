/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What FUSE itself can do on this machine: a file system of one file, "data", in this process's
 * memory. No network, no names, nothing to look up. weir's file system is measured against it.
 */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_INO 2
#define FOREVER_S 1e6

static char *data;
static size_t data_bytes;

static void fill_attr(fuse_ino_t ino, struct stat *attr)
{
	*attr = (struct stat){
		.st_ino = ino,
		.st_nlink = 1,
		.st_mode = ino == FILE_INO ? S_IFREG | 0600 : S_IFDIR | 0700,
		.st_size = ino == FILE_INO ? (off_t)data_bytes : 0,
		.st_uid = geteuid(),
		.st_gid = getegid(),
	};
}

static void memfs_init(void *arg, struct fuse_conn_info *conn)
{
	(void)arg;
	conn->max_write = 1 << 20;
	conn->max_background = 64;
	conn->want |= conn->capable & (FUSE_CAP_ASYNC_DIO | FUSE_CAP_SPLICE_READ);
}

static void memfs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {
		.ino = FILE_INO,
		.attr_timeout = FOREVER_S,
		.entry_timeout = FOREVER_S,
	};

	(void)parent;
	if (strcmp(name, "data")) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	fill_attr(FILE_INO, &entry.attr);
	fuse_reply_entry(req, &entry);
}

static void memfs_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat attr;

	(void)fi;
	fill_attr(ino, &attr);
	fuse_reply_attr(req, &attr, FOREVER_S);
}

static void memfs_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
			  struct fuse_file_info *fi)
{
	(void)attr;
	(void)to_set;
	memfs_getattr(req, ino, fi);
}

static void memfs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fuse_reply_open(req, fi);
}

static size_t clip(size_t size, off_t offset)
{
	if ((size_t)offset >= data_bytes)
		return 0;
	return size < data_bytes - offset ? size : data_bytes - offset;
}

static void memfs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		       struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_buf(req, data + offset, clip(size, offset));
}

static void memfs_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *from, off_t offset,
			    struct fuse_file_info *fi)
{
	struct fuse_bufvec to = FUSE_BUFVEC_INIT(clip(fuse_buf_size(from), offset));
	ssize_t copied;

	(void)ino;
	(void)fi;
	to.buf[0].mem = data + offset;
	copied = fuse_buf_copy(&to, from, 0);
	if (copied < 0)
		fuse_reply_err(req, (int)-copied);
	else
		fuse_reply_write(req, (size_t)copied);
}

static void memfs_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops ops = {
	.init = memfs_init,
	.lookup = memfs_lookup,
	.getattr = memfs_getattr,
	.setattr = memfs_setattr,
	.open = memfs_open,
	.read = memfs_read,
	.write_buf = memfs_write_buf,
	.fsync = memfs_fsync,
};

/* Touched beforehand: the donor's memory is, too, once it has been written. */
static int take_memory(const char *mib)
{
	data_bytes = strtoul(mib, NULL, 10) << 20;
	data = mmap(NULL, data_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return data_bytes && data != MAP_FAILED ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	struct fuse_session *session;
	int status = 1;

	if (argc != 3 || take_memory(argv[1])) {
		fprintf(stderr, "Usage: memfs MEBIBYTES MOUNTPOINT\n");
		return 2;
	}
	fuse_opt_add_arg(&args, argv[0]);
	fuse_opt_add_arg(&args, "-ofsname=memfs");
	session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (session && !fuse_set_signal_handlers(session) && !fuse_session_mount(session, argv[2])) {
		status = fuse_session_loop_mt(session, config) ? 1 : 0;
		fuse_session_unmount(session);
		fuse_remove_signal_handlers(session);
	}
	if (session)
		fuse_session_destroy(session);
	fuse_loop_cfg_destroy(config);
	fuse_opt_free_args(&args);
	return status;
}
