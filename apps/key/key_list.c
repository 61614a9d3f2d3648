/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/key/key_list.h"
#include "apps/fs/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/donor.h>

#include "lib/base/error.h"
#include "lib/base/secret.h"
#include "lib/pool/lock_file.h"

#define FORMAT "weir-keys 1 %u\n"
/* Of a line: two names, "current", rights, a quota, the key, and spaces. */
#define LINE_MAX_BYTES (2 * KEY_LIST_NAME + 8 + KEY_LIST_RIGHTS + 21 + KEY_LIST_DIGITS + 1)
#define TEXT_MAX (sizeof(FORMAT) + 10 + KEY_LIST_MAX * LINE_MAX_BYTES)
#define RIGHTS_OF_FILES (WEIR_RIGHT_FILES | WEIR_RIGHT_READ | WEIR_RIGHT_WRITE)
#define RIGHTS_OF_POOL (WEIR_RIGHT_POOL | WEIR_RIGHT_READ | WEIR_RIGHT_WRITE | WEIR_RIGHT_REGIONS)

static const struct {
	const char *name;
	unsigned int right;
} rights_names[] = {
	{ "read", WEIR_RIGHT_READ },	   { "write", WEIR_RIGHT_WRITE },
	{ "files", WEIR_RIGHT_FILES },	   { "regions", WEIR_RIGHT_REGIONS },
	{ "admin", WEIR_RIGHT_ADMIN },	   { "pool", WEIR_RIGHT_POOL },
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
	    (found & WEIR_RIGHT_FILES && (found & RIGHTS_OF_FILES) != RIGHTS_OF_FILES) ||
	    (found & WEIR_RIGHT_POOL && (found & RIGHTS_OF_POOL) != RIGHTS_OF_POOL))
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

struct key_list *key_list_new(void)
{
	return weir_secret_alloc(sizeof(struct key_list));
}

void key_list_free(struct key_list *list)
{
	weir_secret_free(list);
}

void key_list_key(const struct key_entry *entry, struct weir_key *key)
{
	key->nr_donors = 0;
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

/*
 * Reads a file of at most TEXT_MAX bytes, with a NUL behind it. Return: its length; -EINVAL it is
 * longer; another negative errno.
 */
static ssize_t read_text(int fd, char *text)
{
	size_t length = 0;
	ssize_t n;

	do {
		n = read(fd, text + length, TEXT_MAX + 1 - length);
		length += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0 || length > TEXT_MAX)
		return n < 0 ? -errno : -EINVAL;
	text[length] = '\0';
	return (ssize_t)length;
}

static int parse_line(char *line, size_t length, const char *path, unsigned int number,
		      struct key_list *list, struct weir_error *error)
{
	struct key_entry entry = { .quota = 0 };
	int rc = 0;

	if (strlen(line) != length || !parse_entry(line, &entry))
		rc = weir_error_set(error, -EINVAL, "%s: line %u is malformed", path, number);
	else if (is_duplicate(list, &entry))
		rc = weir_error_set(error, -EINVAL, "%s: line %u: a key or name twice", path,
				    number);
	else
		list->entry[list->nr++] = entry;
	sodium_memzero(&entry, sizeof(entry));
	return rc;
}

static int parse_list(char *text, size_t length, const char *path, struct key_list *list,
		      struct weir_error *error)
{
	char *line, *end = text + length, *newline;
	unsigned int wanted, number = 1;
	int at = 0, rc = 0;

	if (sscanf(text, FORMAT "%n", &wanted, &at) != 1 || wanted > KEY_LIST_MAX)
		return weir_error_set(error, -EINVAL, "%s: not a list of keys", path);
	for (line = text + at; !rc && line < end; line = newline + 1) {
		newline = memchr(line, '\n', (size_t)(end - line));
		newline = newline ? newline : end;
		*newline = '\0';
		number++;
		rc = list->nr < wanted ?
			     parse_line(line, (size_t)(newline - line), path, number, list, error) :
			     weir_error_set(error, -EINVAL, "%s: line %u is malformed", path,
					    number);
	}
	if (!rc && list->nr != wanted)
		rc = weir_error_set(error, -EINVAL, "%s: %u of %u keys are there: it was cut off",
				    path, list->nr, wanted);
	return rc;
}

static int read_and_parse(int fd, const char *path, struct key_list *list,
			  struct weir_error *error)
{
	char *text = weir_secret_alloc(TEXT_MAX + 2);
	ssize_t length;
	int rc;

	if (!text)
		return weir_error_set(error, -ENOMEM, "%s: out of memory", path);
	length = read_text(fd, text);
	rc = length == -EINVAL ? weir_error_set(error, -EINVAL, "%s: not a list of keys", path) :
	     length < 0	       ? weir_error_set(error, (int)length, "%s: %s", path,
						strerror((int)-length)) :
				 parse_list(text, (size_t)length, path, list, error);
	weir_secret_free(text);
	return rc;
}

static struct key_list_id id_of(const struct stat *st)
{
	return (struct key_list_id){
		.inode = st->st_ino,
		.bytes = (uint64_t)st->st_size,
		.seconds = (uint64_t)st->st_mtim.tv_sec,
		.nanoseconds = (uint64_t)st->st_mtim.tv_nsec,
	};
}

bool key_list_identify(const char *path, struct key_list_id *id)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	*id = id_of(&st);
	return true;
}

static int read_list(const char *path, bool of_any_user, struct key_list *list,
		     struct weir_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
	struct stat st;

	list->nr = 0;
	if (fd < 0 || fstat(fd, &st)) {
		rc = weir_error_set(error, -errno, "%s: %s", path, strerror(errno));
	} else {
		list->id = id_of(&st);
		list->owner = st.st_uid;
		list->group = st.st_gid;
		rc = weir_key_check_file(fd, path, of_any_user ? st.st_uid : geteuid(), error);
	}
	if (!rc)
		rc = read_and_parse(fd, path, list, error);
	if (fd >= 0)
		close(fd);
	return rc;
}

int key_list_read(const char *path, struct key_list *list, struct weir_error *error)
{
	return read_list(path, false, list, error);
}

int key_list_read_as_keeper(const char *path, struct key_list *list, struct weir_error *error)
{
	return read_list(path, !geteuid(), list, error);
}

/* Not by stdio, which leaves copies in its buffers. Return: the length. */
static size_t format_list(const struct key_list *list, char *text)
{
	char rights[KEY_LIST_RIGHTS];
	size_t at = (size_t)sprintf(text, FORMAT, list->nr);

	for (unsigned int i = 0; i < list->nr; i++) {
		const struct key_entry *e = &list->entry[i];

		key_list_rights_format(e->rights, rights);
		at += (size_t)snprintf(text + at, LINE_MAX_BYTES + 1, "%s %s %s %s %" PRIu64 " ",
				       e->name, e->tenant, e->is_old ? "old" : "current", rights,
				       e->quota);
		memcpy(text + at, e->digits, KEY_LIST_DIGITS);
		at += KEY_LIST_DIGITS;
		text[at++] = '\n';
	}
	return at;
}

static int write_list(int fd, const struct key_list *list)
{
	char *text = weir_secret_alloc(TEXT_MAX + 2);
	size_t at = 0, length;
	ssize_t n = 0;

	if (!text)
		return -ENOMEM;
	length = format_list(list, text);
	while (at < length && (n = write(fd, text + at, length - at)) > 0)
		at += (size_t)n;
	weir_secret_free(text);
	if (n < 0 || fsync(fd))
		return -errno;
	return at < length ? -ENOSPC : 0;
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
	rc = !geteuid() && fchown(fd, list->owner, list->group) ? -errno : write_list(fd, list);
	close(fd);
	if (!rc && rename(new, path))
		rc = -errno;
	if (rc)
		unlink(new);
	else
		rc = folder_sync(path);
	if (!rc)
		return 0;
	return weir_error_set(error, rc, "%s: not written: %s", path, strerror(-rc));
}

int key_list_lock(const char *path, struct weir_error *error)
{
	return weir_lock_file_take(path, 0600, error);
}

void key_list_unlock(const char *path, int lock)
{
	weir_lock_file_remove(path, lock);
}
