/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir key list: a donor's keys, without their secrets. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/table.h"
#include "apps/key/commands.h"
#include "apps/key/key_list.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

struct key_show {
	bool json;
};

static const struct cmdline_option show_options[] = {
	CMDLINE_JSON(struct key_show, json),
	{ NULL },
};

static const struct cmdline show_line = {
	.usage = "Usage: weir key list [--json] KEYS\n"
		 "Shows the keys of a donor's list, without their secrets.\n",
	.options = show_options,
	.arguments = "KEYS",
	.arguments_min = 1,
	.arguments_max = 1,
};

/* The id by which a donor's log names the key. */
static void format_id(const struct key_entry *entry, char id[static 17])
{
	struct weir_key key;

	key_list_key(entry, &key);
	snprintf(id, 17, "%016" PRIx64, weir_key_id(&key));
	sodium_memzero(&key, sizeof(key));
}

static int print_json(const struct key_list *list)
{
	char rights[KEY_LIST_RIGHTS], id[17];
	struct json json;

	json_begin(&json, stdout);
	json_open_array(&json, "keys");
	for (unsigned int i = 0; i < list->nr; i++) {
		const struct key_entry *e = &list->entry[i];

		key_list_rights_format(e->rights, rights);
		format_id(e, id);
		json_open_object(&json, NULL);
		json_string(&json, "name", e->name);
		json_string(&json, "tenant", e->tenant);
		json_string(&json, "state", e->is_old ? "old" : "current");
		json_string(&json, "rights", rights);
		json_uint(&json, "quota_bytes", e->quota);
		json_string(&json, "id", id);
		json_close(&json);
	}
	json_close(&json);
	json_end(&json);
	return EXIT_OK;
}

static int print_table(const struct key_list *list)
{
	static const char *const heads[] = { "name", "tenant", "state", "rights", "quota", "id" };
	enum { TENANT = 1, STATE, RIGHTS };
	char rights[KEY_LIST_RIGHTS], id[17];
	struct text_table table;

	table_init(&table, sizeof(heads) / sizeof(heads[0]));
	for (unsigned int i = TENANT; i <= RIGHTS; i++)
		table_align_left(&table, i);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_add(&table, "%s", heads[i]);
	for (unsigned int i = 0; i < list->nr; i++) {
		const struct key_entry *e = &list->entry[i];

		key_list_rights_format(e->rights, rights);
		format_id(e, id);
		table_add(&table, "%s", e->name);
		table_add(&table, "%s", e->tenant);
		table_add(&table, "%s", e->is_old ? "old" : "current");
		table_add(&table, "%s", rights);
		table_add(&table, "%s", e->quota ? size_format(e->quota).text : "-");
		table_add(&table, "%s", id);
	}
	table_print(&table, stdout);
	table_fini(&table);
	return EXIT_OK;
}

int key_show(const char *cmd, int argc, char **argv)
{
	struct key_show show = { .json = false };
	int status = cmdline_parse(&show_line, argc, argv, &show);
	struct key_list *list;
	struct weir_error error;

	if (status != CMDLINE_PARSED)
		return status;
	list = key_list_new();
	if (!list)
		return failure(cmd, "out of memory");
	if (key_list_read_as_keeper(argv[optind], list, &error))
		status = failure(cmd, "%s", error.text);
	else if (show.json)
		status = print_json(list);
	else
		status = print_table(list);
	key_list_free(list);
	return status;
}
