/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks the requirements of weir mount. */
#include "apps/doctor/check.h"
#include "apps/doctor/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_fuse_device(struct report *report)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		report_add(report, "/dev/fuse", VERDICT_OK, "opens");
		return;
	}
	report_add(report, "/dev/fuse", VERDICT_FAIL, "%s: weir mount can't work", strerror(errno));
	report_remedy(report, errno == ENOENT ?
				      "modprobe fuse (or weir doctor --fix); in a container: "
				      "--device /dev/fuse --cap-add SYS_ADMIN" :
				      "chmod 666 /dev/fuse; in a container: "
				      "--device /dev/fuse --cap-add SYS_ADMIN");
}

/* Finds a program on the PATH. */
static bool find_program(const char *name, char *path, size_t size)
{
	char *dirs = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	bool found = false;
	char *save = NULL;

	for (char *dir = dirs ? strtok_r(dirs, ":", &save) : NULL; dir && !found;
	     dir = strtok_r(NULL, ":", &save)) {
		snprintf(path, size, "%s/%s", dir, name);
		found = !access(path, X_OK);
	}
	free(dirs);
	return found;
}

static void check_fusermount(struct report *report)
{
	char path[512];
	struct stat st;

	if (!find_program("fusermount3", path, sizeof(path))) {
		report_add(report, "fusermount3", VERDICT_FAIL, "not found on the PATH");
		report_remedy(report, "apt-get install fuse3");
		return;
	}
	if (geteuid() && !stat(path, &st) && !(st.st_mode & S_ISUID)) {
		report_add(report, "fusermount3", VERDICT_FAIL,
			   "%s is not setuid root: only root can mount", path);
		report_remedy(report, "chmod u+s %s", path);
		return;
	}
	report_add(report, "fusermount3", VERDICT_OK, "%s", path);
}

/* Checks whether users may use --allow-other. */
static void check_allow_other(struct report *report)
{
	FILE *file = fopen("/etc/fuse.conf", "re");
	bool allowed = !geteuid();
	char line[128];

	while (file && !allowed && fgets(line, sizeof(line), file))
		allowed = !strncmp(line, "user_allow_other", strlen("user_allow_other"));
	if (file)
		fclose(file);
	if (allowed) {
		report_add(report, "allow_other", VERDICT_OK, "allowed");
		return;
	}
	report_add(report, "allow_other", VERDICT_WARN,
		   "only root may let other users into a mount");
	report_remedy(report, "to allow users: put 'user_allow_other' into /etc/fuse.conf");
}

void check_fuse(struct report *report)
{
	check_fuse_device(report);
	check_fusermount(report);
	check_allow_other(report);
}

bool fix_fuse(void)
{
	return !access("/dev/fuse", F_OK) ||
	       fix_step((const char *const[]){ "modprobe", "fuse", NULL });
}
