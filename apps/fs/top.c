/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir fs top: files of a mount by traffic. The mount knows numbers of inodes only. So names, and
 * the programs that have the files open, come from the kernel's lists of open files.
 */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/common/table.h"
#include "apps/fs/fs.h"
#include "apps/fs/place.h"
#include "lib/base/clock.h"
#include "wire/files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define COLUMNS 6
#define INTERVAL_MIN 0.1
#define INTERVAL_MAX 3600.0

struct busy_options {
	double interval;
	unsigned int rounds;
	bool json;
};

/* The name of an open file. @programs: those with the file open: "fio 123, dd 456" */
struct busy_names {
	char path[PATH_MAX];
	char programs[64];
};

/**
 * struct busy - a run of the command
 * @fd: of the mount point
 * @dev: of the mount
 * @names: of the files in @found
 */
struct busy {
	const char *cmd;
	struct fs_place place;
	int fd;
	dev_t dev;
	struct wire_files_top found;
	struct busy_names names[FILES_TOP_MAX];
};

static const struct cmdline_option options[] = {
	{ "interval", 'i', "SECONDS", "time between two tables, 0.1 to 3600; default 1",
	  CMDLINE_SECONDS(struct busy_options, interval, INTERVAL_MIN, INTERVAL_MAX) },
	{ "count", 'c', "N", "end after N tables; default 0: never",
	  CMDLINE_UINT(struct busy_options, rounds, 0, UINT32_MAX) },
	CMDLINE_JSON(struct busy_options, json),
	{ NULL },
};

static const struct cmdline top_line = {
	.usage = "Usage: weir fs top [OPTION...] PATH\n"
		 "Shows which files of the mount that PATH is on are read and written most, by\n"
		 "this machine: bytes and calls a second, and the part of the calls that passes\n"
		 "the kernel by. Reads from the kernel's pages do not reach the mount.\n",
	.options = options,
	.notes = "Root sees all programs, others their own.\n",
	.arguments = "PATH",
	.arguments_min = 1,
	.arguments_max = 1,
};

static void note_program(struct busy_names *names, const char *pid)
{
	size_t length = strlen(names->programs);
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = 0;
	fclose(file);
	snprintf(names->programs + length, sizeof(names->programs) - length, "%s%s %s",
		 length ? ", " : "", name, pid);
}

static int find_file(const struct busy *top, uint64_t ino)
{
	for (uint32_t i = 0; i < top->found.nr; i++)
		if (top->found.file[i].ino == ino)
			return (int)i;
	return -1;
}

static void note_descriptor(struct busy *top, const char *pid, int dir, const char *number,
			    uint32_t *seen)
{
	struct busy_names *names;
	struct statx st;
	ssize_t length;
	int i;

	/* Asks the kernel alone: the mount may be busy. */
	if (statx(dir, number, AT_STATX_DONT_SYNC, STATX_INO, &st) ||
	    makedev(st.stx_dev_major, st.stx_dev_minor) != top->dev)
		return;
	i = find_file(top, st.stx_ino);
	if (i < 0)
		return;
	names = &top->names[i];
	length = readlinkat(dir, number, names->path, sizeof(names->path) - 1);
	names->path[length > 0 ? length : 0] = 0;
	if (!(*seen & 1u << i))
		note_program(names, pid);
	*seen |= 1u << i;
}

static void look_at_process(struct busy *top, const char *pid)
{
	char path[64];
	struct dirent *entry;
	uint32_t seen = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			note_descriptor(top, pid, dirfd(dir), entry->d_name, &seen);
	if (dir)
		closedir(dir);
}

static void find_names(struct busy *top)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	memset(top->names, 0, sizeof(top->names));
	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			look_at_process(top, entry->d_name);
	if (dir)
		closedir(dir);
	for (uint32_t i = 0; i < top->found.nr; i++)
		if (!*top->names[i].path)
			snprintf(top->names[i].path, sizeof(top->names[i].path),
				 "inode %" PRIu64 ", closed", top->found.file[i].ino);
}

static double percent_past(const struct wire_files_traffic *file)
{
	uint64_t calls = (uint64_t)file->calls[0] + file->calls[1];

	return calls ? 100.0 * ((double)file->past[0] + file->past[1]) / (double)calls : 0;
}

static struct weir_size_text a_second(uint64_t bytes, double seconds)
{
	return size_format((uint64_t)((double)bytes / seconds));
}

static void print_table(struct busy *top, double seconds)
{
	static const char *const heads[COLUMNS] = { "file", "read/s", "written/s", "calls/s",
						    "past the kernel", "programs" };
	struct text_table table;

	table_init(&table, COLUMNS);
	for (unsigned int i = 0; i < COLUMNS; i++)
		table_add(&table, "%s", heads[i]);
	for (uint32_t i = 0; i < top->found.nr; i++) {
		const struct wire_files_traffic *file = &top->found.file[i];

		table_add(&table, "%s", top->names[i].path);
		for (int write = 0; write < 2; write++)
			table_add(&table, "%s", a_second(file->bytes[write], seconds).text);
		table_add(&table, "%.0f", ((double)file->calls[0] + file->calls[1]) / seconds);
		table_add(&table, "%.0f %%", percent_past(file));
		table_add(&table, "%s", top->names[i].programs);
	}
	table_print(&table, stdout);
	table_fini(&table);
	printf("%" PRIu32 " files\n", top->found.files);
}

static void print_json(struct busy *top, double seconds)
{
	struct json json;

	json_begin_line(&json, stdout);
	json_double(&json, "seconds", seconds);
	json_uint(&json, "nr_files", top->found.files);
	json_open_array(&json, "files");
	for (uint32_t i = 0; i < top->found.nr; i++) {
		const struct wire_files_traffic *file = &top->found.file[i];

		json_open_object(&json, NULL);
		json_string(&json, "path", top->names[i].path);
		json_uint(&json, "ino", file->ino);
		json_string(&json, "programs", top->names[i].programs);
		json_uint(&json, "read_bytes", file->bytes[0]);
		json_uint(&json, "written_bytes", file->bytes[1]);
		json_uint(&json, "reads", file->calls[0]);
		json_uint(&json, "writes", file->calls[1]);
		json_uint(&json, "past_the_kernel", (uint64_t)file->past[0] + file->past[1]);
		json_close(&json);
	}
	json_close(&json);
	json_end(&json);
}

static int watch(struct busy *top, const struct busy_options *given)
{
	bool clears = isatty(STDOUT_FILENO) && !given->json;
	uint64_t last_ns = 0;

	for (unsigned int round = 0; !given->rounds || round <= given->rounds; round++) {
		uint64_t now_ns;

		if (ioctl(top->fd, FILES_TOP, &top->found))
			return failure(top->cmd, "%s: %s", top->place.mountpoint,
				       errno == ENOTTY ? "the mount is of an earlier version" :
							 strerror(errno));
		now_ns = weir_now_ns();
		if (round) { /* the first answer only begins to count */
			double seconds = (double)(now_ns - last_ns) / WEIR_NS_PER_S;

			find_names(top);
			if (clears)
				fputs("\033[H\033[J", stdout);
			if (given->json)
				print_json(top, seconds);
			else
				print_table(top, seconds);
			fflush(stdout);
		}
		last_ns = now_ns;
		if (round == given->rounds && given->rounds)
			break;
		stop_or_sleep(given->interval);
		if (stop_requested())
			break;
	}
	return EXIT_OK;
}

int fs_top(const char *cmd, int argc, char **argv)
{
	struct busy_options given = { .interval = 1 };
	static struct busy top;
	struct stat st;
	int status = cmdline_parse(&top_line, argc, argv, &given);

	if (status != CMDLINE_PARSED)
		return status;
	top.cmd = cmd;
	status = place_find(cmd, argv[optind], &top.place);
	if (status)
		return status;
	top.fd = open(top.place.mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top.fd < 0 || fstat(top.fd, &st))
		return failure(cmd, "%s: %s", top.place.mountpoint, strerror(errno));
	top.dev = st.st_dev;
	stop_on_signals();
	status = watch(&top, &given);
	close(top.fd);
	return status;
}
