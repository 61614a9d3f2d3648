/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/archive/sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEX (2 * SUM_BYTES)
#define FIRST_ROOM 256
#define ZEROES 65536

static int make_room(struct sums *sums)
{
	size_t room = sums->room ? 2 * sums->room : FIRST_ROOM;
	struct sum **list;

	if (sums->nr < sums->room)
		return 0;
	list = realloc(sums->list, room * sizeof(*list));
	if (!list)
		return -ENOMEM;
	sums->list = list;
	sums->room = room;
	return 0;
}

struct sum *sums_add(struct sums *sums, const char *path, const uint8_t *digest)
{
	size_t length = strlen(path) + 1;
	struct sum *sum = make_room(sums) ? NULL : malloc(sizeof(*sum) + length);

	if (!sum)
		return NULL;
	*sum = (struct sum){
		.path = (char *)(sum + 1),
		.has_digest = digest,
		.number = sums->nr,
	};
	memcpy(sum->path, path, length);
	if (digest)
		memcpy(sum->digest, digest, SUM_BYTES);
	sums->list[sums->nr++] = sum;
	return sum;
}

static int compare_paths(const void *one, const void *other)
{
	const struct sum *const *a = one, *const *b = other;

	int order = strcmp((*a)->path, (*b)->path);

	return order ? order : ((*a)->number > (*b)->number) - ((*a)->number < (*b)->number);
}

int sums_sort(struct sums *sums)
{
	size_t nr = 0;

	free(sums->sorted);
	sums->nr_sorted = 0;
	sums->sorted = malloc((sums->nr + 1) * sizeof(*sums->sorted));
	if (!sums->sorted)
		return -ENOMEM;
	if (sums->nr)
		memcpy(sums->sorted, sums->list, sums->nr * sizeof(*sums->sorted));
	qsort(sums->sorted, sums->nr, sizeof(*sums->sorted), compare_paths);
	for (size_t i = 0; i < sums->nr; i++)
		if (i + 1 == sums->nr || strcmp(sums->sorted[i]->path, sums->sorted[i + 1]->path))
			sums->sorted[nr++] = sums->sorted[i];
	sums->nr_sorted = nr;
	return 0;
}

struct sum *sums_find(const struct sums *sums, const char *path)
{
	size_t low = 0, high = sums->nr_sorted;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(path, sums->sorted[middle]->path);

		if (!order)
			return sums->sorted[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

void sums_free(struct sums *sums)
{
	for (size_t i = 0; i < sums->nr; i++)
		free(sums->list[i]);
	free(sums->list);
	free(sums->sorted);
	*sums = (struct sums){ 0 };
}

int sum_print(FILE *out, const char *path, const uint8_t *digest)
{
	char hex[HEX + 1] = "-";

	if (digest)
		sodium_bin2hex(hex, sizeof(hex), digest, SUM_BYTES);
	fprintf(out, "%s%s  ", strpbrk(path, "\\\n") ? "\\" : "", hex);
	for (; *path; path++) {
		if (*path == '\\')
			fputs("\\\\", out);
		else if (*path == '\n')
			fputs("\\n", out);
		else
			fputc(*path, out);
	}
	return fputc('\n', out) == EOF ? -EIO : 0;
}

static bool unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		if (*path != '\\') {
			*to++ = *path;
			continue;
		}
		path++;
		if (*path != '\\' && *path != 'n')
			return false;
		*to++ = *path == 'n' ? '\n' : '\\';
	}
	*to = 0;
	return true;
}

bool sum_parse(char *line, struct sum *sum)
{
	bool is_escaped = *line == '\\';
	char *digest = line + is_escaped, *path = strstr(digest, "  ");
	size_t length = 0;

	if (!path || !path[2])
		return false;
	*sum = (struct sum){ .path = path + 2 };
	if (is_escaped && !unescape(sum->path))
		return false;
	if (path == digest + 1 && *digest == '-')
		return true;
	sum->has_digest = true;
	return path == digest + HEX &&
	       !sodium_hex2bin(sum->digest, SUM_BYTES, digest, HEX, NULL, &length, NULL) &&
	       length == SUM_BYTES;
}

void sum_begin(struct sum_state *state)
{
	crypto_generichash_init(&state->state, NULL, 0, SUM_BYTES);
}

void sum_add(struct sum_state *state, const void *bytes, size_t length)
{
	crypto_generichash_update(&state->state, bytes, length);
}

void sum_add_zeroes(struct sum_state *state, uint64_t length)
{
	static const char zeroes[ZEROES];

	for (uint64_t part; length; length -= part) {
		part = length < ZEROES ? length : ZEROES;
		sum_add(state, zeroes, part);
	}
}

void sum_end(struct sum_state *state, uint8_t digest[SUM_BYTES])
{
	crypto_generichash_final(&state->state, digest, SUM_BYTES);
}
