/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir fs import: brings an archive back into a directory of a mount, by libarchive.
 *
 * An interrupted import goes on behind the entries of the journal (journal.h). Directories get
 * modes and times at the end: see directories.h. So each run brings all directories back.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/fs/archive/archive.h"
#include "apps/fs/archive/directories.h"
#include "apps/fs/archive/journal.h"
#include "apps/fs/place.h"
#include "apps/fs/progress.h"
#include "apps/fs/archive/sums.h"
#include "apps/fs/archive/xattrs.h"

#define BLOCK (1u << 20)
#define SUMS_MAX (1ll << 32) /* bytes of the entry with the checksums */

struct import_options {
	bool overwrite, restart, foreign, json;
};

/**
 * struct import - an import
 * @name: FILE, for messages
 * @number: of the entry, in the archive
 * @expected: the archive's checksums; @has_sums: it has some
 * @verified: files with the right checksum
 * @wrong: files with another, or without one
 * @imperfect: entries without an attribute, or not there, after a message each
 */
struct import {
	const char *cmd, *name;
	int fd;
	struct fs_place place;
	struct archive *archive, *disk;
	struct directories directories;
	struct journal journal;
	struct sums expected;
	struct fs_progress progress;
	size_t number;
	bool has_sums;
	uint64_t verified, wrong, imperfect;
};

static const struct cmdline_option options[] = {
	{ "overwrite", 'o', NULL, "replace what is in PATH, where the archive has the same names",
	  CMDLINE_FLAG(struct import_options, overwrite) },
	{ "restart", 'r', NULL, "begin anew, although PATH has a part of an archive",
	  CMDLINE_FLAG(struct import_options, restart) },
	{ "foreign", 'f', NULL, "admit an archive without weir's checksums",
	  CMDLINE_FLAG(struct import_options, foreign) },
	CMDLINE_JSON(struct import_options, json),
	{ NULL },
};

static const struct cmdline import_line = {
	.usage = "Usage: weir fs import [OPTION...] FILE|- PATH\n"
		 "Brings an archive of 'weir fs export' back into the empty directory PATH on a\n"
		 "mount, and verifies the checksum of each file. FILE may be compressed. After an\n"
		 "interruption the same command goes on where it was.\n",
	.options = options,
	.notes = "Exit status: 0; 1 files are damaged, attributes are missing, or the import\n"
		 "failed or was interrupted; 2 invalid command line.\n\n"
		 "  weir fs import /backup/far.tar /mnt/far\n",
	.arguments = "FILE|- PATH",
	.arguments_min = 2,
	.arguments_max = 2,
};

struct reason {
	char text[512];
};

static struct reason reason_of(struct archive *archive)
{
	const char *text = archive_error_string(archive);
	int rc = archive_errno(archive);
	struct reason reason;

	if (!text)
		text = "an unknown error";
	if (rc > 0 && rc != EILSEQ && rc != EINVAL && !strstr(text, strerror(rc)))
		snprintf(reason.text, sizeof(reason.text), "%s: %s", text, strerror(rc));
	else
		snprintf(reason.text, sizeof(reason.text), "%s", text);
	return reason;
}

static int fail(struct import *i, const char *what, struct archive *archive)
{
	progress_clear(&i->progress);
	return failure(i->cmd, "%s: %s", what, reason_of(archive).text);
}

static void note_imperfect(struct import *i, const char *path, const char *why)
{
	progress_clear(&i->progress);
	failure(i->cmd, "%s: %s", path, why);
	i->imperfect++;
}

/* For the rate. Bytes of the file, not of what it holds: it may be compressed. */
static void show_progress(struct import *i, bool skips)
{
	int64_t at = archive_filter_bytes(i->archive, -1);

	if (at < 0)
		return;
	i->progress.done = (uint64_t)at;
	if (skips)
		i->progress.skipped = (uint64_t)at;
	progress_show(&i->progress);
}

/* Return: ARCHIVE_OK, or a worse result of libarchive. */
static int copy_data(struct import *i, int64_t size, uint8_t *digest, struct archive **failed)
{
	struct sum_state sum;
	int64_t at = 0, offset;
	const void *bytes;
	size_t length;
	int rc;

	sum_begin(&sum);
	while ((rc = archive_read_data_block(i->archive, &bytes, &length, &offset)) == ARCHIVE_OK) {
		sum_add_zeroes(&sum, (uint64_t)(offset - at));
		sum_add(&sum, bytes, length);
		at = offset + (int64_t)length;
		if (length && archive_write_data_block(i->disk, bytes, length, offset) < 0) {
			*failed = i->disk;
			return ARCHIVE_FATAL;
		}
		show_progress(i, false);
		if (stop_requested())
			return ARCHIVE_FATAL;
	}
	*failed = i->archive;
	if (at < size)
		sum_add_zeroes(&sum, (uint64_t)(size - at));
	sum_end(&sum, digest);
	return rc == ARCHIVE_EOF ? ARCHIVE_OK : rc;
}

static bool has_bytes(struct archive_entry *entry)
{
	return archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry);
}

/* Return: 0; an exit status after a message. @digest: of a file with bytes. */
static int bring_back(struct import *i, struct archive_entry *entry, uint8_t *digest)
{
	const char *path = archive_entry_pathname(entry);
	struct archive *failed = i->disk;
	int rc = archive_write_header(i->disk, entry);

	if (rc >= ARCHIVE_WARN && has_bytes(entry)) {
		rc = copy_data(i, archive_entry_size(entry), digest, &failed);
		if (rc == ARCHIVE_OK)
			failed = i->disk;
	}
	if (rc >= ARCHIVE_WARN) {
		int end = archive_write_finish_entry(i->disk);

		rc = end < rc ? end : rc;
	}
	if (stop_requested())
		return EXIT_FAILED;
	if (rc == ARCHIVE_FATAL || (rc < ARCHIVE_WARN && failed == i->archive))
		return fail(i, path, failed);
	/* A full donor fails each entry that follows. */
	if (rc < ARCHIVE_WARN && archive_errno(failed) == ENOSPC)
		return fail(i, path, failed);
	if (rc != ARCHIVE_OK)
		note_imperfect(i, path, reason_of(failed).text);
	return EXIT_OK;
}

/* Return: 0; an exit status after a message. */
static int prepare(struct import *i, struct archive_entry *entry)
{
	if (xattrs_mend(entry) || (archive_entry_filetype(entry) == AE_IFDIR &&
				   directories_add(&i->directories, entry)))
		return failure(i->cmd, "out of memory");
	return EXIT_OK;
}

static int import_entry(struct import *i, struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);
	bool is_done = i->number < i->journal.earlier;
	uint8_t digest[SUM_BYTES];
	int status, rc = 0;

	if (is_done && strcmp(path, i->journal.done.list[i->number]->path))
		return failure(i->cmd,
			       "%s is not the archive that an import into %s has begun with: "
			       "entry %zu is %s, not %s; --restart begins anew", i->name,
			       i->place.path, i->number + 1, path,
			       i->journal.done.list[i->number]->path);
	status = prepare(i, entry);
	if (!status && (!is_done || archive_entry_filetype(entry) == AE_IFDIR))
		status = bring_back(i, entry, digest);
	if (!status && !is_done)
		rc = journal_note(&i->journal, path, has_bytes(entry) ? digest : NULL);
	if (rc)
		return failure(i->cmd, "%s: %s", ARCHIVE_JOURNAL, strerror(-rc));
	i->number++;
	i->progress.entries++;
	show_progress(i, is_done);
	return status;
}

static int read_sums(struct import *i, struct archive_entry *entry)
{
	int64_t size = archive_entry_size(entry);
	char *text = size < SUMS_MAX ? malloc((size_t)size + 1) : NULL, *at = text, *end;
	struct sum sum;

	if (!text)
		return failure(i->cmd, "%s: %s: too long", i->name, ARCHIVE_SUMS);
	if (archive_read_data(i->archive, text, (size_t)size) != size) {
		free(text);
		return fail(i, i->name, i->archive);
	}
	text[size] = 0;
	i->has_sums = true;
	for (; (end = strchr(at, '\n')); at = end + 1) {
		*end = 0;
		if (sum_parse(at, &sum) && sum.has_digest &&
		    !sums_add(&i->expected, sum.path, sum.digest))
			break;
	}
	free(text);
	return sums_sort(&i->expected) ? failure(i->cmd, "out of memory") : EXIT_OK;
}

static bool is_sums(struct archive_entry *entry)
{
	return archive_entry_filetype(entry) == AE_IFREG &&
	       !strcmp(archive_entry_pathname(entry), ARCHIVE_SUMS);
}

static int import_all(struct import *i)
{
	int status = EXIT_OK;

	while (!status && !stop_requested()) {
		struct archive_entry *entry;
		int rc = archive_read_next_header(i->archive, &entry);

		if (stop_requested())
			break;
		if (rc == ARCHIVE_EOF)
			return EXIT_OK;
		if (rc < ARCHIVE_WARN || !archive_entry_pathname(entry))
			return fail(i, i->name, i->archive);
		if (!strcmp(archive_entry_pathname(entry), ARCHIVE_JOURNAL))
			return failure(i->cmd, "%s: an entry has the name %s, which imports need",
				       i->name, ARCHIVE_JOURNAL);
		status = is_sums(entry) ? read_sums(i, entry) : import_entry(i, entry);
	}
	return status;
}

static void verify_one(struct import *i, const struct sum *sum)
{
	const struct sum *expected = sums_find(&i->expected, sum->path);

	if (expected && !memcmp(expected->digest, sum->digest, SUM_BYTES)) {
		i->verified++;
		return;
	}
	i->wrong++;
	failure(i->cmd, expected ? "%s: the bytes do not have the archive's checksum" :
				   "%s: the archive has no checksum of it", sum->path);
}

/* Of entries with one path the last counts: it has replaced the others. */
static int verify(struct import *i, bool foreign)
{
	struct sums *done = &i->journal.done;

	if (!i->has_sums && foreign)
		return EXIT_OK;
	if (!i->has_sums)
		return failure(i->cmd,
			       "%s has no checksums: it is cut off, or another program's; "
			       "--foreign admits these", i->name);
	if (sums_sort(done))
		return failure(i->cmd, "out of memory");
	for (size_t n = 0; n < done->nr_sorted; n++)
		if (done->sorted[n]->has_digest)
			verify_one(i, done->sorted[n]);
	for (size_t n = 0; n < i->expected.nr_sorted; n++) {
		if (sums_find(done, i->expected.sorted[n]->path))
			continue;
		i->wrong++;
		failure(i->cmd, "%s: the archive has a checksum, but no such file",
			i->expected.sorted[n]->path);
	}
	return i->wrong ? EXIT_FAILED : EXIT_OK;
}

static int finish(struct import *i)
{
	int rc;

	if (archive_write_close(i->disk) != ARCHIVE_OK)
		note_imperfect(i, i->place.path, reason_of(i->disk).text);
	rc = journal_remove(&i->journal);
	if (rc)
		return failure(i->cmd, "%s: %s", ARCHIVE_JOURNAL, strerror(-rc));
	i->imperfect += directories_finish(&i->directories, i->cmd);
	return EXIT_OK;
}

static int end_early(struct import *i, int status)
{
	int rc = journal_save(&i->journal);

	progress_clear(&i->progress);
	if (rc)
		return failure(i->cmd, "%s: %s", ARCHIVE_JOURNAL, strerror(-rc));
	if (!stop_requested())
		return status;
	return failure(i->cmd, "stopped after %zu entries; the same command goes on from there",
		       i->number);
}

static void say_result(struct import *i, bool is_json)
{
	double seconds = progress_seconds(&i->progress);
	struct json json;

	if (!is_json) {
		cmd_say(i->cmd, "%zu entries, %s of archive, in %.1f s%s; %" PRIu64
			" files have the right checksum%s", i->number,
			size_format(i->progress.done).text, seconds,
			i->journal.earlier ? "; an earlier run had brought back some" : "",
			i->verified, i->has_sums ? "" : ": the archive has none");
		return;
	}
	json_begin(&json, stdout);
	json_uint(&json, "entries", i->number);
	json_uint(&json, "archive_bytes", i->progress.done);
	json_uint(&json, "resumed_entries", i->journal.earlier);
	json_boolean(&json, "has_sums", i->has_sums);
	json_uint(&json, "verified", i->verified);
	json_uint(&json, "wrong", i->wrong);
	json_uint(&json, "imperfect", i->imperfect);
	json_double(&json, "seconds", seconds);
	json_end(&json);
}

static int run_import(struct import *i, const struct import_options *given)
{
	int status;

	progress_begin(&i->progress);
	status = import_all(i);
	if (status || stop_requested())
		return end_early(i, status);
	progress_clear(&i->progress);
	status = verify(i, given->foreign);
	/* The whole archive may follow one that is cut off: the journal stays. */
	if (status && !i->has_sums)
		return end_early(i, status);
	if (finish(i))
		return EXIT_FAILED;
	say_result(i, given->json);
	return status || i->imperfect ? EXIT_FAILED : EXIT_OK;
}

static int open_archive(struct import *i)
{
	bool is_file = strcmp(i->name, "-");
	struct stat st;

	i->fd = is_file ? open(i->name, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (!is_file)
		i->name = "standard input";
	if (i->fd < 0 || fstat(i->fd, &st))
		return failure(i->cmd, "%s: %s", i->name, strerror(errno));
	if (S_ISREG(st.st_mode))
		i->progress.total = (uint64_t)st.st_size;
	i->archive = archive_read_new();
	i->disk = archive_write_disk_new();
	if (!i->archive || !i->disk)
		return failure(i->cmd, "out of memory");
	archive_read_support_filter_all(i->archive);
	archive_read_support_format_tar(i->archive);
	archive_write_disk_set_options(i->disk,
				       ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_PERM |
				       ARCHIVE_EXTRACT_ACL | ARCHIVE_EXTRACT_XATTR |
				       ARCHIVE_EXTRACT_SECURE_SYMLINKS |
				       ARCHIVE_EXTRACT_SECURE_NODOTDOT |
				       ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS |
				       (geteuid() ? 0 : ARCHIVE_EXTRACT_OWNER));
	if (archive_read_open_fd(i->archive, i->fd, BLOCK) != ARCHIVE_OK)
		return failure(i->cmd, "%s: %s", i->name, archive_error_string(i->archive));
	return EXIT_OK;
}

/* Return: whether the current directory has an entry besides the journal. */
static bool has_entries(void)
{
	DIR *dir = opendir(".");
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
			strcmp(entry->d_name, ARCHIVE_JOURNAL);
	if (dir)
		closedir(dir);
	return found;
}

static int open_tree(struct import *i, const struct import_options *given)
{
	bool is_new;
	int status;

	if (chdir(i->place.path))
		return failure(i->cmd, "%s: %s", i->place.path, strerror(errno));
	if (access(ARCHIVE_JOURNAL, F_OK) && !given->overwrite && has_entries())
		return failure(i->cmd, "%s is not empty: --overwrite brings the archive back "
				       "among what is there", i->place.path);
	status = journal_open(&i->journal, i->cmd, given->restart, &is_new);
	if (!status && !is_new)
		cmd_say(i->cmd, "an earlier import has brought back %zu entries",
			i->journal.earlier);
	return status;
}

static void close_import(struct import *i)
{
	if (i->disk)
		archive_write_free(i->disk);
	if (i->archive)
		archive_read_free(i->archive);
	directories_free(&i->directories);
	journal_close(&i->journal);
	sums_free(&i->expected);
	if (i->fd > STDERR_FILENO)
		close(i->fd);
}

int archive_import(const char *cmd, int argc, char **argv)
{
	struct import_options given = { 0 };
	struct import i = { .cmd = cmd, .fd = -1, .journal = { .fd = -1 } };
	int status = cmdline_parse(&import_line, argc, argv, &given);

	if (status != CMDLINE_PARSED)
		return status;
	setlocale(LC_CTYPE, "C.UTF-8");
	stop_on_signals();
	i.name = argv[optind];
	status = place_find(cmd, argv[optind + 1], &i.place);
	if (!status)
		status = open_archive(&i);
	if (!status)
		status = open_tree(&i, &given);
	if (!status)
		status = run_import(&i, &given);
	close_import(&i);
	return status;
}
