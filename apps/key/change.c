/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir key add, rotate and revoke: change a donor's list of keys, and ask the donor to read it. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/pid.h"
#include "apps/key/commands.h"
#include "apps/key/key_list.h"
#include "apps/lend.h"
#include "apps/serve/donor_page.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weir/donor.h>

#define ANSWER_NS (10 * WEIR_NS_PER_S) /* the most to wait for a donor */
#define LOOK_MS 20 /* at its page */

struct key_change {
	const char *tenant, *donor, *identity;
	unsigned int rights;
	uint64_t quota;
	bool old;
};

static bool take_rights(const char *text, void *options)
{
	struct key_change *change = options;

	return key_list_rights_parse(text, &change->rights);
}

#define IDENTITY_OPTION \
	{ "identity", 0, "FILE", "name this identity of the donor in the new key's file, so\n" \
	  "that clients trust no other donor; made if it is missing", \
	  CMDLINE_TEXT(struct key_change, identity) }

#define DONOR_OPTION \
	{ "donor", 0, "PID", "let this process of weir serve read the list, and wait for it", \
	  CMDLINE_TEXT(struct key_change, donor) }

static const struct cmdline_option add_options[] = {
	{ "tenant", 0, "NAME", "keys of one tenant share its files and regions; default: NAME",
	  CMDLINE_TEXT(struct key_change, tenant) },
	{ "rights", 0, "LIST",
	  "read, write, files, regions, admin, pool, separated by commas;\n"
	  "default: all but pool, which donors of a pool have",
	  CMDLINE_PARSE(take_rights,
			"names of rights; each key has read, files takes read,write, and pool "
			"takes read,write,regions") },
	{ "quota", 0, "SIZE", "most memory for regions of this key's clients; default: no limit",
	  CMDLINE_SIZE(struct key_change, quota, 1, UINT64_MAX) },
	IDENTITY_OPTION,
	DONOR_OPTION,
	{ NULL },
};

static const struct cmdline_option rotate_options[] = { IDENTITY_OPTION, DONOR_OPTION, { NULL } };

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
	int rc = key_list_read_as_keeper(path, list, &error);

	return rc && !(creates && rc == -ENOENT) ? failure(cmd, "%s", error.text) : 0;
}

static int write_list(const char *cmd, const char *path, const struct key_list *list)
{
	struct weir_error error;

	return key_list_write(path, list, &error) ? failure(cmd, "%s", error.text) : 0;
}

/* Writes a new key to the file @path, with the donor's identity, and fills @entry with it. */
static int make_key(const char *cmd, const char *path, const char *identity,
		    struct key_entry *entry)
{
	unsigned char public[32];
	struct weir_error error;
	struct weir_key *key;

	if (identity && key_identity_get(cmd, identity, public))
		return EXIT_FAILED;
	if (weir_key_create(path, &error))
		return failure(cmd, "%s", error.text);
	if ((identity && weir_key_trust(path, public, &error)) ||
	    weir_key_load(path, &key, &error)) {
		unlink(path);
		return failure(cmd, "%s", error.text);
	}
	memcpy(entry->digits, key->bytes, KEY_LIST_DIGITS);
	weir_key_free(key);
	return 0;
}

/* Adds @entry with a new key, which it wipes there, and writes list and key, or neither. */
static int add_new(const char *cmd, char **args, struct key_list *list, const char *identity,
		   struct key_entry *entry)
{
	int status;

	status = make_key(cmd, args[2], identity, entry);
	if (!status)
		list->entry[list->nr++] = *entry;
	sodium_memzero(entry->digits, sizeof(entry->digits));
	if (status)
		return status;
	status = write_list(cmd, args[0], list);
	if (status)
		unlink(args[2]);
	return status;
}

static int refuse_more(const char *cmd, char **args)
{
	return failure(cmd, "%s holds %d keys, the most", args[0], KEY_LIST_MAX);
}

static int change_add(const char *cmd, char **args, struct key_list *list,
		      const struct key_change *change)
{
	const char *tenant = change->tenant ? change->tenant : args[1];
	struct key_entry entry = { .rights = change->rights ? change->rights : WEIR_RIGHTS_ALL,
				   .quota = change->quota };

	if (list->nr == KEY_LIST_MAX)
		return refuse_more(cmd, args);
	if (!key_list_is_name(args[1]) || !key_list_is_name(tenant))
		return usage_error(cmd, "names have 1 to %d letters, digits, '.', '_' and '-'",
				   KEY_LIST_NAME - 1);
	if (key_list_find(list, args[1], false))
		return failure(cmd, "%s has a key '%s' already: 'weir key rotate' replaces it",
			       args[0], args[1]);
	strcpy(entry.name, args[1]);
	strcpy(entry.tenant, tenant);
	return add_new(cmd, args, list, change->identity, &entry);
}

static int change_rotate(const char *cmd, char **args, struct key_list *list,
			 const struct key_change *change)
{
	struct key_entry *current = key_list_find(list, args[1], false), entry;

	if (!current)
		return failure(cmd, "%s has no key '%s'", args[0], args[1]);
	if (key_list_find(list, args[1], true))
		return failure(cmd, "'%s' has an old key still: 'weir key revoke --old' first",
			       args[1]);
	if (list->nr == KEY_LIST_MAX)
		return refuse_more(cmd, args);
	entry = *current;
	current->is_old = true;
	return add_new(cmd, args, list, change->identity, &entry);
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

/* Reads the donor's answer for its list. Return: false if its page cannot be read. */
static bool read_answer(pid_t pid, struct donor_page_keys *answer)
{
	struct donor_list donors = { 0 };
	bool found = !donor_list_add(&donors, pid) && donors.count;

	if (found)
		*answer = donors.found->page.keys;
	donor_list_free(&donors);
	return found;
}

/* Whether the donor has read the list as it is now, which may be newer than this command's. */
static bool has_read(pid_t pid, const char *path, struct donor_page_keys *answer)
{
	struct key_list_id id;

	return key_list_identify(path, &id) && read_answer(pid, answer) &&
	       !memcmp(&id, &answer->list, sizeof(id));
}

/*
 * A key may be thought revoked only when the donor says so. The answer is read twice, because the
 * donor may write its page meanwhile. Return: an exit status.
 */
static int await_donor(const char *cmd, const char *path, pid_t pid)
{
	struct donor_page_keys answer = { .status = 0 };
	uint64_t end_ns = weir_now_ns() + ANSWER_NS;
	unsigned int looks = 0;

	if (kill(pid, SIGHUP))
		return failure(cmd, "%s is changed, but process %ld has not read it: %s", path,
			       (long)pid, strerror(errno));
	do {
		looks = has_read(pid, path, &answer) ? looks + 1 : 0;
		if (looks < 2)
			poll(NULL, 0, LOOK_MS);
	} while (looks < 2 && weir_now_ns() < end_ns);
	if (looks < 2)
		return failure(cmd,
			       "%s is changed, but process %ld did not say within %" PRIu64
			       " s that it has read it: see its log",
			       path, (long)pid, (uint64_t)(ANSWER_NS / WEIR_NS_PER_S));
	if (answer.status)
		return failure(cmd,
			       "%s is changed, but the donor has not taken all of it, see its log: "
			       "%s",
			       path, answer.reason);
	printf("%s: changed, and the donor has read it\n", path);
	return EXIT_OK;
}

/* Parses the command line, and changes the list under its lock. */
static int run(const char *cmd, const struct cmdline *line, int argc, char **argv,
	       int (*change_list)(const char *cmd, char **args, struct key_list *list,
				  const struct key_change *change))
{
	struct key_change change = { .rights = 0 };
	int status = cmdline_parse(line, argc, argv, &change), lock;
	struct key_list *list;
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
	list = key_list_new();
	status = list ? read_list(cmd, argv[0], list, line == &add_line) :
			failure(cmd, "out of memory");
	if (!status)
		status = change_list(cmd, argv, list, &change);
	key_list_free(list);
	key_list_unlock(argv[0], lock);
	if (status)
		return status;
	if (pid)
		return await_donor(cmd, argv[0], pid);
	printf("%s: changed; donors read it at SIGHUP\n", argv[0]);
	return EXIT_OK;
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
