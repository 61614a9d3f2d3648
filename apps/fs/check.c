/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The donor checks its state in parts, so that other clients need not wait. Some sums are right
 * only if nothing changes between the first part and the last: then the check is repeated.
 */
#include "apps/fs/check.h"
#include "apps/common/cmd.h"
#include "apps/common/stop.h"
#include "wire/files.h"
#include "wire/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TRIES 5

/* The sums of all parts. @is_still: nothing has changed between them */
struct check_sums {
	struct wire_files_check all;
	bool is_still;
};

static const char *const fault_names[] = {
	[FS_FAULT_NAMES] = "the names of a directory disagree with its tables",
	[FS_FAULT_LINKS] = "a directory counts wrong links",
	[FS_FAULT_PARENT] = "a directory does not lead to the root",
	[FS_FAULT_EXTENTS] = "the extents of a file are wrong",
	[FS_FAULT_OPENS] = "an inode counts wrong opens",
};

static void report_fault(struct check *check, const char *cmd, const char *mountpoint,
			 const struct wire_files_check *part)
{
	const char *what = part->fault < sizeof(fault_names) / sizeof(fault_names[0]) ?
				   fault_names[part->fault] : NULL;

	check->failures += part->faults;
	failure(cmd, "%s: the donor's state: %s: inode %" PRIu64 ", and %u more faults near it",
		mountpoint, what ? what : "an unknown fault", part->fault_ino, part->faults - 1);
}

static void add_part(struct check_sums *sums, const struct wire_files_check *part, bool is_first)
{
	if (is_first)
		sums->all = (struct wire_files_check){ .changes = part->changes };
	sums->is_still = (is_first || sums->is_still) && part->changes == sums->all.changes &&
			 (is_first || part->unused == sums->all.unused);
	sums->all.total = part->total;
	sums->all.unused = part->unused;
	sums->all.inodes += part->inodes;
	sums->all.names += part->names;
	sums->all.file_names += part->file_names;
	sums->all.file_links += part->file_links;
	sums->all.mapped += part->mapped;
}

/* Return: 0 or a negative errno. */
static int check_once(struct check *check, const char *cmd, const char *mountpoint, int fd,
		      struct check_sums *sums)
{
	struct wire_files_check part = { .cursor = 0 };
	bool is_first = true;

	do {
		if (ioctl(fd, FILES_CHECK, &part))
			return -errno;
		if (part.faults)
			report_fault(check, cmd, mountpoint, &part);
		add_part(sums, &part, is_first);
		is_first = false;
	} while (part.cursor && !stop_requested());
	return 0;
}

static void compare_sums(struct check *check, const char *cmd, const char *mountpoint,
			 const struct wire_files_check *all)
{
	if (all->file_names != all->file_links) {
		check->failures++;
		failure(cmd, "%s: the donor's state: files count %" PRIu64 " links, and %" PRIu64
			" names lead to them", mountpoint, all->file_links, all->file_names);
	}
	if (all->mapped + all->unused != all->total) {
		check->failures++;
		failure(cmd, "%s: the donor's state: of %" PRIu64 " bytes of memory files have %"
			PRIu64 ", and %" PRIu64 " are unused", mountpoint, all->total, all->mapped,
			all->unused);
	}
}

static void note_unchecked(struct check *check, const char *cmd, const char *mountpoint, int rc)
{
	check->unchecked++;
	if (rc == -EOPNOTSUPP || rc == -ENOTTY || rc == -EPERM) {
		cmd_say(cmd, "%s: the donor's state is not checked: %s", mountpoint,
			rc == -EPERM ? "only root and the mount's user may ask" :
				       "the donor or the mount is of an earlier version");
		return;
	}
	check->failures++;
	failure(cmd, "%s: the donor's state: %s", mountpoint, strerror(-rc));
}

void check_donor(struct check *check, const char *cmd, const char *mountpoint)
{
	int fd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t failures = check->failures;
	struct check_sums sums = { .is_still = false };
	int rc = fd < 0 ? -errno : 0;

	for (int i = 0; !rc && i < TRIES && !sums.is_still && check->failures == failures &&
			!stop_requested(); i++)
		rc = check_once(check, cmd, mountpoint, fd, &sums);
	if (fd >= 0)
		close(fd);
	if (rc) {
		note_unchecked(check, cmd, mountpoint, rc);
		return;
	}
	check->inodes += sums.all.inodes;
	check->names += sums.all.names;
	if (sums.is_still)
		compare_sums(check, cmd, mountpoint, &sums.all);
}
