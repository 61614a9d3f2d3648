/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MemAvailable counts the whole machine. A container may have less, and exceeding its limit kills
 * processes. So the limits of all enclosing control groups (version 2) count, too.
 */
#include "apps/common/number.h"
#include "apps/serve/available_memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define GROUPS "/sys/fs/cgroup"

static FILE *open_below(const char *root, const char *directory, const char *name)
{
	char path[2 * PATH_MAX];

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

static uint64_t of_group(const char *root, const char *directory)
{
	static const char *const names[] = { "active_file", "inactive_file", "slab_reclaimable",
					     NULL };
	uint64_t max = UINT64_MAX, high = UINT64_MAX, used, cached;

	number_in(root, directory, "memory.max", &max);
	number_in(root, directory, "memory.high", &high);
	max = lesser(max, high);
	if (max == UINT64_MAX || !number_in(root, directory, "memory.current", &used))
		return UINT64_MAX;
	sum_in(open_below(root, directory, "memory.stat"), names, &cached);
	used -= lesser(used, cached);
	return max - lesser(max, used);
}

/* Finds this process's control group in the version 2 hierarchy. */
static bool find_group(const char *root, char *path, size_t size)
{
	FILE *file = open_below(root, "/proc/self", "cgroup");
	char line[PATH_MAX];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strncmp(line, "0::/", 4);
	}
	if (file)
		fclose(file);
	return found && (size_t)snprintf(path, size, GROUPS "%s", line + 3) < size;
}

uint64_t available_memory(const char *root)
{
	uint64_t least = of_machine(root);
	char path[PATH_MAX], *slash;

	if (!find_group(root, path, sizeof(path)))
		return least;
	while (strlen(path) >= strlen(GROUPS)) {
		least = lesser(least, of_group(root, path));
		slash = strrchr(path, '/');
		*slash = '\0';
	}
	return least;
}
