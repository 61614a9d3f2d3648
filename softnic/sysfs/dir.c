// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Directory streams with softnic's tree. A directory that the kernel has, too, such as
 * /sys/class/infiniband beside a real NIC, shows the entries of both.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hook.h"

/* No DIR of the C library begins so: its first bytes are a descriptor and a lock. */
#define DIR_MAGIC 0x9a71c3e552f80b6dull

/* Programs get this struct as a DIR. The entries are those of the time of opening. */
struct dir_stream {
	uint64_t magic;
	int fd;
	DIR *real; /* owns @fd, if not NULL */
	struct dirent *entries;
	size_t count, at;
};

DIR *dir_open(const char *path) HOOK(opendir);
DIR *dir_open_fd(int fd) HOOK(fdopendir);
int dir_close(DIR *dir) HOOK(closedir);
int dir_fd(DIR *dir) HOOK(dirfd);
struct dirent *dir_read(DIR *dir) HOOK(readdir);
struct dirent *dir_read64(DIR *dir) HOOK_ALIAS(readdir, readdir64);
typedef int dir_read_r_fn(DIR *dir, struct dirent *entry, struct dirent **result); /* deprecated */
int dir_read_r(DIR *dir, struct dirent *entry, struct dirent **result) HOOK(readdir_r);
int dir_read64_r(DIR *dir, struct dirent *entry, struct dirent **result)
	HOOK_ALIAS(readdir_r, readdir64_r);
void dir_rewind(DIR *dir) HOOK(rewinddir);
long dir_tell(DIR *dir) HOOK(telldir);
void dir_seek(DIR *dir, long at) HOOK(seekdir);

static struct dir_stream *to_stream(DIR *dir)
{
	struct dir_stream *s = (struct dir_stream *)dir;
	uint64_t magic;

	memcpy(&magic, dir, sizeof(magic));
	return magic == DIR_MAGIC ? s : NULL;
}

static bool has_entry(const struct dir_stream *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		if (!strcmp(s->entries[i].d_name, name))
			return true;
	return false;
}

static int append(struct dir_stream *s, const struct dirent *entry)
{
	struct dirent *more = realloc(s->entries, (s->count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->entries = more;
	memcpy(&more[s->count], entry, offsetof(struct dirent, d_name));
	strcpy(more[s->count++].d_name, entry->d_name);
	return 0;
}

/* The kernel's entries have "." and "..", too. */
static int append_real(struct dir_stream *s)
{
	const struct dirent *entry;
	int rc = 0;

	while (!rc && (entry = HOOK_NEXT(readdir)(s->real)))
		if (!has_entry(s, entry->d_name))
			rc = append(s, entry);
	return rc;
}

static int append_dots(struct dir_stream *s, const struct sysfs_node *node)
{
	struct dirent dot = { .d_ino = sysfs_inode(node->path),
			      .d_reclen = sizeof(dot),
			      .d_type = DT_DIR,
			      .d_name = "." };
	int rc = append(s, &dot);

	dot.d_name[1] = '.';
	return rc ? rc : append(s, &dot);
}

/* Returns NULL with errno on failure; the caller then still owns @fd or @real. */
static DIR *make_stream(const struct sysfs_node *node, int fd, DIR *real)
{
	struct dir_stream *s = calloc(1, sizeof(*s));
	int n, rc = -ENOMEM;

	if (!s)
		return NULL;
	*s = (struct dir_stream){ .magic = DIR_MAGIC, .fd = fd, .real = real };
	n = sysfs_list(node, &s->entries);
	if (n < 0)
		goto fail;
	s->count = n;
	rc = real ? append_real(s) : append_dots(s, node);
	if (!rc)
		return (DIR *)s;
	free(s->entries);
fail:
	free(s);
	errno = -rc;
	return NULL;
}

static DIR *shadow(const struct sysfs_node *node, DIR *real)
{
	DIR *dir = make_stream(node, HOOK_NEXT(dirfd)(real), real);

	return dir ? dir : real;
}

DIR *dir_open(const char *path)
{
	DIR *dir = HOOK_NEXT(opendir)(path);
	struct sysfs_node node;
	int fd;

	if (dir)
		return hook_shadows(path, &node) ? shadow(&node, dir) : dir;
	if (!hook_missed(AT_FDCWD, path, true, &node))
		return NULL;
	if (node.kind == SYSFS_ELSEWHERE)
		return HOOK_NEXT(opendir)(node.path);
	fd = hook_open(&node, O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : make_stream(&node, fd, NULL);
	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

DIR *dir_open_fd(int fd)
{
	DIR *dir = HOOK_NEXT(fdopendir)(fd);
	struct sysfs_node node;

	if ((!dir && errno != ENOTDIR) || !hook_descriptor(fd, &node) ||
	    node.kind != SYSFS_DIRECTORY)
		return dir;
	return dir ? shadow(&node, dir) : make_stream(&node, fd, NULL);
}

int dir_close(DIR *dir)
{
	struct dir_stream *s = to_stream(dir);
	int rc;

	if (!s)
		return HOOK_NEXT(closedir)(dir);
	rc = s->real ? HOOK_NEXT(closedir)(s->real) : close(s->fd);
	free(s->entries);
	free(s);
	return rc;
}

int dir_fd(DIR *dir)
{
	struct dir_stream *s = to_stream(dir);

	return s ? s->fd : HOOK_NEXT(dirfd)(dir);
}

static struct dirent *next_entry(struct dir_stream *s)
{
	return s->at < s->count ? &s->entries[s->at++] : NULL;
}

struct dirent *dir_read(DIR *dir)
{
	struct dir_stream *s = to_stream(dir);

	return s ? next_entry(s) : HOOK_NEXT(readdir)(dir);
}

int dir_read_r(DIR *dir, struct dirent *entry, struct dirent **result)
{
	struct dir_stream *s = to_stream(dir);
	const struct dirent *next;

	if (!s)
		return HOOK_NEXT_AS(dir_read_r_fn *, "readdir_r")(dir, entry, result);
	next = next_entry(s);
	*result = next ? entry : NULL;
	if (next)
		*entry = *next;
	return 0;
}

void dir_rewind(DIR *dir)
{
	struct dir_stream *s = to_stream(dir);

	if (s)
		s->at = 0;
	else
		HOOK_NEXT(rewinddir)(dir);
}

long dir_tell(DIR *dir)
{
	struct dir_stream *s = to_stream(dir);

	return s ? (long)s->at : HOOK_NEXT(telldir)(dir);
}

void dir_seek(DIR *dir, long at)
{
	struct dir_stream *s = to_stream(dir);

	if (s)
		s->at = at < 0 ? 0 : at;
	else
		HOOK_NEXT(seekdir)(dir, at);
}
