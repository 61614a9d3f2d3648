/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "bench/onefile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_INO 2
#define FOREVER_S 1e6

static const struct onefile_ops *io;
static size_t file_bytes;

static void fill_attr(fuse_ino_t ino, struct stat *attr)
{
	*attr = (struct stat){
		.st_ino = ino,
		.st_nlink = 1,
		.st_mode = ino == FILE_INO ? S_IFREG | 0600 : S_IFDIR | 0700,
		.st_size = ino == FILE_INO ? (off_t)file_bytes : 0,
		.st_uid = geteuid(),
		.st_gid = getegid(),
	};
}

static void onefile_init(void *arg, struct fuse_conn_info *conn)
{
	(void)arg;
	conn->max_write = ONEFILE_IO_MAX;
	conn->max_background = 64;
	conn->want |= conn->capable & (FUSE_CAP_ASYNC_DIO | FUSE_CAP_SPLICE_READ);
}

static void onefile_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
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

static void onefile_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat attr;

	(void)fi;
	fill_attr(ino, &attr);
	fuse_reply_attr(req, &attr, FOREVER_S);
}

static void onefile_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
			    struct fuse_file_info *fi)
{
	(void)attr;
	(void)to_set;
	onefile_getattr(req, ino, fi);
}

static void onefile_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fuse_reply_open(req, fi);
}

static size_t clip(size_t size, off_t offset)
{
	if ((size_t)offset >= file_bytes)
		return 0;
	return size < file_bytes - offset ? size : file_bytes - offset;
}

static void onefile_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			 struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	io->read(req, clip(size, offset), offset);
}

static void onefile_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *from,
			      off_t offset, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	io->write(req, from, clip(fuse_buf_size(from), offset), offset);
}

static void onefile_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops ops = {
	.init = onefile_init,
	.lookup = onefile_lookup,
	.getattr = onefile_getattr,
	.setattr = onefile_setattr,
	.open = onefile_open,
	.read = onefile_read,
	.write_buf = onefile_write_buf,
	.fsync = onefile_fsync,
};

static int serve(struct fuse_session *session, const char *mountpoint, unsigned int threads)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int status = 1;

	fuse_loop_cfg_set_max_threads(config, threads);
	if (!fuse_set_signal_handlers(session) && !fuse_session_mount(session, mountpoint)) {
		status = fuse_session_loop_mt(session, config) < 0; /* above 0: a signal */
		fuse_session_unmount(session);
		fuse_remove_signal_handlers(session);
	}
	fuse_loop_cfg_destroy(config);
	return status;
}

int onefile_run(const char *name, const char *mountpoint, size_t bytes, unsigned int threads,
		const struct onefile_ops *with)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *session;
	char source[64];
	int status = 1;

	io = with;
	file_bytes = bytes;
	snprintf(source, sizeof(source), "-ofsname=%s", name);
	fuse_opt_add_arg(&args, name);
	fuse_opt_add_arg(&args, source);
	session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (session) {
		status = serve(session, mountpoint, threads);
		fuse_session_destroy(session);
	}
	fuse_opt_free_args(&args);
	return status;
}
