/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir key add, rotate and revoke: change a donor's list of keys, and ask the donor to read it. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/pid.h"
#include "apps/key/commands.h"
#include "apps/key/key_list.h"
#include "apps/lend.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weir/donor.h>

struct key_change {
	const char *tenant, *donor;
	unsigned int rights;
	uint64_t quota;
	bool old;
};

static bool take_rights(const char *text, void *options)
{
	struct key_change *change = options;

	return key_list_rights_parse(text, &change->rights);
}

#define DONOR_OPTION \
	{ "donor", 0, "PID", "then let this process of weir serve read the list", \
	  CMDLINE_TEXT(struct key_change, donor) }

static const struct cmdline_option add_options[] = {
	{ "tenant", 0, "NAME", "keys of one tenant share its files and regions; default: NAME",
	  CMDLINE_TEXT(struct key_change, tenant) },
	{ "rights", 0, "LIST",
	  "read, write, files, regions, admin, separated by commas;\n"
	  "default: all",
	  CMDLINE_PARSE(take_rights,
			"names of rights; each key has read, and files takes read,write") },
	{ "quota", 0, "SIZE", "most memory for regions of this key's clients; default: no limit",
	  CMDLINE_SIZE(struct key_change, quota, 1, UINT64_MAX) },
	DONOR_OPTION,
	{ NULL },
};

static const struct cmdline_option rotate_options[] = { DONOR_OPTION, { NULL } };

static const struct cmdline_option revoke_options[] = {
	{ "old", 0, NULL, "only the key from before the last rotate",
	  CMDLINE_FLAG(struct key_change, old) },
	DONOR_OPTION,
	{ NULL },
};

static const struct cmdline add_line = {
	.usage = "Usage: weir key add [OPTION...] KEYS NAME FILE\n"
		 "Adds a new key to the list KEYS of a donor, and writes it to FILE for clients.\n",
	.options = add_options,
	.arguments = "KEYS NAME FILE",
	.arguments_min = 3,
	.arguments_max = 3,
};

static const struct cmdline rotate_line = {
	.usage = "Usage: weir key rotate [OPTION...] KEYS NAME FILE\n"
		 "Adds a new key for NAME, and writes it to FILE for clients. The key from before\n"
		 "stays valid until 'weir key revoke --old'.\n",
	.options = rotate_options,
	.arguments = "KEYS NAME FILE",
	.arguments_min = 3,
	.arguments_max = 3,
};

static const struct cmdline revoke_line = {
	.usage = "Usage: weir key revoke [OPTION...] KEYS NAME\n"
		 "Removes the keys of NAME. Their sessions end when the donor has read the list,\n"
		 "and what only they held is zeroed.\n",
	.options = revoke_options,
	.arguments = "KEYS NAME",
	.arguments_min = 2,
	.arguments_max = 2,
};

/* Reads the list, which may be missing if @creates. Return: 0 or EXIT_FAILED. */
static int read_list(const char *cmd, const char *path, struct key_list *list, bool creates)
{
	struct weir_error error;
	int rc = key_list_read(path, list, &error);

	return rc && !(creates && rc == -ENOENT) ? failure(cmd, "%s", error.text) : 0;
}

static int write_list(const char *cmd, const char *path, const struct key_list *list)
{
	struct weir_error error;

	return key_list_write(path, list, &error) ? failure(cmd, "%s", error.text) : 0;
}

/* Writes a new key to the file @path, and fills @entry with it. */
static int make_key(const char *cmd, const char *path, struct key_entry *entry)
{
	struct weir_error error;
	struct weir_key *key;

	if (weir_key_create(path, &error))
		return failure(cmd, "%s", error.text);
	if (weir_key_load(path, &key, &error)) {
		unlink(path);
		return failure(cmd, "%s", error.text);
	}
	memcpy(entry->digits, key->bytes, KEY_LIST_DIGITS);
	weir_key_free(key);
	return 0;
}

/* Adds @entry with a new key, and writes list and key, or neither. */
static int add_new(const char *cmd, char **args, struct key_list *list, struct key_entry *entry)
{
	int status;

	if (list->nr == KEY_LIST_MAX)
		return failure(cmd, "%s holds %d keys, the most", args[0], KEY_LIST_MAX);
	status = make_key(cmd, args[2], entry);
	if (status)
		return status;
	list->entry[list->nr++] = *entry;
	status = write_list(cmd, args[0], list);
	if (status)
		unlink(args[2]);
	return status;
}

static int change_add(const char *cmd, char **args, struct key_list *list,
		      const struct key_change *change)
{
	const char *tenant = change->tenant ? change->tenant : args[1];
	struct key_entry entry = { .rights = change->rights ? change->rights : WEIR_RIGHTS_ALL,
				   .quota = change->quota };

	if (!key_list_is_name(args[1]) || !key_list_is_name(tenant))
		return usage_error(cmd, "names have 1 to %d letters, digits, '.', '_' and '-'",
				   KEY_LIST_NAME - 1);
	if (key_list_find(list, args[1], false))
		return failure(cmd, "%s has a key '%s' already: 'weir key rotate' replaces it",
			       args[0], args[1]);
	strcpy(entry.name, args[1]);
	strcpy(entry.tenant, tenant);
	return add_new(cmd, args, list, &entry);
}

static int change_rotate(const char *cmd, char **args, struct key_list *list,
			 const struct key_change *change)
{
	struct key_entry *current = key_list_find(list, args[1], false), entry;

	(void)change;
	if (!current)
		return failure(cmd, "%s has no key '%s'", args[0], args[1]);
	if (key_list_find(list, args[1], true))
		return failure(cmd, "'%s' has an old key still: 'weir key revoke --old' first",
			       args[1]);
	entry = *current;
	current->is_old = true;
	return add_new(cmd, args, list, &entry);
}

static int change_revoke(const char *cmd, char **args, struct key_list *list,
			 const struct key_change *change)
{
	struct key_entry *old = key_list_find(list, args[1], true), *current;

	if (old)
		key_list_remove(list, old);
	current = change->old ? NULL : key_list_find(list, args[1], false);
	if (current)
		key_list_remove(list, current);
	if (!old && !current)
		return failure(cmd, "%s has no %skey '%s'", args[0], change->old ? "old " : "",
			       args[1]);
	return write_list(cmd, args[0], list);
}

/* Parses the command line, and changes the list under its lock. */
static int run(const char *cmd, const struct cmdline *line, int argc, char **argv,
	       int (*change_list)(const char *cmd, char **args, struct key_list *list,
				  const struct key_change *change))
{
	struct key_change change = { .rights = 0 };
	int status = cmdline_parse(line, argc, argv, &change), lock;
	static struct key_list list;
	struct weir_error error;
	pid_t pid = 0;

	if (status != CMDLINE_PARSED)
		return status;
	argv += optind;
	if (change.donor && (!pid_parse(change.donor, &pid) || !lend_is_donor(pid)))
		return failure(cmd, "%s: not a process of weir serve", change.donor);
	lock = key_list_lock(argv[0], &error);
	if (lock < 0)
		return failure(cmd, "%s", error.text);
	status = read_list(cmd, argv[0], &list, line == &add_line);
	if (!status)
		status = change_list(cmd, argv, &list, &change);
	key_list_wipe(&list);
	close(lock);
	if (!status && pid && kill(pid, SIGHUP))
		return failure(cmd, "%s: %s", change.donor, strerror(errno));
	if (!status)
		printf("%s: %s\n", argv[0],
		       pid ? "changed, and the donor reads it: see its log" :
			     "changed; donors read it at SIGHUP");
	return status;
}

int key_add(const char *cmd, int argc, char **argv)
{
	return run(cmd, &add_line, argc, argv, change_add);
}

int key_rotate(const char *cmd, int argc, char **argv)
{
	return run(cmd, &rotate_line, argc, argv, change_rotate);
}

int key_revoke(const char *cmd, int argc, char **argv)
{
	return run(cmd, &revoke_line, argc, argv, change_revoke);
}
