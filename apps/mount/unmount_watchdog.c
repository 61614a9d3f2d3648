/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/unmount_watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/mount/mountpoint.h"

static void watchdog_run(const char *mountpoint)
{
	char dismissed;
	ssize_t n;

	do {
		n = read(STDIN_FILENO, &dismissed, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 1 || !mountpoint_is_mounted(mountpoint) || !umount2(mountpoint, MNT_DETACH))
		_exit(0);
	/* Users without the right to unmount have mounted through fusermount3. */
	execlp("fusermount3", "fusermount3", "-u", "-z", "-q", "--", mountpoint, (char *)NULL);
	_exit(1);
}

int unmount_watchdog_start(struct unmount_watchdog *watchdog, const char *mountpoint)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	watchdog->pid = fork();
	if (watchdog->pid < 0) {
		int rc = -errno;

		close(ends[0]);
		close(ends[1]);
		return rc;
	}
	if (!watchdog->pid) {
		/*
		 * Leaves the terminal's process group, so that Ctrl-C does not kill the watchdog.
		 */
		setsid();
		prctl(PR_SET_NAME, "weir-guard");
		dup2(ends[0], STDIN_FILENO);
		close_range(STDIN_FILENO + 1, ~0u, 0);
		(void)!chdir("/");
		watchdog_run(mountpoint);
	}
	close(ends[0]);
	watchdog->fd = ends[1];
	return 0;
}

void unmount_watchdog_stop(struct unmount_watchdog *watchdog, bool is_mounted)
{
	char dismissed = 0;

	if (!is_mounted)
		(void)!write(watchdog->fd, &dismissed, 1);
	close(watchdog->fd);
	waitpid(watchdog->pid, NULL, 0);
}
