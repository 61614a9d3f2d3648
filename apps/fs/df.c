/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir fs df: mounts, their space, and the donors that lend it. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/table.h"
#include "apps/fs/fs.h"
#include "apps/fs/holding.h"
#include "apps/fs/place.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define COLUMNS 8

struct df_options {
	bool json;
};

/* What is shown of a mount. */
struct df_mount {
	struct fs_place place;
	struct holding holding;
	uint64_t size, used, free, files;
};

/* A running output: rows of a table, or objects of JSON. */
struct df_output {
	const char *cmd;
	bool is_json;
	struct text_table table;
	struct json json;
};

static const struct cmdline_option options[] = {
	CMDLINE_JSON(struct df_options, json),
	{ NULL },
};

static const struct cmdline df_line = {
	.usage = "Usage: weir fs df [--json] [PATH...]\n"
		 "Shows the mounts of this machine, or those that the PATHs are on: their space,\n"
		 "and how much of the mount's memory each donor lends. A pool's volume has its\n"
		 "memory from the start, with all copies.\n",
	.options = options,
	.arguments = "[PATH...]",
	.arguments_min = 0,
	.arguments_max = INT_MAX,
};

static void add_rows(struct df_output *o, const struct df_mount *m)
{
	for (unsigned int i = 0; i < m->holding.nr || !i; i++) {
		const struct holding_donor *donor = &m->holding.donors[i];
		bool has_donor = i < m->holding.nr;

		table_add(&o->table, "%s", i ? "" : m->place.mountpoint);
		table_add(&o->table, "%s", i ? "" : size_format(m->size).text);
		table_add(&o->table, "%s", i ? "" : size_format(m->used).text);
		table_add(&o->table, "%s", i ? "" : size_format(m->free).text);
		if (i)
			table_add(&o->table, "%s", "");
		else
			table_add(&o->table, "%u", m->holding.copies);
		table_add(&o->table, "%s", has_donor ? donor->name : "none yet");
		table_add(&o->table, "%s", has_donor ? donor->state : "");
		table_add(&o->table, "%s", !has_donor ? "" : size_format(
			  m->holding.is_pool ? donor->bytes : m->size).text);
	}
}

static void add_object(struct df_output *o, const struct df_mount *m)
{
	json_open_object(&o->json, NULL);
	json_string(&o->json, "mountpoint", m->place.mountpoint);
	json_string(&o->json, "donor", m->place.donor);
	json_uint(&o->json, "bytes", m->size);
	json_uint(&o->json, "used", m->used);
	json_uint(&o->json, "free", m->free);
	json_uint(&o->json, "files", m->files);
	json_uint(&o->json, "copies", m->holding.copies);
	json_open_array(&o->json, "donors");
	for (unsigned int i = 0; m->holding.is_pool && i < m->holding.nr; i++) {
		json_open_object(&o->json, NULL);
		json_string(&o->json, "donor", m->holding.donors[i].name);
		json_string(&o->json, "address", m->holding.donors[i].address);
		json_string(&o->json, "state", m->holding.donors[i].state);
		json_uint(&o->json, "bytes", m->holding.donors[i].bytes);
		json_close(&o->json);
	}
	json_close(&o->json);
	json_close(&o->json);
}

static int show_mount(struct df_output *o, struct df_mount *m)
{
	struct statvfs fs;
	int status;

	if (statvfs(m->place.mountpoint, &fs))
		return failure(o->cmd, "%s: %s", m->place.mountpoint, strerror(errno));
	m->size = fs.f_blocks * fs.f_frsize;
	m->free = fs.f_bfree * fs.f_frsize;
	m->used = m->size - m->free;
	m->files = fs.f_files - fs.f_ffree;
	status = holding_find(o->cmd, &m->place, &m->holding);
	if (status)
		return status;
	if (o->is_json)
		add_object(o, m);
	else
		add_rows(o, m);
	return EXIT_OK;
}

static int show_all(struct df_output *o, struct df_mount *m)
{
	struct place_list list;
	int status = place_list_open(&list, o->cmd);

	if (status)
		return status;
	while (place_list_next(&list, &m->place)) {
		int one = show_mount(o, m);

		status = status ? status : one;
	}
	place_list_close(&list);
	return status;
}

static int show_paths(struct df_output *o, struct df_mount *m, char **paths)
{
	int status = EXIT_OK;

	for (; *paths; paths++) {
		int one = place_find(o->cmd, *paths, &m->place);

		if (!one)
			one = show_mount(o, m);
		status = status ? status : one;
	}
	return status;
}

static void begin_output(struct df_output *o)
{
	static const char *const heads[COLUMNS] = { "mount", "size", "used", "free", "copies",
						    "donor", "state", "lends" };

	if (o->is_json) {
		json_begin(&o->json, stdout);
		json_open_array(&o->json, "mounts");
		return;
	}
	table_init(&o->table, COLUMNS);
	for (unsigned int i = 0; i < COLUMNS; i++)
		table_add(&o->table, "%s", heads[i]);
}

static void end_output(struct df_output *o)
{
	if (o->is_json) {
		json_close(&o->json);
		json_end(&o->json);
		return;
	}
	table_print(&o->table, stdout);
	table_fini(&o->table);
}

int fs_df(const char *cmd, int argc, char **argv)
{
	struct df_options given = { 0 };
	int status = cmdline_parse(&df_line, argc, argv, &given);
	struct df_output o = { .cmd = cmd };
	static struct df_mount mount;

	if (status != CMDLINE_PARSED)
		return status;
	o.is_json = given.json;
	begin_output(&o);
	status = argv[optind] ? show_paths(&o, &mount, argv + optind) : show_all(&o, &mount);
	end_output(&o);
	return status;
}
