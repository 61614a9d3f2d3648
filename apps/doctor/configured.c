/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Compares the configuration with this host: whether each mount of fstab is mounted, and whether
 * each configured device exists. A mount that does not start has no process to ask.
 */
#include "apps/common/cmd.h"
#include "apps/common/device.h"
#include "apps/config/settings.h"
#include "apps/config/toml_file.h"
#include "apps/doctor/check.h"
#include "apps/doctor/host.h"
#include "apps/services.h"

#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FSTAB "/etc/fstab"
#define CONFIGURED_MAX 32 /* lines of each file that are checked */

/* The table that mount(8) reads, too. */
static const char *fstab_path(void)
{
	const char *path = getenv("LIBMOUNT_FSTAB");

	return path && *path ? path : FSTAB;
}

static bool has_device(const char *name)
{
	char path[PATH_MAX];

	if (!*name || !strcmp(name, "auto") || device_is_named_softnic(name))
		return true;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", name);
	return !strchr(name, '/') && !access(path, F_OK);
}

/* @where: the file, and the place in the file. */
static bool check_device(struct report *report, const char *name, const char *where)
{
	if (has_device(name))
		return true;
	report_add(report, "device", VERDICT_FAIL, "%s: not on this host, but %s names this device",
		   name, where);
	report_remedy(report, "correct the name: rdma link lists the devices; or load the device's "
		      "driver; or take softnic");
	return false;
}

bool check_wanted_device(struct report *report, const char *wanted)
{
	const char *variable = getenv("WEIR_DEVICE");

	if (wanted && *wanted)
		return check_device(report, wanted, "--device");
	return !variable || check_device(report, variable, "$WEIR_DEVICE");
}

static bool is_mounted_at(const char *point)
{
	FILE *table = setmntent("/proc/self/mounts", "r");
	const struct mntent *entry;
	bool found = false;

	while (table && !found && (entry = getmntent(table)))
		found = !strcmp(entry->mnt_type, "fuse.weir") && !strcmp(entry->mnt_dir, point);
	if (table)
		endmntent(table);
	return found;
}

/* fstab may name the directory by a symbolic link. */
static bool is_mounted(const char *point)
{
	char real[PATH_MAX];

	return is_mounted_at(point) || (realpath(point, real) && is_mounted_at(real));
}

/*
 * A mount that does not start cannot say why. So a session with the key of its line tries the
 * donor: the session's message names another key, or an absent donor.
 */
static void check_key(struct report *report, const struct mntent *entry,
		      const struct far_host *path)
{
	const char *option = hasmntopt(entry, "key");
	char file[PATH_MAX], label[PATH_MAX];
	struct far_host with_key = *path;
	struct weir_error error;
	int rc;

	if (strchr(entry->mnt_fsname, '/') || !option ||
	    sscanf(option, "key=%4095[^,]", file) != 1)
		return;
	rc = weir_key_load(file, &with_key.key, &error);
	if (rc) {
		report_add(report, "key", rc == -EACCES ? VERDICT_WARN : VERDICT_FAIL, "%s",
			   error.text);
		report_remedy(report, "the mount of %s needs this file", entry->mnt_dir);
		return;
	}
	snprintf(label, sizeof(label), "donor of %s", entry->mnt_dir);
	check_donor_path(report, label, entry->mnt_fsname, &with_key);
	weir_key_free(with_key.key);
}

static void check_line(struct report *report, const char *path, const struct mntent *entry,
		       const struct far_host *donor_path)
{
	const char *device = hasmntopt(entry, "device");
	char name[64] = "", where[PATH_MAX];

	if (device && sscanf(device, "device=%63[^,]", name) == 1) {
		snprintf(where, sizeof(where), "the line of %s in %s", entry->mnt_dir, path);
		check_device(report, name, where);
	}
	/* The others are mounted by hand, or by the first access. */
	if (hasmntopt(entry, "noauto") || hasmntopt(entry, "x-systemd.automount") ||
	    is_mounted(entry->mnt_dir))
		return;
	report_add(report, "mount", VERDICT_FAIL, "%s: configured in %s, not mounted",
		   entry->mnt_dir, path);
	report_remedy(report, "mount %s; the message names the cause. For the path to the donor: "
		      "weir doctor --key FILE %s", entry->mnt_dir,
		      strchr(entry->mnt_fsname, '/') ? "--pool POOL" : entry->mnt_fsname);
	check_key(report, entry, donor_path);
}

void check_fstab(struct report *report, const struct far_host *donor_path)
{
	const char *path = fstab_path();
	FILE *table = setmntent(path, "r");
	struct mntent entry; /* getmntent() has one entry for all tables */
	char line[2 * PATH_MAX];
	unsigned int count = 0;

	while (table && count < CONFIGURED_MAX &&
	       getmntent_r(table, &entry, line, sizeof(line))) {
		if (strcmp(entry.mnt_type, "weir"))
			continue;
		check_line(report, path, &entry, donor_path);
		count++;
	}
	if (table)
		endmntent(table);
}

static struct report *complained_to;

static void complain(enum cmd_report kind, const char *text)
{
	if (kind == CMD_REPORT_FACT)
		return;
	report_add(complained_to, "configuration", VERDICT_FAIL, "%s", text);
	report_remedy(complained_to,
		      "no service starts with a mistake there: weir config check");
}

static void check_names(struct report *report, const char *path)
{
	complained_to = report;
	cmd_report_by(complain);
	(void)config_check_text(NULL, path);
	cmd_report_by(NULL);
}

void check_settings(struct report *report)
{
	const char *path = settings_path();
	char where[PATH_MAX], error[300];
	struct toml_file file;
	unsigned int count = 0;
	int rc = toml_file_read(path, &file, error, sizeof(error));

	if (rc == -ENOENT && !strcmp(path, SETTINGS_FILE))
		return;
	if (rc) {
		report_add(report, "configuration", rc == -EACCES ? VERDICT_WARN : VERDICT_FAIL,
			   "%s", error);
		report_remedy(report, "no service starts with a mistake there: weir config check");
		return;
	}
	for (size_t i = 0; i < file.count && count < CONFIGURED_MAX; i++) {
		const struct toml_entry *entry = &file.entries[i];

		if (strcmp(entry->name, "device"))
			continue;
		snprintf(where, sizeof(where), "%s:%u", path, entry->line);
		check_device(report, entry->text, where);
		count++;
	}
	toml_file_free(&file);
	check_names(report, path);
}
