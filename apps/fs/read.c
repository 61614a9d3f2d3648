/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir fs warm and weir fs check: both walk through trees and read all files, by several threads.
 *
 * Warming leaves the bytes in the kernel's pages. Checking passes these pages by, so that each
 * byte comes from a donor. check.c has the donor check the tables behind. A pool's volume and a
 * sealed mount verify checksums of all bytes read. A wrong sum without a good copy is an error of
 * the read.
 */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/fs/check.h"
#include "apps/fs/fs.h"
#include "apps/fs/place.h"
#include "apps/fs/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define THREADS_DEFAULT 4

struct read_options {
	unsigned int threads;
	bool json;
};

/* A file with several names. */
struct read_linked {
	uint64_t ino;
	uint64_t names, wanted;
	char path[];
};

/**
 * struct read_tree - a run of either command
 * @is_check: the command is check
 * @linked: each a struct read_linked, in a tree of tsearch(3)
 * @check: of the donors' states, if the command is check
 */
struct read_tree {
	struct reader reader;
	bool is_check;
	void *linked;
	uint64_t files;
	struct check check;
};

static const struct cmdline_option options[] = {
	{ "threads", 't', "N", "files read at the same time, 1 to 64; default 4",
	  CMDLINE_UINT(struct read_options, threads, 1, READER_THREADS_MAX) },
	CMDLINE_JSON(struct read_options, json),
	{ NULL },
};

static const struct cmdline warm_line = {
	.usage = "Usage: weir fs warm [OPTION...] PATH...\n"
		 "Reads files, and all files in directories, into this machine's memory, so that\n"
		 "later reads do not go to the donor while the memory suffices.\n",
	.options = options,
	.arguments = "PATH...",
	.arguments_min = 1,
	.arguments_max = INT_MAX,
};

static const struct cmdline check_line = {
	.usage = "Usage: weir fs check [OPTION...] PATH...\n"
		 "Reads the names, attributes and bytes of all files in PATH from the donor, and\n"
		 "verifies the checksums that a pool's volume and a sealed mount have. Has the\n"
		 "donor check its state. Of a whole mount the names of each file are counted.\n",
	.options = options,
	.notes = "Exit status: 0 all is well; 1 it is not; 2 invalid command line.\n",
	.arguments = "PATH...",
	.arguments_min = 1,
	.arguments_max = INT_MAX,
};

static int compare_linked(const void *one, const void *other)
{
	const struct read_linked *a = one, *b = other;

	return (a->ino > b->ino) - (a->ino < b->ino);
}

/* Return: whether the file has been met by another name. */
static bool note_linked(struct read_tree *t, const FTSENT *found)
{
	const struct stat *st = found->fts_statp;
	struct read_linked *linked, **entry;

	if (st->st_nlink < 2)
		return false;
	linked = malloc(sizeof(*linked) + found->fts_pathlen + 1);
	if (!linked)
		return false;
	*linked = (struct read_linked){ .ino = st->st_ino, .wanted = st->st_nlink };
	memcpy(linked->path, found->fts_path, found->fts_pathlen + 1u);
	entry = tsearch(linked, &t->linked, compare_linked);
	if (!entry || *entry != linked)
		free(linked);
	if (!entry)
		return false;
	(*entry)->names++;
	return *entry != linked;
}

static void check_name(struct read_tree *t, const FTSENT *found)
{
	char target[PATH_MAX];

	if (llistxattr(found->fts_accpath, NULL, 0) < 0 && errno != ENOTSUP && errno != ENOENT)
		reader_fail(&t->reader, found->fts_path, errno);
	if (S_ISLNK(found->fts_statp->st_mode) &&
	    readlink(found->fts_accpath, target, sizeof(target)) < 0 && errno != ENOENT)
		reader_fail(&t->reader, found->fts_path, errno);
}

static void read_found(struct read_tree *t, const FTSENT *found)
{
	const struct stat *st = found->fts_statp;

	if (t->is_check)
		check_name(t, found);
	if (S_ISDIR(st->st_mode) || note_linked(t, found) || !S_ISREG(st->st_mode))
		return;
	t->files++;
	if (reader_add(&t->reader, found->fts_path, (uint64_t)st->st_size))
		reader_fail(&t->reader, found->fts_path, ENOMEM);
}

static void walk(struct read_tree *t, FTS *fts)
{
	FTSENT *found;

	while (!stop_requested() && (errno = 0, found = fts_read(fts))) {
		switch (found->fts_info) {
		case FTS_DP:
			break;
		case FTS_DNR:
		case FTS_NS:
		case FTS_ERR:
			if (found->fts_errno != ENOENT || !found->fts_level)
				reader_fail(&t->reader, found->fts_path, found->fts_errno);
			break;
		default:
			read_found(t, found);
		}
	}
	if (!stop_requested() && errno)
		reader_fail(&t->reader, "the walk", errno);
}

static _Thread_local struct read_tree *checked; /* twalk(3) passes no argument */

static void check_linked(const void *node, VISIT visit, int depth)
{
	const struct read_linked *linked = *(const struct read_linked *const *)node;

	(void)depth;
	if ((visit != postorder && visit != leaf) || linked->names == linked->wanted)
		return;
	pthread_mutex_lock(&checked->reader.lock);
	progress_clear(&checked->reader.progress);
	failure(checked->reader.cmd,
		"%s: the donor counts %" PRIu64 " names, and the tree has %" PRIu64,
		linked->path, linked->wanted, linked->names);
	checked->reader.failures++;
	pthread_mutex_unlock(&checked->reader.lock);
}

static int read_tree(struct read_tree *t, char *path)
{
	char *roots[] = { path, NULL };
	static struct fs_place place;
	int status = place_find(t->reader.cmd, path, &place);
	FTS *fts;

	if (status)
		return status;
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV | FTS_COMFOLLOW, NULL);
	if (!fts)
		return failure(t->reader.cmd, "%s: %s", path, strerror(errno));
	walk(t, fts);
	fts_close(fts);
	if (t->is_check && !stop_requested())
		check_donor(&t->check, t->reader.cmd, place.mountpoint);
	if (t->is_check && !strcmp(place.path, place.mountpoint) && !stop_requested()) {
		checked = t;
		twalk(t->linked, check_linked);
	}
	tdestroy(t->linked, free);
	t->linked = NULL;
	return EXIT_OK;
}

static void say_result(struct read_tree *t, bool is_json)
{
	double seconds = progress_seconds(&t->reader.progress);
	struct json json;

	if (!is_json) {
		cmd_say(t->reader.cmd, "%" PRIu64 " files, %s, in %.1f s; %" PRIu64 " failures",
			t->files, size_format(t->reader.progress.done).text, seconds,
			t->reader.failures + t->check.failures);
		return;
	}
	json_begin(&json, stdout);
	json_uint(&json, "files", t->files);
	json_uint(&json, "bytes", t->reader.progress.done);
	json_uint(&json, "failures", t->reader.failures + t->check.failures);
	if (t->is_check) {
		json_uint(&json, "donor_inodes", t->check.inodes);
		json_uint(&json, "donor_names", t->check.names);
		json_uint(&json, "donors_unchecked", t->check.unchecked);
	}
	json_double(&json, "seconds", seconds);
	json_end(&json);
}

static int read_trees(const char *cmd, int argc, char **argv, bool is_check)
{
	struct read_options given = { .threads = THREADS_DEFAULT };
	int status = cmdline_parse(is_check ? &check_line : &warm_line, argc, argv, &given);
	static struct read_tree t;
	int rc;

	if (status != CMDLINE_PARSED)
		return status;
	stop_on_signals();
	t.is_check = is_check;
	rc = reader_start(&t.reader, cmd, is_check ? O_RDONLY | O_DIRECT : O_RDONLY,
			  given.threads);
	if (rc)
		return failure(cmd, "cannot start a thread: %s", strerror(-rc));
	status = EXIT_OK;
	for (char **path = argv + optind; *path && !stop_requested(); path++) {
		int one = read_tree(&t, *path);

		status = status ? status : one;
	}
	reader_finish(&t.reader);
	if (stop_requested())
		return failure(cmd, "stopped");
	say_result(&t, given.json);
	return status || t.reader.failures || t.check.failures ? EXIT_FAILED : EXIT_OK;
}

int fs_warm(const char *cmd, int argc, char **argv)
{
	return read_trees(cmd, argc, argv, false);
}

int fs_check(const char *cmd, int argc, char **argv)
{
	return read_trees(cmd, argc, argv, true);
}
