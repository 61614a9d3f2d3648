/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/key/key_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/donor.h>

#include "lib/base/error.h"

#define FORMAT "weir-keys 1 %u\n"
#define RIGHTS_OF_FILES (WEIR_RIGHT_FILES | WEIR_RIGHT_READ | WEIR_RIGHT_WRITE)

static const struct {
	const char *name;
	unsigned int right;
} rights_names[] = {
	{ "read", WEIR_RIGHT_READ },	   { "write", WEIR_RIGHT_WRITE },
	{ "files", WEIR_RIGHT_FILES },	   { "regions", WEIR_RIGHT_REGIONS },
	{ "admin", WEIR_RIGHT_ADMIN },
};

#define NR_RIGHTS (sizeof(rights_names) / sizeof(rights_names[0]))

bool key_list_is_name(const char *name)
{
	size_t length = strlen(name);

	return length && length < KEY_LIST_NAME &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		       length;
}

static unsigned int right_of(const char *name)
{
	for (size_t i = 0; i < NR_RIGHTS; i++)
		if (!strcmp(name, rights_names[i].name))
			return rights_names[i].right;
	return 0;
}

bool key_list_rights_parse(const char *text, unsigned int *rights)
{
	char copy[KEY_LIST_RIGHTS], *rest = copy, *name;
	unsigned int found = 0, right;

	if (!strcmp(text, "all")) {
		*rights = WEIR_RIGHTS_ALL;
		return true;
	}
	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	while ((name = strsep(&rest, ","))) {
		right = right_of(name);
		if (!right)
			return false;
		found |= right;
	}
	if (!(found & WEIR_RIGHT_READ) ||
	    (found & WEIR_RIGHT_FILES && (found & RIGHTS_OF_FILES) != RIGHTS_OF_FILES))
		return false;
	*rights = found;
	return true;
}

void key_list_rights_format(unsigned int rights, char text[static KEY_LIST_RIGHTS])
{
	size_t at = 0;

	for (size_t i = 0; i < NR_RIGHTS; i++)
		if (rights & rights_names[i].right)
			at += (size_t)snprintf(text + at, KEY_LIST_RIGHTS - at, "%s%s",
					       at ? "," : "", rights_names[i].name);
}

struct key_entry *key_list_find(struct key_list *list, const char *name, bool is_old)
{
	for (unsigned int i = 0; i < list->nr; i++)
		if (list->entry[i].is_old == is_old && !strcmp(list->entry[i].name, name))
			return &list->entry[i];
	return NULL;
}

void key_list_remove(struct key_list *list, struct key_entry *entry)
{
	struct key_entry *end = &list->entry[--list->nr];

	memmove(entry, entry + 1, (size_t)((char *)end - (char *)entry));
	sodium_memzero(end, sizeof(*end));
}

void key_list_wipe(struct key_list *list)
{
	sodium_memzero(list, sizeof(*list));
}

void key_list_key(const struct key_entry *entry, struct weir_key *key)
{
	key->length = KEY_LIST_DIGITS;
	memcpy(key->bytes, entry->digits, KEY_LIST_DIGITS);
}

/* "NAME TENANT current|old RIGHTS QUOTA DIGITS". Return: false if malformed. */
static bool parse_entry(char *line, struct key_entry *entry)
{
	char *field[6], *rest = line, *end;

	for (int i = 0; i < 6; i++) {
		field[i] = strsep(&rest, " ");
		if (!field[i])
			return false;
	}
	if (rest || !key_list_is_name(field[0]) || !key_list_is_name(field[1]) ||
	    !key_list_rights_parse(field[3], &entry->rights))
		return false;
	entry->is_old = !strcmp(field[2], "old");
	if (!entry->is_old && strcmp(field[2], "current"))
		return false;
	errno = 0;
	entry->quota = strtoull(field[4], &end, 10);
	if (errno || *end || field[4][0] < '0' || field[4][0] > '9')
		return false;
	if (strlen(field[5]) != KEY_LIST_DIGITS ||
	    strspn(field[5], "0123456789abcdef") != KEY_LIST_DIGITS)
		return false;
	strcpy(entry->name, field[0]);
	strcpy(entry->tenant, field[1]);
	strcpy(entry->digits, field[5]);
	return true;
}

/* Whether a name or a key is in the list already. */
static bool is_duplicate(struct key_list *list, const struct key_entry *entry)
{
	if (key_list_find(list, entry->name, entry->is_old))
		return true;
	for (unsigned int i = 0; i < list->nr; i++)
		if (!strcmp(list->entry[i].digits, entry->digits))
			return true;
	return false;
}

static int parse_list(FILE *file, const char *path, struct key_list *list, struct weir_error *error)
{
	unsigned int wanted, number = 1;
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int rc = 0;

	if (fscanf(file, FORMAT, &wanted) != 1 || wanted > KEY_LIST_MAX)
		return weir_error_set(error, -EINVAL, "%s: not a list of keys", path);
	while (!rc && (length = getline(&line, &room, file)) > 0) {
		struct key_entry entry = { .quota = 0 };

		number++;
		if (line[length - 1] == '\n')
			line[--length] = '\0';
		if (list->nr == wanted || strlen(line) != (size_t)length ||
		    !parse_entry(line, &entry))
			rc = weir_error_set(error, -EINVAL, "%s: line %u is malformed", path,
					    number);
		else if (is_duplicate(list, &entry))
			rc = weir_error_set(error, -EINVAL, "%s: line %u: a key or name twice",
					    path, number);
		else
			list->entry[list->nr++] = entry;
		sodium_memzero(&entry, sizeof(entry));
	}
	if (!rc && list->nr != wanted)
		rc = weir_error_set(error, -EINVAL, "%s: %u of %u keys are there: it was cut off",
				    path, list->nr, wanted);
	if (line)
		sodium_memzero(line, room);
	free(line);
	return rc;
}

int key_list_read(const char *path, struct key_list *list, struct weir_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
	FILE *file;

	list->nr = 0;
	if (fd < 0)
		return weir_error_set(error, -errno, "%s: %s", path, strerror(errno));
	rc = weir_key_check_file(fd, path, error);
	file = rc ? NULL : fdopen(fd, "r");
	if (!file) {
		close(fd);
		return rc ? rc : weir_error_set(error, -ENOMEM, "%s: out of memory", path);
	}
	setvbuf(file, NULL, _IONBF, 0); /* no copy of a key in a buffer of the C library */
	rc = parse_list(file, path, list, error);
	fclose(file);
	if (rc)
		key_list_wipe(list);
	return rc;
}

static int print_list(int fd, const struct key_list *list)
{
	char rights[KEY_LIST_RIGHTS];
	int rc = dprintf(fd, FORMAT, list->nr);

	for (unsigned int i = 0; i < list->nr && rc >= 0; i++) {
		const struct key_entry *e = &list->entry[i];

		key_list_rights_format(e->rights, rights);
		rc = dprintf(fd, "%s %s %s %s %" PRIu64 " %s\n", e->name, e->tenant,
			     e->is_old ? "old" : "current", rights, e->quota, e->digits);
	}
	return rc < 0 || fsync(fd) ? -errno : 0;
}

int key_list_write(const char *path, const struct key_list *list, struct weir_error *error)
{
	char new[PATH_MAX];
	int fd, rc;

	if (snprintf(new, sizeof(new), "%s.XXXXXX", path) >= (int)sizeof(new))
		return weir_error_set(error, -ENAMETOOLONG, "%s: too long", path);
	fd = mkstemp(new); /* mode 0600 */
	if (fd < 0)
		return weir_error_set(error, -errno, "%s: %s", new, strerror(errno));
	rc = print_list(fd, list);
	close(fd);
	if (!rc && rename(new, path))
		rc = -errno;
	if (!rc)
		return 0;
	unlink(new);
	return weir_error_set(error, rc, "%s: not written: %s", path, strerror(-rc));
}

int key_list_lock(const char *path, struct weir_error *error)
{
	char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0 || flock(fd, LOCK_EX)) {
		weir_error_set(error, -errno, "the folder of %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -EIO;
	}
	free(copy);
	return fd;
}
