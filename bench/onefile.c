/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The FUSE side: a fixed directory with one file, and threads that receive and serve calls. */
#include "bench/onefile.h"

#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/mount/fuse/affinity.h"

#define FILE_INO 2
#define FOREVER_S 1e6
#define HEADS 80u /* headers before a write's data: struct fuse_in_header, struct fuse_write_in */

static const struct onefile_ops *io;
static size_t file_bytes;
static struct fuse_session *session;
static struct affinity caller;
static void *all_buffers;
static atomic_uint receiving; /* threads that may receive calls */

static __thread struct {
	unsigned int thread;
	char *data;
} mine;

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

static unsigned int call_max(void)
{
	const char *text = getenv("BENCH_FS_CALL_MAX");
	unsigned long bytes = text ? strtoul(text, NULL, 10) : 0;

	return bytes >= ONEFILE_PAGE && bytes < ONEFILE_IO_MAX ? (unsigned int)bytes :
								 ONEFILE_IO_MAX;
}

/* Data moves through the threads' buffers, without splice. */
static void onefile_init(void *arg, struct fuse_conn_info *conn)
{
	(void)arg;
	conn->max_write = call_max();
	conn->max_background = 64;
	conn->want &= ~(unsigned int)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
				      FUSE_CAP_SPLICE_MOVE);
	conn->want |= conn->capable & FUSE_CAP_ASYNC_DIO;
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
	const char *data = mine.data;

	(void)ino;
	(void)fi;
	size = clip(size, offset);
	affinity_io_begin(&caller);
	if (size)
		data = io->read(mine.thread, mine.data, size, (uint64_t)offset);
	affinity_io_end(&caller);
	fuse_reply_buf(req, data, size);
}

static void onefile_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
			  off_t offset, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	size = clip(size, offset);
	affinity_io_begin(&caller);
	if (size)
		io->write(mine.thread, data, size, (uint64_t)offset);
	affinity_io_end(&caller);
	fuse_reply_write(req, size);
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
	.write = onefile_write,
	.fsync = onefile_fsync,
};

static void *serve_calls(void *arg)
{
	const unsigned int thread = (unsigned int)(uintptr_t)arg;
	struct fuse_buf call;
	int length;

	mine.thread = thread;
	mine.data = onefile_data(all_buffers, thread);
	do {
		call = (struct fuse_buf){ .mem = mine.data - HEADS };
		length = fuse_session_receive_buf(session, &call);
		if (length > 0) {
			affinity_follow(&caller, call.mem);
			fuse_session_process_buf(session, &call);
		}
	} while (!fuse_session_exited(session) && (length > 0 || length == -EINTR));
	atomic_fetch_sub(&receiving, 1);
	kill(getpid(), SIGUSR1); /* unmounted: wakes the thread that waits for the end */
	return NULL;
}

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1);
}

void onefile_block_signals(void)
{
	sigset_t set;

	ending_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void interrupt(int signal)
{
	(void)signal;
}

/* Repeats the signal, because a signal just before a thread receives is lost. */
static void stop(const pthread_t *thread, unsigned int threads)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	fuse_session_exit(session);
	while (atomic_load(&receiving)) {
		for (unsigned int i = 0; i < threads; i++)
			pthread_kill(thread[i], SIGUSR2);
		nanosleep(&pause, NULL);
	}
	while (threads)
		pthread_join(thread[--threads], NULL);
}

static int serve(const char *mountpoint, unsigned int threads)
{
	const struct sigaction interruption = { .sa_handler = interrupt };
	pthread_t thread[ONEFILE_THREADS_MAX];
	unsigned int started = 0;
	int status = 1, signal;
	sigset_t set;

	if (fuse_session_mount(session, mountpoint))
		return 1;
	affinity_init(&caller, fuse_session_fd(session));
	sigaction(SIGUSR2, &interruption, NULL); /* without SA_RESTART */
	atomic_store(&receiving, threads);
	while (started < threads &&
	       !pthread_create(&thread[started], NULL, serve_calls, (void *)(uintptr_t)started))
		started++;
	atomic_fetch_sub(&receiving, threads - started);
	if (started == threads) {
		ending_signals(&set);
		sigwait(&set, &signal);
		status = 0;
	}
	stop(thread, started);
	fuse_session_unmount(session);
	affinity_fini(&caller);
	return status;
}

int onefile_run(const char *name, const char *mountpoint, size_t bytes, unsigned int threads,
		void *buffers, const struct onefile_ops *with)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	char source[64];
	int status = 1;

	onefile_block_signals();
	io = with;
	file_bytes = bytes;
	all_buffers = buffers;
	snprintf(source, sizeof(source), "-ofsname=%s", name);
	fuse_opt_add_arg(&args, name);
	fuse_opt_add_arg(&args, source);
	session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (session) {
		status = serve(mountpoint, threads);
		fuse_session_destroy(session);
	}
	fuse_opt_free_args(&args);
	return status;
}
