/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MemAvailable counts the whole machine. A container may have less, and exceeding its limit kills
 * processes. So the limits of all enclosing control groups count, too. A machine may have both
 * versions of control groups, with the memory controller in one of them.
 */
#include "apps/common/number.h"
#include "apps/serve/available_memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* @used: a file; with all groups below, as are the lines of memory.stat in @cached */
struct version {
	const char *mount_type, *controller;
	const char *max, *used;
	const char *cached[4];
};

/* Version 2 has one hierarchy for all controllers, and does not list them in /proc/self/cgroup. */
static const struct version versions[] = {
	{ "cgroup2",
	  "",
	  "memory.max",
	  "memory.current",
	  { "active_file", "inactive_file", "slab_reclaimable", NULL } },
	{ "cgroup",
	  "memory",
	  "memory.limit_in_bytes",
	  "memory.usage_in_bytes",
	  { "total_active_file", "total_inactive_file", NULL } },
};

/* A line of mountinfo; @root is the group that the mount shows at @point. */
struct group_mount {
	const char *root, *point, *type, *options;
};

static FILE *open_below(const char *root, const char *directory, const char *name)
{
	char path[3 * PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s%s/%s", root, directory, name) >= sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/* Reads a number from a file. Returns false if there is none, as for "max". */
static bool number_in(const char *root, const char *directory, const char *name, uint64_t *number)
{
	FILE *file = open_below(root, directory, name);
	bool found = file && fscanf(file, "%" SCNu64, number) == 1;

	if (file)
		fclose(file);
	return found;
}

/* Sums the values of @names in a file of names and numbers. Returns false if there is none. */
static bool sum_in(FILE *file, const char *const *names, uint64_t *sum)
{
	char line[256], name[128];
	bool found = false;
	uint64_t number;

	*sum = 0;
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%127s %" SCNu64, name, &number) != 2)
			continue;
		for (const char *const *wanted = names; *wanted; wanted++) {
			if (strcmp(name, *wanted))
				continue;
			*sum += number;
			found = true;
		}
	}
	if (file)
		fclose(file);
	return found;
}

static uint64_t of_machine(const char *root)
{
	static const char *const names[] = { "MemAvailable:", NULL };
	uint64_t kib;

	if (!sum_in(open_below(root, "/proc", "meminfo"), names, &kib))
		return UINT64_MAX;
	return kib << 10;
}

static uint64_t of_group(const char *root, const char *directory, const struct version *version)
{
	uint64_t max = UINT64_MAX, high = UINT64_MAX, used, cached;

	number_in(root, directory, version->max, &max);
	number_in(root, directory, "memory.high", &high); /* version 2 only */
	max = lesser(max, high);
	if (max == UINT64_MAX || !number_in(root, directory, version->used, &used))
		return UINT64_MAX;
	sum_in(open_below(root, directory, "memory.stat"), version->cached, &cached);
	used -= lesser(used, cached);
	return max - lesser(max, used);
}

/* Whether names with commas between them include @name. */
static bool has_name(const char *names, const char *name)
{
	size_t length = strlen(name);

	while (names && (strncmp(names, name, length) || !strchr(",", names[length]))) {
		names = strchr(names, ',');
		names = names ? names + 1 : NULL;
	}
	return names;
}

/* Finds this process's group: "NUMBER:CONTROLLERS:PATH". */
static bool find_group(const char *root, const struct version *version, char *path, size_t size)
{
	FILE *file = open_below(root, "/proc/self", "cgroup");
	char line[PATH_MAX], *rest, *controllers;
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		rest = line;
		strsep(&rest, ":");
		controllers = strsep(&rest, ":");
		found = rest && has_name(controllers, version->controller) &&
			(size_t)snprintf(path, size, "%.*s", (int)strcspn(rest, "\n"), rest) < size;
	}
	if (file)
		fclose(file);
	return found;
}

/* "ID PARENT DEVICE ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS", by the hierarchy's own. */
static bool parse_mount(char *line, struct group_mount *mount)
{
	char *tail = strstr(line, " - ");

	if (!tail)
		return false;
	*tail = '\0';
	tail += strlen(" - ");
	for (int i = 0; i < 3; i++)
		strsep(&line, " ");
	mount->root = strsep(&line, " ");
	mount->point = strsep(&line, " ");
	mount->type = strsep(&tail, " ");
	strsep(&tail, " ");
	mount->options = strsep(&tail, "\n");
	return mount->point && mount->options;
}

static bool is_of(const struct group_mount *mount, const struct version *version)
{
	return !strcmp(mount->type, version->mount_type) &&
	       (!*version->controller || has_name(mount->options, version->controller));
}

/* The least of @group and its ancestors, as far up as the mount shows them. */
static uint64_t of_mount(const char *root, const struct group_mount *mount, const char *group,
			 const struct version *version)
{
	size_t hidden = strcmp(mount->root, "/") ? strlen(mount->root) : 0;
	uint64_t least = UINT64_MAX;
	char path[2 * PATH_MAX], *slash;

	if (strncmp(group, mount->root, hidden) || (group[hidden] && group[hidden] != '/') ||
	    (size_t)snprintf(path, sizeof(path), "%s%s", mount->point, group + hidden) >=
		    sizeof(path))
		return least;
	while (strlen(path) >= strlen(mount->point) && (slash = strrchr(path, '/'))) {
		least = lesser(least, of_group(root, path, version));
		*slash = '\0';
	}
	return least;
}

static uint64_t of_groups(const char *root, const struct version *version)
{
	uint64_t least = UINT64_MAX;
	char group[PATH_MAX], line[2 * PATH_MAX];
	struct group_mount mount;
	FILE *table;

	if (!find_group(root, version, group, sizeof(group)))
		return least;
	table = open_below(root, "/proc/self", "mountinfo");
	while (table && fgets(line, sizeof(line), table))
		if (parse_mount(line, &mount) && is_of(&mount, version))
			least = lesser(least, of_mount(root, &mount, group, version));
	if (table)
		fclose(table);
	return least;
}

uint64_t available_memory(const char *root)
{
	uint64_t least = of_machine(root);

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		least = lesser(least, of_groups(root, &versions[i]));
	return least;
}
