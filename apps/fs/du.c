/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir fs du: the memory that directories hold. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/common/table.h"
#include "apps/fs/fs.h"
#include "apps/fs/holding.h"
#include "apps/fs/place.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COLUMNS 5
#define BLOCK 512 /* of st_blocks */

struct du_options {
	bool json;
};

/**
 * struct du_sum - of a directory, with all below it
 * @held: bytes that a donor holds; @size: of all files
 */
struct du_sum {
	uint64_t held, size, files, directories;
};

/**
 * struct du - a run of the command
 * @linked: inode numbers of files with several names, in a tree of tsearch(3): each counts once
 * @failures: of names, after a message each
 */
struct du {
	const char *cmd;
	bool is_json;
	struct text_table table;
	struct json json;
	void *linked;
	uint64_t failures;
};

static const struct cmdline_option options[] = {
	CMDLINE_JSON(struct du_options, json),
	{ NULL },
};

static const struct cmdline du_line = {
	.usage = "Usage: weir fs du [--json] [PATH...]\n"
		 "Shows the memory that each directory in PATH holds, and PATH in all. Default:\n"
		 "the current directory. Holes hold none; a file with several names counts once.\n",
	.options = options,
	.arguments = "[PATH...]",
	.arguments_min = 0,
	.arguments_max = INT_MAX,
};

static int compare_numbers(const void *one, const void *other)
{
	const uint64_t *a = one, *b = other;

	return (*a > *b) - (*a < *b);
}

/* Return: whether another name of the file has been counted. */
static bool is_counted(struct du *du, const struct stat *st)
{
	uint64_t *number, **found;

	if (S_ISDIR(st->st_mode) || st->st_nlink < 2)
		return false;
	number = malloc(sizeof(*number));
	if (!number)
		return false;
	*number = st->st_ino;
	found = tsearch(number, &du->linked, compare_numbers);
	if (found && *found == number)
		return false;
	free(number);
	return found;
}

static void count(struct du *du, const struct stat *st, struct du_sum *sum)
{
	if (S_ISDIR(st->st_mode))
		sum->directories++;
	if (is_counted(du, st))
		return;
	sum->held += (uint64_t)st->st_blocks * BLOCK;
	if (S_ISREG(st->st_mode)) {
		sum->files++;
		sum->size += (uint64_t)st->st_size;
	}
}

static void add(struct du_sum *to, const struct du_sum *sum)
{
	to->held += sum->held;
	to->size += sum->size;
	to->files += sum->files;
	to->directories += sum->directories;
}

static void show_sum(struct du *du, const char *path, const struct du_sum *sum, unsigned int copies)
{
	if (!du->is_json) {
		table_add(&du->table, "%s", path);
		table_add(&du->table, "%s", size_format(sum->held).text);
		table_add(&du->table, "%s", size_format(sum->held * copies).text);
		table_add(&du->table, "%s", size_format(sum->size).text);
		table_add(&du->table, "%" PRIu64, sum->files);
		return;
	}
	json_open_object(&du->json, NULL);
	json_string(&du->json, "path", path);
	json_uint(&du->json, "held", sum->held);
	json_uint(&du->json, "held_by_all_copies", sum->held * copies);
	json_uint(&du->json, "size", sum->size);
	json_uint(&du->json, "files", sum->files);
	json_uint(&du->json, "directories", sum->directories);
	json_close(&du->json);
}

static void note_failure(struct du *du, const FTSENT *found)
{
	failure(du->cmd, "%s: %s", found->fts_path, strerror(found->fts_errno));
	du->failures++;
}

static void walk(struct du *du, FTS *fts, unsigned int copies)
{
	struct du_sum all = { 0 }, child = { 0 };
	FTSENT *found;

	while (!stop_requested() && (found = fts_read(fts))) {
		bool is_end = found->fts_info == FTS_DP;

		if (found->fts_info == FTS_DNR || found->fts_info == FTS_NS)
			note_failure(du, found);
		else if (!is_end)
			count(du, found->fts_statp, found->fts_level > 0 ? &child : &all);
		if (is_end && found->fts_level == 1)
			show_sum(du, found->fts_path, &child, copies);
		if (found->fts_level == 1 && found->fts_info != FTS_D) {
			add(&all, &child);
			child = (struct du_sum){ 0 };
		}
		if (!found->fts_level && found->fts_info != FTS_D)
			show_sum(du, found->fts_path, &all, copies);
	}
}

static int show_path(struct du *du, char *path)
{
	static struct fs_place place;
	static struct holding holding;
	char *roots[] = { path, NULL };
	int status = place_find(du->cmd, path, &place);
	FTS *fts;

	if (!status)
		status = holding_find(du->cmd, &place, &holding);
	if (status)
		return status;
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	if (!fts)
		return failure(du->cmd, "%s: %s", path, strerror(errno));
	walk(du, fts, holding.copies);
	fts_close(fts);
	return stop_requested() ? failure(du->cmd, "stopped") : EXIT_OK;
}

static void begin_output(struct du *du)
{
	static const char *const heads[COLUMNS] = { "path", "held", "all copies", "size", "files" };

	if (du->is_json) {
		json_begin(&du->json, stdout);
		json_open_array(&du->json, "paths");
		return;
	}
	table_init(&du->table, COLUMNS);
	for (unsigned int i = 0; i < COLUMNS; i++)
		table_add(&du->table, "%s", heads[i]);
}

static void end_output(struct du *du)
{
	tdestroy(du->linked, free);
	if (du->is_json) {
		json_close(&du->json);
		json_end(&du->json);
		return;
	}
	table_print(&du->table, stdout);
	table_fini(&du->table);
}

int fs_du(const char *cmd, int argc, char **argv)
{
	static char here[] = ".", *default_paths[] = { here, NULL };
	struct du_options given = { 0 };
	int status = cmdline_parse(&du_line, argc, argv, &given);
	struct du du = { .cmd = cmd };
	char **paths;

	if (status != CMDLINE_PARSED)
		return status;
	du.is_json = given.json;
	paths = argv[optind] ? argv + optind : default_paths;
	stop_on_signals();
	begin_output(&du);
	for (status = EXIT_OK; *paths && !stop_requested(); paths++) {
		int one = show_path(&du, *paths);

		status = status ? status : one;
	}
	end_output(&du);
	return status ? status : du.failures ? EXIT_FAILED : EXIT_OK;
}
