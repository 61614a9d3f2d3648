/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/archive/xattrs.h"

#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define NAME_MAX_BYTES 255

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : toupper((unsigned char)c) - 'A' + 10;
}

/* Return: whether the name has a %XX, and so differs from @decoded. */
static bool decode(const char *name, char decoded[NAME_MAX_BYTES + 1])
{
	bool is_encoded = false;
	size_t length = 0;

	for (; *name && length < NAME_MAX_BYTES; name++) {
		if (*name == '%' && isxdigit((unsigned char)name[1]) &&
		    isxdigit((unsigned char)name[2])) {
			decoded[length++] = (char)(digit(name[1]) * 16 + digit(name[2]));
			name += 2;
			is_encoded = true;
		} else {
			decoded[length++] = *name;
		}
	}
	decoded[length] = 0;
	return is_encoded && !*name;
}

static bool has_xattr(struct archive_entry *entry, const char *wanted, const void *value,
		      size_t length)
{
	const char *name;
	const void *other;
	size_t other_length;

	archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &other, &other_length) == ARCHIVE_OK)
		if (!strcmp(name, wanted) && other_length == length &&
		    !memcmp(other, value, length))
			return true;
	return false;
}

/* @all, @same: two copies of the entry: each has one place in its list. */
static void mend(struct archive_entry *entry, struct archive_entry *all, struct archive_entry *same)
{
	char decoded[NAME_MAX_BYTES + 1];
	const char *name;
	const void *value;
	size_t length;

	archive_entry_xattr_clear(entry);
	archive_entry_xattr_reset(all);
	while (archive_entry_xattr_next(all, &name, &value, &length) == ARCHIVE_OK)
		if (!decode(name, decoded) || !has_xattr(same, decoded, value, length))
			archive_entry_xattr_add_entry(entry, name, value, length);
}

int xattrs_mend(struct archive_entry *entry)
{
	struct archive_entry *all, *same;
	bool is_done;

	if (!archive_entry_xattr_count(entry))
		return 0;
	all = archive_entry_clone(entry);
	same = archive_entry_clone(entry);
	is_done = all && same;
	if (is_done)
		mend(entry, all, same);
	if (all)
		archive_entry_free(all);
	if (same)
		archive_entry_free(same);
	return is_done ? 0 : -ENOMEM;
}
