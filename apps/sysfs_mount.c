// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "apps/sysfs_mount.h"
#include "apps/common/cmd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the copies are prepared: a directory of every /sys that this process does not need. */
#define SCRATCH "/sys/kernel"

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = strlen(text);
	int rc;

	if (fd < 0)
		return -errno;
	rc = write(fd, text, length) == length ? 0 : -errno;
	close(fd);
	return rc;
}

/* User and group keep their numbers. */
static int enter_user_namespace(void)
{
	char user[64], group[64];
	int rc;

	snprintf(user, sizeof(user), "%u %u 1", geteuid(), geteuid());
	snprintf(group, sizeof(group), "%u %u 1", getegid(), getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	rc = write_text("/proc/self/setgroups", "deny");
	rc = rc ? rc : write_text("/proc/self/uid_map", user);
	return rc ? rc : write_text("/proc/self/gid_map", group);
}

/* Root keeps its user namespace, in which it can connect to its other programs. */
static int enter_namespaces(void)
{
	int rc = unshare(CLONE_NEWNS) ? -errno : 0;

	if (rc == -EPERM)
		rc = enter_user_namespace();
	if (!rc && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		rc = -errno;
	return rc;
}

static int copy_file(const char *from, const char *to)
{
	char text[4096];
	int fd = open(from, O_RDONLY | O_CLOEXEC), rc;
	ssize_t n;

	if (fd < 0)
		return errno == EINVAL ? 0 : -errno; /* an empty entry of the GID table */
	n = read(fd, text, sizeof(text));
	rc = n < 0 ? -errno : 0;
	close(fd);
	fd = rc ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return rc ? rc : -errno;
	rc = write(fd, text, n) == n ? 0 : -errno;
	close(fd);
	return rc;
}

static int copy_link(const char *from, const char *to)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return symlink(target, to) ? -errno : 0;
}

static int copy(const char *from, const char *to);

static int copy_directory(const char *from, const char *to)
{
	char source[PATH_MAX], target[PATH_MAX];
	const struct dirent *entry;
	DIR *dir = opendir(from);
	int rc = 0;

	if (!dir)
		return -errno;
	if (mkdir(to, 0755))
		rc = -errno;
	while (!rc && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(source, sizeof(source), "%s/%s", from, entry->d_name) >= PATH_MAX ||
		    snprintf(target, sizeof(target), "%s/%s", to, entry->d_name) >= PATH_MAX)
			rc = -ENAMETOOLONG;
		else
			rc = copy(source, target);
	}
	closedir(dir);
	return rc;
}

static int copy(const char *from, const char *to)
{
	struct stat st;

	if (lstat(from, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return copy_directory(from, to);
	return S_ISLNK(st.st_mode) ? copy_link(from, to) : copy_file(from, to);
}

/* Copies /sys/@name to the scratch directory. */
static int copy_below(const char *name)
{
	char from[64], to[64];

	snprintf(from, sizeof(from), "/sys/%s", name);
	snprintf(to, sizeof(to), SCRATCH "/%s", name);
	return copy(from, to);
}

static int copy_all(void)
{
	char name[32];
	int rc, i;

	if (mkdir(SCRATCH "/class", 0755) || mkdir(SCRATCH "/devices", 0755))
		return -errno;
	rc = copy_below("class/infiniband");
	rc = rc ? rc : copy_below("class/infiniband_verbs");
	rc = rc ? rc : copy_below("class/infiniband_mad");
	for (i = 0; !rc; i++) {
		snprintf(name, sizeof(name), "devices/softnic%d", i);
		rc = copy_below(name);
	}
	return rc == -ENOENT && i > 1 ? 0 : rc;
}

static int lay_over(const char *options, const char *path)
{
	const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

	return mount("overlay", path, "overlay", flags, options) ? -errno : 0;
}

int sysfs_mount(const char *cmd)
{
	int rc = enter_namespaces();

	if (rc)
		return failure(cmd,
			       "--sysfs=mount: no mount namespace: %s; user namespaces may be "
			       "forbidden here: run without the option",
			       strerror(-rc));
	if (mount("softnic", SCRATCH, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755"))
		return failure(cmd, "--sysfs=mount: tmpfs on " SCRATCH ": %s", strerror(errno));
	rc = copy_all();
	if (rc)
		return failure(cmd, "--sysfs=mount: copying softnic's files of /sys: %s",
			       strerror(-rc));
	rc = lay_over("lowerdir=" SCRATCH "/class:/sys/class", "/sys/class");
	rc = rc ? rc : lay_over("lowerdir=" SCRATCH "/devices:/sys/devices", "/sys/devices");
	if (!rc && umount2(SCRATCH, MNT_DETACH))
		rc = -errno;
	if (rc)
		return failure(cmd, "--sysfs=mount: overlay on /sys: %s", strerror(-rc));
	return 0;
}
