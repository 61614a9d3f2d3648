/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks the mounts of weir: whether each answers, and the path to its donor. A child asks, because
 * the answer may never come.
 */
#include "apps/doctor/check.h"
#include "apps/doctor/host.h"

#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"

#define PATIENCE_NS (2 * WEIR_NS_PER_S)
#define POLL_MS 5

/* Return: 0, an errno, or -1: no answer within PATIENCE_NS. */
static int ask_mount(const char *point)
{
	const uint64_t end_ns = weir_now_ns() + PATIENCE_NS;
	struct statvfs unused;
	pid_t child = fork();
	int status;

	if (child < 0)
		return errno;
	if (!child)
		_exit(statvfs(point, &unused) ? errno : 0);
	while (!waitpid(child, &status, WNOHANG)) {
		if (weir_now_ns() > end_ns) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return -1;
		}
		poll(NULL, 0, POLL_MS);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* An answer is small: large packets may be lost. A pool has its own check. */
static void check_mount_path(struct report *report, const char *point, const char *donor,
			     const struct far_host *path)
{
	char label[PATH_MAX];

	if (!path->is_softnic || strchr(donor, '/'))
		return;
	snprintf(label, sizeof(label), "donor of %s", point);
	check_donor_path(report, label, donor, path);
}

static void add_mount(struct report *report, const char *point, const char *donor,
		      const struct far_host *path)
{
	int rc = ask_mount(point);

	if (!rc) {
		report_add(report, "mount", VERDICT_OK, "%s answers, from %s", point, donor);
		check_mount_path(report, point, donor, path);
	} else if (rc == EACCES) {
		report_add(report, "mount", VERDICT_OK, "%s is another user's", point);
	} else if (rc < 0) {
		report_add(report, "mount", VERDICT_FAIL,
			   "%s waits: %s does not answer", point, donor);
		report_remedy(report, "look whether the donor runs, and at the path: weir doctor "
			      "--key FILE HOST; for a pool: weir doctor --pool POOL");
	} else if (rc == ENOTCONN) {
		report_add(report, "mount", VERDICT_FAIL,
			   "%s is stale: the process of weir mount is gone", point);
		report_remedy(report, "umount %s, and mount again", point);
	} else {
		report_add(report, "mount", VERDICT_FAIL, "%s is stale (%s): %s is gone", point,
			   strerror(rc), donor);
		report_remedy(report, "umount %s, start the donor, and mount again", point);
	}
}

/* The source is weir:DONOR, as apps/mount/mount_open.c writes it. */
void check_mounts(struct report *report, const struct far_host *path)
{
	FILE *table = setmntent("/proc/self/mounts", "r");
	const struct mntent *entry;
	unsigned int count = 0;

	while (table && (entry = getmntent(table))) {
		const char *donor = entry->mnt_fsname;

		if (strcmp(entry->mnt_type, "fuse.weir"))
			continue;
		if (count++ == MOUNTS_MAX)
			break;
		if (!strncmp(donor, "weir:", strlen("weir:")))
			donor += strlen("weir:");
		add_mount(report, entry->mnt_dir, donor, path);
	}
	if (count > MOUNTS_MAX)
		report_add(report, "mount", VERDICT_WARN, "more than %u mounts: the others were "
			   "not asked", MOUNTS_MAX);
	if (table)
		endmntent(table);
}
