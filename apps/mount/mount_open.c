/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening, running and closing a mount: session, volume, kernel, threads. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/mount/donor/call.h"
#include "apps/mount/mount_metrics.h"
#include "apps/mount/fuse/ops.h"
#include "apps/mount/mountpoint.h"
#include "apps/mount/fuse/privilege.h"
#include "apps/mount/sealed/sealed.h"
#include "lib/span/span.h"

#define READ_AHEAD_KB "4096"
#define OWED_MS 20 /* between attempts to send what is owed */
#define KEEP_MS 500 /* between looks at reserved files */

void mount_log(enum weir_log_level level, const char *format, ...)
{
	static struct log_source source = { .name = "mount" };
	char line[LOG_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_limited(&source, level, line);
}

void mount_begin(struct mount *m)
{
	atomic_fetch_add(&m->in_flight, 1);
}

void mount_end(struct mount *m)
{
	if (atomic_fetch_sub(&m->in_flight, 1) == 1 && !atomic_load(&m->loop.running))
		deferred_queue_wake(&m->deferred);
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *answer,
		       const void *data, size_t length)
{
	struct mount *m = arg;
	struct wire_fs_recall message = { 0 };

	(void)peer;
	(void)answer;
	memcpy(&message, data, length < sizeof(message) ? length : sizeof(message));
	if (message.head.op == FS_RECALL && length == sizeof(message))
		inode_recall(m, message.head.ino, message.epoch);
	else if (message.head.op == FS_SHARE && length >= sizeof(message.head))
		sharing_warned(m);
}

static void on_down(void *arg, int status)
{
	struct mount *m = arg;

	atomic_store(&m->is_down, true);
	mount_log(WEIR_LOG_ERROR,
		  "no donor donor=%s mountpoint=%s id=W501: the donor %s (%s): every operation "
		  "fails with EIO from now on; unmount it with: umount %s",
		  m->options->donor, m->options->mountpoint,
		  status == -ENOTCONN ? "has closed" : "is lost", weir_strerror(status),
		  m->options->mountpoint);
}

void mount_lost(struct mount *m)
{
	atomic_store(&m->is_down, true);
	mount_log(WEIR_LOG_ERROR,
		  "no volume volume=%s mountpoint=%s id=W502: the volume is lost: every operation "
		  "fails with EIO from now on; unmount it with: umount %s",
		  m->options->donor, m->options->mountpoint, m->options->mountpoint);
}

static int open_link(struct mount *m)
{
	const struct mount_options *o = m->options;
	struct weir_error error;

	if (o->key_path && weir_key_load(o->key_path, &m->key, &error))
		return failure(o->cmd, "%s", error.text);
	if (loop_open(m, o->threads, &error))
		return failure(o->cmd, "%s", error.text);
	m->is_pool = true;
	return link_open(&m->link, m, o->donor);
}

static int open_session(struct mount *m)
{
	const struct mount_options *o = m->options;
	struct weir_session_tuning tuning = { .size = sizeof(tuning) };
	struct weir_session_options options = {
		.size = sizeof(options),
		.tuning = &tuning,
		.device = o->device,
		.timeout_ns = o->timeout * 1000000000ull,
		.on_message = on_message,
		.on_down = on_down,
		.arg = m,
	};
	struct weir_error error;

	if (o->key_path && weir_key_load(o->key_path, &m->key, &error))
		return failure(o->cmd, "%s", error.text);
	options.key = m->key;
	options.encryption = client_encryption();
	client_window(&tuning);
	if (weir_session_open(o->donor, &options, &m->session, &error))
		return failure(o->cmd, "%s", error.text);
	if (loop_open(m, o->threads, &error))
		return failure(o->cmd, "%s", error.text);
	return EXIT_OK;
}

static int join_donor(struct mount *m)
{
	const char *cmd = m->options->cmd;
	struct donor_message q;
	struct donor_reply reply;
	struct wire_fs_mounted mounted;
	struct wire_fs_mount *mount = call_begin(&q, FS_MOUNT, FS_ROOT, sizeof(*mount), NULL);
	int rc;

	mount->magic = FS_MAGIC;
	mount->version = FS_VERSION;
	/* Another client beside sealed files damages files, however quiet. */
	mount->head.flags = m->options->seal_path ? 0 : FS_MOUNT_LEASES;
	rc = call(m, &q, &reply, sizeof(mounted) - sizeof(struct wire_fs_reply));
	if (rc == -EPROTONOSUPPORT)
		return failure(cmd,
			       "the donor %s speaks another version of the file system than "
			       "%d: use the same weir at both ends",
			       m->options->donor, FS_VERSION);
	memcpy(&mounted, reply.bytes, sizeof(mounted));
	if (!rc &&
	    (mounted.root.ino != FS_ROOT || !mounted.chunk_bytes || mounted.chunk_bytes % FS_BLOCK))
		rc = -EPROTO;
	if (rc == -ENFILE || rc == -EDQUOT)
		return failure(cmd,
			       "%s has as many mounts as it may have%s: unmount another; one that "
			       "died is forgotten after six leases of the pool",
			       m->options->donor, rc == -EDQUOT ? " by one key" : "");
	if (rc)
		return failure(cmd, "cannot mount the file system of donor %s: %s",
			       m->options->donor, strerror(-rc));
	rc = sealed_join(m, &mounted);
	if (rc)
		return rc;
	volume_init(&m->volume, mounted.chunk_bytes);
	if (!inode_add(m, &mounted.root, q.phase))
		return failure(cmd, "out of memory");
	return EXIT_OK;
}

static int mount_fuse(struct mount *m)
{
	const struct mount_options *o = m->options;
	char options[512];
	char *argv[] = { "weir", "-o", options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);

	/* a comma would begin another mount option */
	snprintf(options, sizeof(options),
		 "fsname=weir:%.200s,subtype=weir,default_permissions%s%s",
		 strchr(o->donor, ',') ? "donor" : o->donor, o->allow_other ? ",allow_other" : "",
		 o->read_only ? ",ro" : "");
	m->fuse = fuse_session_new(&args, &mount_ops, sizeof(mount_ops), m);
	fuse_opt_free_args(&args);
	if (!m->fuse)
		return failure(o->cmd, "libfuse refused the options %s", options);
	if (fuse_session_mount(m->fuse, o->mountpoint)) {
		fuse_session_destroy(m->fuse);
		m->fuse = NULL;
		return failure(o->cmd, "cannot mount on %s: see libfuse's message above",
			       o->mountpoint);
	}
	affinity_init(&m->caller, fuse_session_fd(m->fuse));
	if (privilege_hook(m) || loop_first(m) || loop_start(m, o->threads))
		return failure(o->cmd, "the kernel closed the mount on %s", o->mountpoint);
	return EXIT_OK;
}

/*
 * Raises the read-ahead from the kernel's default of 128 KiB. Only root may; others keep the
 * default.
 */
static void widen_read_ahead(const struct mount *m)
{
	unsigned int major, minor;
	char path[64];
	int fd;

	if (!mountpoint_device(m->options->mountpoint, &major, &minor))
		return;
	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major, minor);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, READ_AHEAD_KB, strlen(READ_AHEAD_KB));
	close(fd);
}

/* A stream of opens must not keep a snapshot out. */
static void opening_init(pthread_rwlock_t *opening)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
#ifdef __GLIBC__
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
	pthread_rwlock_init(opening, &attr);
	pthread_rwlockattr_destroy(&attr);
}

int mount_open(struct mount *m, const struct mount_options *options)
{
	struct weir_error warning;
	int status;

	m->options = options;
	if (mount_page_open(m))
		return failure(options->cmd, "out of memory or descriptors");
	operation_time_init(&m->operation_time, m->page.page, options->metrics.address);
	direct_init(&m->direct);
	dirs_init(&m->dirs);
	reserve_init(&m->reserve);
	opening_init(&m->opening);
	traffic_init(&m->traffic);
	(void)weir_span_open(&warning); /* without memory there are none */
	if (*warning.text)
		cmd_say(options->cmd, "%s", warning.text);
	if (inodes_init(&m->inodes) || names_init(&m->names) || deferred_queue_init(&m->deferred) ||
	    sharing_init(&m->share) || change_log_init(&m->log))
		return failure(options->cmd, "out of memory or descriptors");
	status = link_is_pool(options->donor) ? open_link(m) : open_session(m);
	if (!status)
		status = join_donor(m);
	if (!status)
		status = mount_fuse(m);
	if (!status && mount_page_start(m))
		status = failure(options->cmd, "out of threads or descriptors");
	if (!status)
		status = metrics_server_open(&m->metrics_server, options->cmd, &options->metrics,
					     mount_metrics_collect, m);
	if (status)
		mount_close(m);
	else
		widen_read_ahead(m);
	return status;
}

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void mount_block_signals(void)
{
	sigset_t set;

	ending_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void mount_wait(struct mount *m)
{
	sigset_t set;
	struct pollfd fds[4] = {
		{ .events = POLLIN },
		{ .fd = m->deferred.fd, .events = POLLIN },
		{ .fd = m->share.fd, .events = POLLIN },
		{ .fd = m->log.fd, .events = POLLIN },
	};
	bool owes = false, keeps = false;

	ending_signals(&set);
	fds[0].fd = signalfd(-1, &set, SFD_CLOEXEC);
	while (!fds[0].revents && atomic_load(&m->loop.running) >= atomic_load(&m->loop.threads)) {
		if (poll(fds, 4, owes ? OWED_MS : keeps ? KEEP_MS : -1) < 0)
			continue;
		deferred_queue_run(&m->deferred);
		owes = inodes_pay(m);
		change_log_run(m);
		sharing_answer(m);
		keeps = reserve_give_back(m, false);
	}
	close(fds[0].fd);
}

/*
 * Waits for all calls and transfers. Each has a timeout, so this ends even with a dead donor. With
 * hard, this also waits for a stopped donor.
 */
static void drain_in_flight(struct mount *m)
{
	struct pollfd fd = { .fd = m->deferred.fd, .events = POLLIN };

	deferred_queue_run(&m->deferred);
	while (atomic_load(&m->in_flight)) {
		change_log_run(m);
		poll(&fd, 1, 100);
		deferred_queue_run(&m->deferred);
	}
}

/* The kernel reports an error on the descriptor once the file system is unmounted. */
static void leave_mountpoint(struct mount *m)
{
	struct pollfd fd = { .fd = fuse_session_fd(m->fuse) };

	if (!m->in_sandbox)
		fuse_session_unmount(m->fuse);
	else
		m->is_left = poll(&fd, 1, 0) != 1 || !(fd.revents & POLLERR);
}

void mount_close(struct mount *m)
{
	metrics_server_close(m->metrics_server);
	mount_page_stop(m);
	if (m->fuse)
		loop_stop(m);
	direct_stop(m);
	if (m->is_pool)
		link_stop(&m->link);
	if (m->session || m->is_pool) {
		drain_in_flight(m);
		direct_close(m);
		inodes_commit(m);
		(void)change_log_settle(m, NULL);
		volume_fini(&m->volume);
	}
	if (m->is_pool)
		link_close(&m->link);
	if (m->session || m->is_pool)
		loop_close(m);
	sealed_leave(m);
	if (m->session)
		weir_session_close(m->session);
	if (m->fuse) {
		leave_mountpoint(m);
		fuse_session_destroy(m->fuse);
		affinity_fini(&m->caller);
	}
	weir_key_free(m->key);
	sharing_fini(&m->share);
	change_log_fini(&m->log);
	reserve_fini(&m->reserve);
	pthread_rwlock_destroy(&m->opening);
	deferred_queue_fini(&m->deferred);
	dirs_fini(&m->dirs);
	inodes_fini(&m->inodes);
	names_fini(&m->names);
	weir_span_close();
	mount_page_close(m);
}
