/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir mount: options, checks, and the move to the background once the file system is mounted.
 *
 * Threads do not survive fork(). So the child does all the work, and the parent waits until the
 * child reports the mount or ends.
 */
#include "apps/mount/mount.h"

#include <errno.h>
#include <fcntl.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/common/client.h"
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/device.h"
#include "apps/sandbox/sandbox.h"
#include "apps/services.h"
#include "apps/mount/unmount_watchdog.h"
#include "apps/mount/mountpoint.h"

#define THREADS_DEFAULT 4
#define TIMEOUT_DEFAULT 5
#define TIMEOUT_MAX 86400
/* The device number of /dev/fuse, fixed by the kernel. */
#define FUSE_MAJOR 10
#define FUSE_MINOR 229

static const char usage[] =
	"Usage: weir mount [OPTION...] DONOR|POOL/VOLUME MOUNTPOINT\n"
	"Mounts the memory that 'weir serve' lends at DONOR (host, host:port or [v6]:port) as a\n"
	"file system on the empty directory MOUNTPOINT, and continues in the background.\n"
	"POOL/VOLUME is a volume of a pool, made with 'weir pool volume create --files', such as\n"
	"pool:NAME/VOLUME, file:PATH/VOLUME or etcd:http://HOST:2379/NAME/VOLUME. A dead donor is\n"
	"a pause then: the mount waits as with --hard.\n"
	"To unmount: umount MOUNTPOINT\n";

static const struct cmdline_option mount_options[] = {
	{ "foreground", 'f', NULL, "stay in the foreground; Ctrl-C unmounts",
	  CMDLINE_FLAG(struct mount_options, foreground) },
	{ "read-only", 'r', NULL, "mount read-only",
	  CMDLINE_FLAG(struct mount_options, read_only) },
	{ "allow-other", 'o', NULL, "admit other users, subject to modes; default for root",
	  CMDLINE_FLAG(struct mount_options, allow_other) },
	{ "threads", 't', "N", "receiving threads, 1 to 64; default 4",
	  CMDLINE_UINT(struct mount_options, threads, 1, LOOP_THREADS_MAX) },
	{ "timeout", 'T', "SECONDS", "longest wait for the donor, then EIO; default 5. On a pool:\n"
	  "wait until a signal may end a program's call",
	  CMDLINE_UINT(struct mount_options, timeout, 1, TIMEOUT_MAX) },
	{ "hard", 'H', NULL, "wait for ever; after the timeout a signal ends the wait",
	  CMDLINE_FLAG(struct mount_options, hard) },
	CLIENT_KEY_OPTION(struct mount_options, key_path),
	CLIENT_WINDOW_OPTIONS(0),
	CLIENT_ENCRYPT_OPTION,
	{ "seal", 0, "FILE", "encrypt files here, by a key that the donor does not have",
	  CMDLINE_TEXT(struct mount_options, seal_path) },
	{ "seal-state", 0, "FILE",
	  "with --seal: remember here what was seen of the files, so that\n"
	  "the next mount notices old blocks, too",
	  CMDLINE_TEXT(struct mount_options, seal_state_path) },
	SANDBOX_OPTION(struct mount_options, no_sandbox),
	LOG_OPTION(struct mount_options, log),
	METRICS_OPTIONS(struct mount_options, metrics),
	DEVICE_OPTION(struct mount_options, device),
	{ NULL },
};

const struct cmdline mount_line = {
	.section = "mount",
	.size = sizeof(struct mount_options),
	.usage = usage,
	.options = mount_options,
	.notes = "The memory is volatile: files are lost when the donor ends; those of a pool's "
		 "volume\nwhen the last copy does. RDMA does not encrypt.\n",
	.arguments = "DONOR|POOL/VOLUME MOUNTPOINT",
	.arguments_min = 2,
	.arguments_max = 2,
};

static bool is_fuse(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(FUSE_MAJOR, FUSE_MINOR);
}

static int check_fuse(const char *cmd)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int rc = fd < 0 ? errno : is_fuse(fd) ? 0 : ENODEV;

	if (fd >= 0)
		close(fd);
	if (!rc)
		return EXIT_OK;
	if (rc == EACCES || rc == EPERM)
		return failure(cmd,
			       "cannot open /dev/fuse: %s; run as root, or give this user "
			       "access to it",
			       strerror(rc));
	return failure(cmd,
		       "cannot use /dev/fuse: %s; load the module with 'modprobe fuse', "
		       "or, in a container, start it with --device /dev/fuse --cap-add "
		       "SYS_ADMIN",
		       strerror(rc));
}

/* In the child: releases the terminal and notifies the parent. */
static void go_to_background(int ready)
{
	int null = open("/dev/null", O_RDWR);
	char yes = 0;

	log_to_syslog();
	(void)!chdir("/");
	(void)!write(ready, &yes, 1);
	close(ready);
	if (null < 0)
		return;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

static void serve_mount(struct mount *m, int ready)
{
	const struct mount_options *o = m->options;

	if (ready >= 0)
		go_to_background(ready);
	else
		cmd_say(o->cmd, "%s is mounted on %s; Ctrl-C unmounts it", o->donor, o->mountpoint);
	if (!o->no_sandbox)
		m->in_sandbox = sandbox_enter(o->cmd);
	mount_wait(m);
	mount_close(m);
}

static int serve(const struct mount_options *options, int ready)
{
	static struct mount mount;
	struct unmount_watchdog watchdog;
	int status;

	mount_block_signals();
	status = unmount_watchdog_start(&watchdog, options->mountpoint);
	if (status)
		return failure(options->cmd, "cannot start the watchdog process: %s",
			       strerror(-status));
	status = mount_open(&mount, options);
	if (!status)
		serve_mount(&mount, ready);
	unmount_watchdog_stop(&watchdog, mount.is_left);
	return status;
}

/* Return: 0, or the child's status if it ends before it is ready. */
static int wait_until_ready(const char *cmd, pid_t child, int ready)
{
	char yes;
	int status;

	if (read(ready, &yes, 1) == 1)
		return EXIT_OK;
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return failure(cmd, "the mounting process was killed");
	return WEXITSTATUS(status);
}

static int serve_in_background(const struct mount_options *options)
{
	int ready[2];
	pid_t child;

	if (pipe2(ready, O_CLOEXEC))
		return failure(options->cmd, "pipe: %s", strerror(errno));
	fflush(NULL);
	child = fork();
	if (child < 0)
		return failure(options->cmd, "fork: %s", strerror(errno));
	if (child) {
		close(ready[1]);
		return wait_until_ready(options->cmd, child, ready[0]);
	}
	close(ready[0]);
	setsid();
	return serve(options, ready[1]);
}

/* @path: receives the absolute path of --seal-state, for a process that works in / */
static int place_state(struct mount_options *o, char path[PATH_MAX])
{
	const char *file = o->seal_state_path;
	size_t length = strlen(o->mountpoint);
	char folder[PATH_MAX];

	if (!file)
		return EXIT_OK;
	if (!o->seal_path)
		return usage_error(o->cmd, "--seal-state needs --seal");
	if (file[0] != '/' && !getcwd(folder, sizeof(folder)))
		return failure(o->cmd, "--seal-state: %s", strerror(errno));
	if (snprintf(path, PATH_MAX, "%s%s%s", file[0] == '/' ? "" : folder,
		     file[0] == '/' ? "" : "/", file) >= PATH_MAX)
		return failure(o->cmd, "--seal-state: %s", strerror(ENAMETOOLONG));
	if (!strncmp(path, o->mountpoint, length) && path[length] == '/')
		return failure(o->cmd,
			       "--seal-state %s: the donor would have it: keep it outside of the "
			       "mount",
			       file);
	o->seal_state_path = path;
	return EXIT_OK;
}

int cmd_mount(int argc, char **argv)
{
	struct mount_options options = {
		.cmd = argv[0],
		.threads = THREADS_DEFAULT,
		.timeout = TIMEOUT_DEFAULT,
		.allow_other = geteuid() == 0,
	};
	char mountpoint[PATH_MAX], state[PATH_MAX];
	int status = cmdline_parse(&mount_line, argc, argv, &options);

	if (status != CMDLINE_PARSED)
		return status;
	log_begin(argv[0], options.log);
	options.donor = argv[optind];
	options.mountpoint = argv[optind + 1];
	options.hard |= link_is_pool(options.donor);
	status = check_fuse(argv[0]);
	if (!status)
		status = mountpoint_check(argv[0], options.mountpoint, mountpoint);
	if (!status)
		status = device_choose(argv[0], options.device, &options.device);
	if (status)
		return status;
	options.mountpoint = mountpoint;
	status = place_state(&options, state);
	if (status)
		return status;
	return options.foreground ? serve(&options, -1) : serve_in_background(&options);
}
