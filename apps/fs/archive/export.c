/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir fs export: writes a directory to an archive in the pax format, by libarchive.
 *
 * Each entry of such an archive stands alone, so an interrupted export goes on behind the last
 * whole entry: see output.h. A file that has changed since is written again: of two entries of
 * one path the later counts. All links to a file have the same ctime, and so are written again
 * together.
 *
 * Other programs may change the tree meanwhile. A file is read again if a change came between the
 * first byte and the last. So each file in the archive is of one moment, but different files may
 * be of different moments.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <libgen.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/fs/archive/archive.h"
#include "apps/fs/archive/output.h"
#include "apps/fs/place.h"
#include "apps/fs/progress.h"
#include "apps/fs/archive/sums.h"

#define BLOCK (1u << 20)
#define TRIES 3

struct export_options {
	bool overwrite, restart, json;
};

/**
 * struct export - an export
 * @links: finds hard links to files that are in the archive
 * @done: entries that an earlier run has written
 * @left_out: names that are not in the archive, after a message each
 * @sockets: not in the archive: the format has none
 * @error: a negative errno that ends the export
 */
struct export {
	const char *cmd;
	struct fs_place place;
	struct archive *archive, *disk;
	struct archive_entry_linkresolver *links;
	struct output out;
	struct fs_progress progress;
	char *block;
	uint64_t done, left_out, sockets;
	int error;
};

static const struct cmdline_option options[] = {
	{ "overwrite", 'o', NULL, "replace a FILE that is there",
	  CMDLINE_FLAG(struct export_options, overwrite) },
	{ "restart", 'r', NULL, "begin anew, although FILE.part has a part of the archive",
	  CMDLINE_FLAG(struct export_options, restart) },
	CMDLINE_JSON(struct export_options, json),
	{ NULL },
};

static const struct cmdline export_line = {
	.usage = "Usage: weir fs export [OPTION...] PATH FILE|-\n"
		 "Writes the directory PATH on a mount to FILE, an archive in the pax format with\n"
		 "checksums. After an interruption the same command goes on from there.\n",
	.options = options,
	.notes = "Exit status: 0; 1 names were left out, or the export failed or was interrupted;\n"
		 "2 invalid command line.\n\n"
		 "  weir fs export /mnt/far /backup/far.tar\n"
		 "  weir fs export /mnt/far - | zstd >/backup/far.tar.zst\n",
	.arguments = "PATH FILE|-",
	.arguments_min = 2,
	.arguments_max = 2,
};

static void left_out(struct export *e, const char *path, const char *why)
{
	progress_clear(&e->progress);
	failure(e->cmd, "%s: left out: %s", path, why);
	e->left_out++;
}

static la_ssize_t write_bytes(struct archive *archive, void *arg, const void *bytes, size_t length)
{
	struct export *e = arg;
	int rc = output_write(&e->out, bytes, length);

	if (!rc)
		return (la_ssize_t)length;
	archive_set_error(archive, -rc, "%s", strerror(-rc));
	return -1;
}

static int check_archive(struct export *e, int rc)
{
	if (rc < ARCHIVE_WARN && !e->error)
		e->error = e->out.error ? e->out.error : -EIO;
	return e->error;
}

/* Tells the archive which parts of the file hold bytes. Return: 0 or a negative errno. */
static int note_holes(struct archive_entry *entry, int fd, off_t size)
{
	off_t at = 0, data;

	while (at < size && (data = lseek(fd, at, SEEK_DATA)) >= 0) {
		at = lseek(fd, data, SEEK_HOLE);
		if (at < 0)
			return -errno;
		if (at > size)
			at = size;
		if (data || at < size)
			archive_entry_sparse_add_entry(entry, data, at - data);
	}
	if (at < size && errno == ENXIO) /* a hole at the end */
		archive_entry_sparse_add_entry(entry, size, 0);
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int add_zeroes(struct export *e, struct sum_state *sum, uint64_t length)
{
	memset(e->block, 0, BLOCK);
	for (uint64_t part; length && !e->error; length -= part) {
		part = length < BLOCK ? length : BLOCK;
		sum_add(sum, e->block, part);
		check_archive(e, archive_write_data(e->archive, e->block, part) < 0 ?
					 ARCHIVE_FATAL : ARCHIVE_OK);
	}
	return e->error;
}

/* Return: 0; -EAGAIN the file has become shorter; a negative errno of the file. */
static int write_data(struct export *e, int fd, uint64_t size, uint8_t *digest)
{
	struct sum_state sum;
	uint64_t left = size;
	int rc = 0;

	sum_begin(&sum);
	while (left && !rc && !e->error && !stop_requested()) {
		ssize_t got = read(fd, e->block, left < BLOCK ? left : BLOCK);

		if (got <= 0) {
			rc = !got ? -EAGAIN : errno == EINTR ? 0 : -errno;
			continue;
		}
		sum_add(&sum, e->block, (size_t)got);
		if (archive_write_data(e->archive, e->block, (size_t)got) < 0)
			check_archive(e, ARCHIVE_FATAL);
		left -= (uint64_t)got;
		e->progress.done += (uint64_t)got;
		progress_show(&e->progress);
	}
	if (left && !stop_requested())
		add_zeroes(e, &sum, left);
	sum_end(&sum, digest);
	return rc;
}

static bool is_changed(int fd, const struct stat *before)
{
	struct stat now;

	return fstat(fd, &now) || now.st_size != before->st_size ||
	       now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != before->st_mtim.tv_nsec ||
	       now.st_ctim.tv_sec != before->st_ctim.tv_sec ||
	       now.st_ctim.tv_nsec != before->st_ctim.tv_nsec;
}

/* Return: the entry without its place in the archive; NULL: no memory. */
static struct archive_entry *new_entry(struct export *e, const char *source, const char *path,
				       int fd, const struct stat *st)
{
	struct archive_entry *entry = archive_entry_new2(e->archive);

	if (!entry)
		return NULL;
	archive_entry_copy_sourcepath(entry, source);
	archive_entry_copy_pathname(entry, path);
	if (archive_read_disk_entry_from_file(e->disk, entry, fd, st) < ARCHIVE_WARN) {
		archive_entry_free(entry);
		return NULL;
	}
	return entry;
}

/* Ends the entry, and the loop over its tries if it is as the file was. */
static bool is_good_try(struct export *e, const char *path, const struct stat *st, int rc,
			bool is_last, uint64_t began, const uint8_t *digest)
{
	static const uint8_t never[SUM_BYTES]; /* the digest of nothing: an import complains */
	bool is_again = rc == -EAGAIN && !is_last, is_bad = rc && rc != -EAGAIN;

	check_archive(e, archive_write_finish_entry(e->archive));
	if (e->error || stop_requested())
		return true;
	if (rc == -EAGAIN && is_last)
		left_out(e, path, "it changed whenever it was read");
	else if (is_bad)
		left_out(e, path, strerror(-rc));
	if (rc && output_is_file(&e->out)) {
		e->error = output_rewind(&e->out, began);
		return !is_again;
	}
	if (!is_again)
		e->error = output_note(&e->out, path, st, rc ? never : digest);
	return !is_again;
}

/* Return: whether the file needs no other try. */
static bool try_file(struct export *e, const FTSENT *found, const char *path, int fd,
		     bool is_first, bool is_last)
{
	uint64_t began = e->out.at, done = e->progress.done;
	struct archive_entry *entry, *spare = NULL;
	uint8_t digest[SUM_BYTES];
	struct stat st;
	bool is_link, is_good = true;
	int rc = 0;

	if (fstat(fd, &st) || !(entry = new_entry(e, found->fts_accpath, path, fd, &st))) {
		left_out(e, path, strerror(errno));
		return true;
	}
	if (is_first)
		archive_entry_linkify(e->links, &entry, &spare);
	is_link = archive_entry_hardlink(entry);
	if (!is_link)
		rc = note_holes(entry, fd, st.st_size);
	if (!rc)
		check_archive(e, archive_write_header(e->archive, entry));
	if (rc) {
		left_out(e, path, strerror(-rc));
	} else if (is_link && !e->error) {
		check_archive(e, archive_write_finish_entry(e->archive));
		e->error = e->error ? e->error : output_note(&e->out, path, &st, NULL);
	} else if (!e->error) {
		rc = write_data(e, fd, (uint64_t)st.st_size, digest);
		if (!rc && is_changed(fd, &st))
			rc = -EAGAIN;
		if (rc == -EAGAIN)
			e->progress.done = done;
		is_good = is_good_try(e, path, &st, rc, is_last, began, digest);
	}
	archive_entry_free(entry);
	return is_good;
}

static void export_file(struct export *e, const FTSENT *found, const char *path)
{
	int fd = open(found->fts_accpath, O_RDONLY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);

	if (fd < 0 && errno == EPERM) /* another user's file */
		fd = open(found->fts_accpath, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		left_out(e, path, strerror(errno));
		return;
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	for (int i = 0; !try_file(e, found, path, fd, i == 0, i == TRIES - 1); i++)
		;
	close(fd);
}

/* A directory, symbolic link, FIFO or device: no bytes. */
static void export_name(struct export *e, const FTSENT *found, const char *path)
{
	struct archive_entry *entry = new_entry(e, found->fts_accpath, path, -1, found->fts_statp);
	struct archive_entry *spare = NULL;

	if (!entry) {
		left_out(e, path, strerror(errno));
		return;
	}
	if (!S_ISDIR(found->fts_statp->st_mode))
		archive_entry_linkify(e->links, &entry, &spare);
	if (!check_archive(e, archive_write_header(e->archive, entry)))
		check_archive(e, archive_write_finish_entry(e->archive));
	archive_entry_free(entry);
	if (!e->error)
		e->error = output_note(&e->out, path, found->fts_statp, NULL);
}

/* Entries that an earlier run has written may be the targets of later hard links. */
static void note_link(struct export *e, const FTSENT *found, const char *path)
{
	struct archive_entry *entry = archive_entry_new2(e->archive), *spare = NULL;

	if (!entry) {
		e->error = -ENOMEM;
		return;
	}
	archive_entry_copy_stat(entry, found->fts_statp);
	archive_entry_copy_pathname(entry, path);
	archive_entry_linkify(e->links, &entry, &spare);
	archive_entry_free(entry);
}

static bool is_done(struct export *e, const FTSENT *found, const char *path)
{
	struct sum *sum = sums_find(&e->out.sums, path);
	const struct stat *st = found->fts_statp;
	const struct output_entry *entry;

	if (!sum)
		return false;
	sum->is_seen = true;
	entry = &e->out.entries[sum->number];
	return entry->ino == st->st_ino && entry->size == (uint64_t)st->st_size &&
	       entry->ctime_s == st->st_ctim.tv_sec && entry->ctime_ns == st->st_ctim.tv_nsec;
}

static void skip_done(struct export *e, const FTSENT *found, const char *path)
{
	const struct stat *st = found->fts_statp;

	e->done++;
	if (S_ISREG(st->st_mode)) {
		e->progress.done += (uint64_t)st->st_size;
		e->progress.skipped += (uint64_t)st->st_size;
	}
	if (!S_ISDIR(st->st_mode) && st->st_nlink > 1)
		note_link(e, found, path);
}

static void export_found(struct export *e, const FTSENT *found, const char *path)
{
	bool is_child_of_root = found->fts_level == 1;

	if (is_child_of_root && (!strcmp(path, ARCHIVE_SUMS) || !strcmp(path, ARCHIVE_JOURNAL)))
		left_out(e, path, "archives have this name for something else");
	else if (is_done(e, found, path))
		skip_done(e, found, path);
	else if (S_ISSOCK(found->fts_statp->st_mode))
		e->sockets++;
	else if (S_ISREG(found->fts_statp->st_mode))
		export_file(e, found, path);
	else
		export_name(e, found, path);
	e->progress.entries++;
	progress_show(&e->progress);
}

static int compare_names(const FTSENT **one, const FTSENT **other)
{
	return strcmp((*one)->fts_name, (*other)->fts_name);
}

static FTS *walk(struct export *e)
{
	char *roots[] = { e->place.path, NULL };

	return fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, compare_names);
}

/* The path of what is found, relative to the directory. */
static const char *path_of(const struct export *e, const FTSENT *found)
{
	size_t root = strcmp(e->place.path, "/") ? strlen(e->place.path) : 0;

	return found->fts_level > 0 ? found->fts_path + root + 1 : ".";
}

static void count_bytes(struct export *e)
{
	FTS *fts = e->progress.is_terminal ? walk(e) : NULL;
	FTSENT *found;

	while (fts && !stop_requested() && (found = fts_read(fts)))
		if (found->fts_info == FTS_F && S_ISREG(found->fts_statp->st_mode))
			e->progress.total += (uint64_t)found->fts_statp->st_size;
	if (fts)
		fts_close(fts);
}

static int export_tree(struct export *e)
{
	FTS *fts = walk(e);
	FTSENT *found;

	if (!fts)
		return -errno;
	while (!e->error && !stop_requested() && (errno = 0, found = fts_read(fts))) {
		switch (found->fts_info) {
		case FTS_DP:
			break;
		case FTS_DNR:
		case FTS_NS:
		case FTS_ERR:
			left_out(e, path_of(e, found), strerror(found->fts_errno));
			break;
		default:
			export_found(e, found, path_of(e, found));
		}
	}
	if (!e->error && !stop_requested() && errno)
		e->error = -errno;
	fts_close(fts);
	return e->error;
}

/* The last entry: the checksums of all files. */
static int export_sums(struct export *e)
{
	struct archive_entry *entry = archive_entry_new2(e->archive);
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (!entry || !out || sums_sort(&e->out.sums)) {
		e->error = -ENOMEM;
		goto close;
	}
	for (size_t i = 0; i < e->out.sums.nr_sorted; i++) {
		const struct sum *sum = e->out.sums.sorted[i];

		if (sum->has_digest)
			sum_print(out, sum->path, sum->digest);
	}
	if (fflush(out)) {
		e->error = -ENOMEM;
		goto close;
	}
	archive_entry_set_pathname(entry, ARCHIVE_SUMS);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0600);
	archive_entry_set_size(entry, (int64_t)length);
	if (!check_archive(e, archive_write_header(e->archive, entry)) &&
	    archive_write_data(e->archive, text, length) != (la_ssize_t)length)
		check_archive(e, ARCHIVE_FATAL);
close:
	if (out)
		fclose(out);
	free(text);
	if (entry)
		archive_entry_free(entry);
	return e->error;
}

/* The archive would have a part of itself. */
static int check_paths(const struct export *e, const char *name)
{
	char folder[PATH_MAX], copy[PATH_MAX];
	size_t root = strcmp(e->place.path, "/") ? strlen(e->place.path) : 0;
	struct stat st;

	if (stat(e->place.path, &st) || !S_ISDIR(st.st_mode))
		return failure(e->cmd, "%s is not a directory", e->place.path);
	if (!strcmp(name, "-"))
		return EXIT_OK;
	snprintf(copy, sizeof(copy), "%s", name);
	if (!realpath(dirname(copy), folder))
		return failure(e->cmd, "%s: %s", name, strerror(errno));
	if (!strncmp(folder, e->place.path, root) && (!folder[root] || folder[root] == '/'))
		return failure(e->cmd, "%s lies in %s: name a file elsewhere", name, e->place.path);
	return EXIT_OK;
}

static int open_archives(struct export *e)
{
	e->block = malloc(BLOCK);
	e->archive = archive_write_new();
	e->disk = archive_read_disk_new();
	e->links = archive_entry_linkresolver_new();
	if (!e->block || !e->archive || !e->disk || !e->links)
		return failure(e->cmd, "out of memory");
	archive_entry_linkresolver_set_strategy(e->links, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE);
	archive_read_disk_set_symlink_physical(e->disk);
	archive_read_disk_set_behavior(e->disk, ARCHIVE_READDISK_NO_FFLAGS |
							ARCHIVE_READDISK_NO_SPARSE);
	archive_write_set_format_pax(e->archive);
	/* Names are bytes, whatever the locale. */
	archive_write_set_format_option(e->archive, "pax", "hdrcharset", "BINARY");
	archive_write_set_bytes_per_block(e->archive, 0); /* output.c has the buffer */
	if (archive_write_open(e->archive, e, NULL, write_bytes, NULL) != ARCHIVE_OK)
		return failure(e->cmd, "%s", archive_error_string(e->archive));
	return EXIT_OK;
}

/* Entries of an earlier run whose names are gone. They stay in the archive. */
static uint64_t count_gone(const struct export *e, size_t earlier)
{
	uint64_t gone = 0;

	for (size_t i = 0; i < earlier; i++)
		gone += !e->out.sums.list[i]->is_seen &&
			sums_find(&e->out.sums, e->out.sums.list[i]->path) == e->out.sums.list[i];
	return gone;
}

static void say_result(struct export *e, uint64_t gone, bool is_json)
{
	double seconds = progress_seconds(&e->progress);
	struct json json;

	if (!is_json) {
		cmd_say(e->cmd, "%" PRIu64 " entries, %s, in %.1f s%s", e->progress.entries,
			size_format(e->progress.done).text, seconds,
			e->done ? "; an earlier run had written some" : "");
		if (e->sockets)
			cmd_say(e->cmd, "%" PRIu64 " sockets are not in the archive", e->sockets);
		if (gone)
			cmd_say(e->cmd,
				"%" PRIu64 " entries of the earlier run are gone by now, and stay "
				"in the archive", gone);
		return;
	}
	json_begin(&json, stdout);
	json_uint(&json, "entries", e->progress.entries);
	json_uint(&json, "bytes", e->progress.done);
	json_uint(&json, "archive_bytes", e->out.at);
	json_uint(&json, "resumed_entries", e->done);
	json_uint(&json, "gone_entries", gone);
	json_uint(&json, "left_out", e->left_out);
	json_uint(&json, "sockets", e->sockets);
	json_string(&json, "sums", "blake2b-256");
	json_double(&json, "seconds", seconds);
	json_end(&json);
}

static int end_early(struct export *e)
{
	int rc = output_save(&e->out);

	if (e->error && !rc)
		return failure(e->cmd, "%s: %s", e->out.name, strerror(-e->error));
	if (rc)
		return failure(e->cmd, "%s: %s", e->out.name, strerror(-rc));
	return failure(e->cmd, output_is_file(&e->out) ?
		       "stopped after %" PRIu64 " entries; the same command goes on from there" :
		       "stopped after %" PRIu64 " entries; the archive is incomplete",
		       e->progress.entries);
}

static int run_export(struct export *e, const struct export_options *given)
{
	size_t earlier = e->out.sums.nr;
	uint64_t gone;

	progress_begin(&e->progress);
	count_bytes(e);
	export_tree(e);
	gone = count_gone(e, earlier);
	if (!e->error && !stop_requested())
		export_sums(e);
	if (!e->error && !stop_requested())
		check_archive(e, archive_write_close(e->archive));
	progress_clear(&e->progress);
	if (!e->error && !stop_requested())
		e->error = output_finish(&e->out);
	if (e->error || stop_requested())
		return end_early(e);
	say_result(e, gone, given->json);
	return e->left_out ? EXIT_FAILED : EXIT_OK;
}

static void close_export(struct export *e)
{
	if (e->archive) {
		archive_write_fail(e->archive); /* writes nothing more */
		archive_write_free(e->archive);
	}
	if (e->disk)
		archive_read_free(e->disk);
	if (e->links)
		archive_entry_linkresolver_free(e->links);
	output_close(&e->out);
	free(e->block);
}

int archive_export(const char *cmd, int argc, char **argv)
{
	struct export_options given = { 0 };
	struct export e = { .cmd = cmd, .out = { .cmd = cmd, .fd = -1 } };
	int status = cmdline_parse(&export_line, argc, argv, &given);

	if (status != CMDLINE_PARSED)
		return status;
	if (given.json && !strcmp(argv[optind + 1], "-"))
		return usage_error(cmd, "--json: standard output has the archive: name a FILE");
	setlocale(LC_CTYPE, "C.UTF-8");
	stop_on_signals();
	status = place_find(cmd, argv[optind], &e.place);
	if (!status)
		status = check_paths(&e, argv[optind + 1]);
	if (!status)
		status = open_archives(&e);
	if (!status)
		status = output_open(&e.out, argv[optind + 1], e.place.path, given.overwrite,
				     given.restart);
	if (!status)
		status = run_export(&e, &given);
	close_export(&e);
	return status;
}
