/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checksums of files, by path. A line of text about a file has the form of b2sum(1): the BLAKE2b
 * digest of 256 bits in hexadecimal, two spaces, the path. Backslashes and newlines in the path are
 * escaped, and then the line begins with a backslash. Entries without bytes have a dash as digest.
 */
#ifndef WEIR_APPS_FS_ARCHIVE_SUMS_H
#define WEIR_APPS_FS_ARCHIVE_SUMS_H

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SUM_BYTES 32

/**
 * struct sum - of a file
 * @has_digest: false for directories, links and so on
 * @is_seen: for callers
 * @number: of the entry in its list
 */
struct sum {
	char *path;
	size_t number;
	bool has_digest, is_seen;
	uint8_t digest[SUM_BYTES];
};

/* All zero: empty. @sorted: by path, and of a repeated path the last alone. */
struct sums {
	struct sum **list;
	size_t nr, room;
	struct sum **sorted;
	size_t nr_sorted;
};

/* @digest: NULL: none. Return: the new entry; NULL: no memory. */
struct sum *sums_add(struct sums *sums, const char *path, const uint8_t *digest);
/* Sorts what has been added. Return: 0 or -ENOMEM. */
int sums_sort(struct sums *sums);
/* After sums_sort(). Return: the last entry of this path, or NULL. */
struct sum *sums_find(const struct sums *sums, const char *path);
void sums_free(struct sums *sums);

/* Prints a line. Return: 0, or a negative errno. */
int sum_print(FILE *out, const char *path, const uint8_t *digest);

/**
 * sum_parse() - parse a line
 * @line: without the newline; changed
 * @sum: @path points into @line
 *
 * Return: whether the line has the form above.
 */
bool sum_parse(char *line, struct sum *sum);

/* The digest of a file's bytes, in order. */
struct sum_state {
	crypto_generichash_state state;
};

void sum_begin(struct sum_state *state);
void sum_add(struct sum_state *state, const void *bytes, size_t length);
void sum_add_zeroes(struct sum_state *state, uint64_t length);
void sum_end(struct sum_state *state, uint8_t digest[SUM_BYTES]);

#endif
