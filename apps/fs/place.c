/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/place.h"
#include "apps/common/cmd.h"

#include <errno.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>

#define KIND "fuse.weir"
#define SOURCE "weir:"
#define MOUNTS "/proc/self/mounts"

static bool is_below(const char *path, const char *mountpoint)
{
	size_t length = strlen(mountpoint);

	if (length == 1) /* the root */
		return true;
	return !strncmp(path, mountpoint, length) && (!path[length] || path[length] == '/');
}

static void note_mount(struct fs_place *place, const struct mntent *mount)
{
	const char *donor = mount->mnt_fsname;

	if (!strncmp(donor, SOURCE, strlen(SOURCE)))
		donor += strlen(SOURCE);
	snprintf(place->mountpoint, sizeof(place->mountpoint), "%s", mount->mnt_dir);
	snprintf(place->donor, sizeof(place->donor), "%s", donor);
}

/* Among the mounts above the path, the deepest counts, and of one depth the last. */
static bool find_mount(struct fs_place *place, FILE *table)
{
	size_t deepest = 0;
	bool is_weir = false;
	struct mntent *mount;

	while ((mount = getmntent(table))) {
		size_t depth = strlen(mount->mnt_dir);

		if (depth < deepest || !is_below(place->path, mount->mnt_dir))
			continue;
		deepest = depth;
		is_weir = !strcmp(mount->mnt_type, KIND);
		if (is_weir)
			note_mount(place, mount);
	}
	return is_weir;
}

int place_find(const char *cmd, const char *path, struct fs_place *place)
{
	struct place_list list;
	bool found;

	if (!realpath(path, place->path))
		return failure(cmd, "%s: %s", path, strerror(errno));
	if (place_list_open(&list, cmd))
		return EXIT_FAILED;
	found = find_mount(place, list.table);
	place_list_close(&list);
	return found ? EXIT_OK : failure(cmd, "%s is not on a mount of 'weir mount'", path);
}

int place_list_open(struct place_list *list, const char *cmd)
{
	list->table = setmntent(MOUNTS, "re");
	return list->table ? EXIT_OK : failure(cmd, MOUNTS ": %s", strerror(errno));
}

bool place_list_next(struct place_list *list, struct fs_place *place)
{
	struct mntent *mount;

	while ((mount = getmntent(list->table))) {
		if (strcmp(mount->mnt_type, KIND))
			continue;
		note_mount(place, mount);
		snprintf(place->path, sizeof(place->path), "%s", mount->mnt_dir);
		return true;
	}
	return false;
}

void place_list_close(struct place_list *list)
{
	endmntent(list->table);
}
