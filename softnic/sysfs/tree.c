// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Paths against the table. A directory needs no row: each pattern implies the directories above
 * it, up to the row of kind SYSFS_DIRECTORY where the tree begins.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softnic/verbs/device.h"
#include "tree.h"

enum { LINKS_MAX = 8 }; /* followed in one path; the tree needs three */

static const char letters[] = "dpgn";

/* Values of a field: first to last. Netdevs have names instead. */
static void field_range(enum sysfs_field field, uint32_t *first, uint32_t *last)
{
	*first = field == SYSFS_PORT ? SOFTNIC_PORT : 0;
	if (field == SYSFS_DEVICE)
		*last = device_count() - 1; /* the tree is empty if there is no device */
	else
		*last = field == SYSFS_PORT ? device_ports() : SOFTNIC_GIDS_MAX - 1;
}

static bool parse_number(const char *name, size_t length, uint32_t *value)
{
	size_t i;

	if (!length || length > 4 || (length > 1 && *name == '0'))
		return false;
	for (*value = 0, i = 0; i < length; i++) {
		if (name[i] < '0' || name[i] > '9')
			return false;
		*value = *value * 10 + name[i] - '0';
	}
	return true;
}

static bool parse_field(enum sysfs_field field, const char *name, size_t length, uint32_t *value)
{
	char netdev[IF_NAMESIZE];
	uint32_t first, last;

	if (field != SYSFS_NETDEV) {
		field_range(field, &first, &last);
		return parse_number(name, length, value) && *value >= first && *value <= last;
	}
	if (length >= sizeof(netdev))
		return false;
	memcpy(netdev, name, length);
	netdev[length] = '\0';
	*value = if_nametoindex(netdev);
	return *value;
}

/* Does the component @name match @pattern, in which a field can only be last? */
static bool match_component(const char *pattern, size_t pattern_length, const char *name,
			    size_t length, struct sysfs_at *at)
{
	const char *percent = memchr(pattern, '%', pattern_length);
	size_t fixed = percent ? (size_t)(percent - pattern) : pattern_length;
	enum sysfs_field field;
	uint32_t value = 0;

	if (length < fixed || memcmp(pattern, name, fixed))
		return false;
	if (!percent)
		return length == fixed;
	field = strchr(letters, percent[1]) - letters;
	if (!parse_field(field, name + fixed, length - fixed, &value))
		return false;
	if (at->seen & 1u << field)
		return at->value[field] == value;
	at->seen |= 1u << field;
	at->value[field] = value;
	return true;
}

/* Returns the rest of @pattern after @path: "" if they match, NULL if they differ. */
static const char *match(const char *pattern, const char *path, struct sysfs_at *at)
{
	size_t n, m;

	at->seen = 0;
	for (; *path; path += n + 1, pattern += m + 1) {
		if (!*pattern)
			return NULL;
		n = strcspn(path + 1, "/");
		m = strcspn(pattern + 1, "/");
		if (!match_component(pattern + 1, m, path + 1, n, at))
			return NULL;
	}
	return pattern;
}

enum place { OUTSIDE, ABOVE, INSIDE };

/* Where is @path, which has no link but perhaps the last component? Fills @node if inside. */
static enum place locate(const char *path, struct sysfs_node *node)
{
	enum place place = OUTSIDE;
	struct sysfs_at at;
	const char *rest;
	size_t i;

	for (i = 0; i < sysfs_table_length && device_count(); i++) {
		const struct sysfs_entry *e = &sysfs_table[i];

		rest = match(e->pattern, path, &at);
		if (!rest)
			continue;
		if (*rest && e->kind == SYSFS_DIRECTORY)
			return ABOVE;
		place = INSIDE;
		node->at = at;
		node->kind = *rest ? SYSFS_DIRECTORY : e->kind;
		node->entry = *rest ? NULL : e;
		if (!*rest)
			break;
	}
	return place;
}

/* Writes @format with the fields of @at; returns the length, or -ENAMETOOLONG. */
static int expand(const char *format, const struct sysfs_at *at, char *text, size_t size)
{
	char number[IF_NAMESIZE];
	size_t n = 0, length;

	for (; *format; format += length) {
		const char *from = format;

		length = strcspn(format, "%");
		if (*format == '%') {
			enum sysfs_field field = strchr(letters, format[1]) - letters;

			snprintf(number, sizeof(number), "%u", at->value[field]);
			if (field == SYSFS_NETDEV && !if_indextoname(at->value[field], number))
				return -ENOENT;
			from = number;
			length = strlen(number);
		}
		if (length >= size - n)
			return -ENAMETOOLONG;
		memcpy(text + n, from, length);
		n += length;
		if (from == number)
			length = 2;
	}
	text[n] = '\0';
	return n;
}

/* A path under resolution: @done has been resolved, @rest follows. */
struct walk {
	char done[SYSFS_PATH_MAX], rest[SYSFS_PATH_MAX];
	unsigned int links; /* followed so far */
	bool entered; /* some component was inside the tree */
};

static void drop_last(struct walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (slash)
		*slash = '\0';
}

/* Moves one component from @rest to @done. Returns false if there is none or no room. */
static bool step(struct walk *w)
{
	size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/");
	const char *name = w->rest + skip;
	size_t length = strlen(w->done);

	if (!n || length + n + 2 > sizeof(w->done))
		return false;
	if (n == 2 && !memcmp(name, "..", 2)) {
		drop_last(w);
	} else if (n != 1 || *name != '.') {
		w->done[length] = '/';
		memcpy(w->done + length + 1, name, n);
		w->done[length + 1 + n] = '\0';
	}
	memmove(w->rest, name + n, strlen(name + n) + 1);
	return true;
}

/* Puts the target of the link @node in its place. */
static bool follow_link(struct walk *w, const struct sysfs_node *node)
{
	char target[SYSFS_PATH_MAX];
	int n = expand(node->entry->text, &node->at, target, sizeof(target));
	size_t rest = strlen(w->rest) + 1;

	if (n < 0 || n + rest > sizeof(w->rest) || ++w->links > LINKS_MAX)
		return false;
	memmove(w->rest + n, w->rest, rest);
	memcpy(w->rest, target, n);
	drop_last(w);
	return true;
}

/* A link of the tree, or "..", has led out of it. */
static bool is_elsewhere(const struct walk *w, struct sysfs_node *node)
{
	int n = snprintf(node->path, sizeof(node->path), "%s%s", w->done, w->rest);

	node->kind = SYSFS_ELSEWHERE;
	node->entry = NULL;
	return w->entered && n > 0 && n < (int)sizeof(node->path);
}

bool sysfs_find(const char *path, bool follow, struct sysfs_node *node)
{
	struct walk w = { .links = 0 };
	enum place place = ABOVE;

	if (*path != '/' || strlen(path) >= sizeof(w.rest))
		return false;
	strcpy(w.rest, path);
	while (step(&w)) {
		place = locate(w.done, node);
		w.entered |= place == INSIDE;
		if (place == OUTSIDE && *w.done)
			return is_elsewhere(&w, node);
		if (place != INSIDE || node->kind != SYSFS_LINK || (!*w.rest && !follow))
			continue;
		if (!follow_link(&w, node))
			return false;
	}
	if (place != INSIDE)
		return is_elsewhere(&w, node);
	if (w.rest[strspn(w.rest, "/")] || (*w.rest && node->kind != SYSFS_DIRECTORY))
		return false;
	strcpy(node->path, w.done);
	return true;
}

int sysfs_read(const struct sysfs_node *node, char *text)
{
	int rc;

	if (!node->entry->write)
		return expand(node->entry->text, &node->at, text, SYSFS_TEXT_MAX);
	rc = node->entry->write(node->entry, &node->at, text, SYSFS_TEXT_MAX);
	return rc ? rc : (int)strlen(text);
}

uint64_t sysfs_inode(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3ull;
	return hash | 1;
}

struct listing {
	const char *directory;
	struct dirent *entries;
	size_t count, room;
};

static bool is_listed(const struct listing *l, const char *name)
{
	size_t i;

	for (i = 0; i < l->count; i++)
		if (!strcmp(l->entries[i].d_name, name))
			return true;
	return false;
}

static int add_name(struct listing *l, const char *name, enum sysfs_kind kind)
{
	static const unsigned char types[] = { DT_DIR, DT_REG, DT_LNK, DT_CHR };
	char path[SYSFS_PATH_MAX + IF_NAMESIZE];
	struct dirent *more;

	if (is_listed(l, name))
		return 0;
	if (l->count == l->room) {
		l->room = l->room ? 2 * l->room : 32;
		more = realloc(l->entries, l->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		l->entries = more;
	}
	snprintf(path, sizeof(path), "%s/%s", l->directory, name);
	l->entries[l->count] = (struct dirent){
		.d_ino = sysfs_inode(path),
		.d_reclen = sizeof(struct dirent),
		.d_type = types[kind],
	};
	strcpy(l->entries[l->count++].d_name, name);
	return 0;
}

static int add_netdevs(struct listing *l, enum sysfs_kind kind)
{
	struct if_nameindex *all = if_nameindex(), *i;
	int rc = 0;

	for (i = all; i && i->if_index && !rc; i++)
		rc = add_name(l, i->if_name, kind);
	if_freenameindex(all);
	return rc;
}

/* Adds the names of the component at the start of @rest, "/name/...", of which @e is the row. */
static int add_component(struct listing *l, const char *rest, const struct sysfs_entry *e,
			 const struct sysfs_at *at)
{
	size_t length = strcspn(++rest, "/");
	enum sysfs_kind kind = rest[length] ? SYSFS_DIRECTORY : e->kind;
	const char *percent = memchr(rest, '%', length);
	struct sysfs_at each = *at;
	char format[64], name[64];
	uint32_t first = 0, last = 0;
	enum sysfs_field field = SYSFS_DEVICE;
	int rc = 0;

	snprintf(format, sizeof(format), "%.*s", (int)length, rest);
	if (percent)
		field = strchr(letters, percent[1]) - letters;
	if (percent && field == SYSFS_NETDEV)
		return add_netdevs(l, kind);
	if (percent && at->seen & 1u << field)
		first = last = at->value[field];
	else if (percent)
		field_range(field, &first, &last);
	for (; first <= last && !rc; first++) {
		each.value[field] = percent ? first : at->value[field];
		rc = expand(format, &each, name, sizeof(name));
		rc = rc < 0 ? rc : add_name(l, name, kind);
	}
	return rc;
}

int sysfs_list(const struct sysfs_node *directory, struct dirent **entries)
{
	struct listing l = { .directory = directory->path };
	struct sysfs_at at;
	const char *rest;
	int rc = 0;
	size_t i;

	for (i = 0; i < sysfs_table_length && !rc; i++) {
		rest = match(sysfs_table[i].pattern, directory->path, &at);
		if (rest && *rest)
			rc = add_component(&l, rest, &sysfs_table[i], &at);
	}
	if (rc) {
		free(l.entries);
		return rc;
	}
	*entries = l.entries;
	return l.count;
}
