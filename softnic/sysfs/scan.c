// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* scandir() and glob() with softnic's tree; inside, the C library's do not call our opendir(). */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hook.h"

typedef int scan_select_fn(const struct dirent *entry);
typedef int scan_compare_fn(const struct dirent **a, const struct dirent **b);
int scan_list(const char *path, struct dirent ***list, scan_select_fn *select,
	      scan_compare_fn *compare) HOOK(scandir);
int scan_list64(const char *path, struct dirent ***list, scan_select_fn *select,
		scan_compare_fn *compare) HOOK_ALIAS(scandir, scandir64);

typedef int scan_error_fn(const char *path, int error);
int scan_glob(const char *pattern, int flags, scan_error_fn *error, glob_t *g) HOOK(glob);
int scan_glob64(const char *pattern, int flags, scan_error_fn *error, glob_t *g)
	HOOK_ALIAS(glob, glob64);

static void free_list(struct dirent **list, size_t n)
{
	while (n)
		free(list[--n]);
	free(list);
}

static int add_copy(struct dirent ***list, size_t n, const struct dirent *entry)
{
	struct dirent **more = realloc(*list, (n + 1) * sizeof(*more));
	struct dirent *copy = malloc(sizeof(*copy));

	if (more)
		*list = more;
	if (!more || !copy) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, entry, offsetof(struct dirent, d_name));
	strcpy(copy->d_name, entry->d_name);
	more[n] = copy;
	return 0;
}

static int read_all(DIR *dir, scan_select_fn *select, struct dirent ***list)
{
	const struct dirent *entry;
	size_t n = 0;

	*list = malloc(sizeof(**list)); /* an empty list is no NULL */
	while (*list && (entry = readdir(dir))) {
		if (select && !select(entry))
			continue;
		if (add_copy(list, n, entry)) {
			free_list(*list, n);
			errno = ENOMEM;
			return -1;
		}
		n++;
	}
	return *list ? (int)n : -1;
}

typedef int scan_sort_fn(const void *a, const void *b);

int scan_list(const char *path, struct dirent ***list, scan_select_fn *select,
	      scan_compare_fn *compare)
{
	int n = HOOK_NEXT(scandir)(path, list, select, compare);
	struct sysfs_node node;
	DIR *dir;

	if (n < 0 ? !hook_missed(AT_FDCWD, path, true, &node) : !hook_shadows(path, &node))
		return n;
	if (n >= 0)
		free_list(*list, n);
	dir = opendir(path);
	if (!dir)
		return -1;
	n = read_all(dir, select, list);
	closedir(dir);
	if (n > 0 && compare)
		qsort(*list, n, sizeof(**list), (scan_sort_fn *)(void *)compare);
	return n;
}

static void glob_close(void *dir)
{
	closedir(dir);
}

static void *glob_open(const char *path)
{
	return opendir(path);
}

static struct dirent *glob_read(void *dir)
{
	return readdir(dir);
}

static int glob_stat(const char *path, struct stat *st)
{
	return stat(path, st);
}

static int glob_lstat(const char *path, struct stat *st)
{
	return lstat(path, st);
}

int scan_glob(const char *pattern, int flags, scan_error_fn *error, glob_t *g)
{
	if (flags & GLOB_ALTDIRFUNC || !hook_may_be_inside(pattern))
		return HOOK_NEXT(glob)(pattern, flags, error, g);
	g->gl_opendir = glob_open;
	g->gl_readdir = glob_read;
	g->gl_closedir = glob_close;
	g->gl_stat = glob_stat;
	g->gl_lstat = glob_lstat;
	return HOOK_NEXT(glob)(pattern, flags | GLOB_ALTDIRFUNC, error, g);
}
