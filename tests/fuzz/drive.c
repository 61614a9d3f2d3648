/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Run a fuzz target without libFuzzer, with any compiler: on given files, or on inputs
 * generated from a seed.
 *
 *   drive FILE...                repeat a crash
 *   drive SEED COUNT [CORPUS]    COUNT inputs; a SEED always makes the same inputs
 *
 * With the folder CORPUS: each file there, then COUNT inputs, two thirds of them changed files.
 */
#include "core/base/rng.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX 4096
#define FILES_MAX 256
#define CHANGES_MAX 8 /* of one input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An input; its end is the end of an allocation, so that a sanitizer sees reads behind. */
struct blob {
	uint8_t bytes[INPUT_MAX];
	size_t size;
};

static struct blob corpus[FILES_MAX];
static unsigned int nr_files;

static void run(const struct blob *input)
{
	uint8_t *exact = malloc(input->size ? input->size : 1);

	memcpy(exact, input->bytes, input->size);
	LLVMFuzzerTestOneInput(exact, input->size);
	free(exact);
}

static int read_file(const char *name, struct blob *blob)
{
	FILE *file = fopen(name, "rb");

	if (!file) {
		perror(name);
		return 1;
	}
	blob->size = fread(blob->bytes, 1, sizeof(blob->bytes), file);
	fclose(file);
	return 0;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* In the order of their names, so that a seed means the same everywhere. */
static int read_corpus(const char *folder)
{
	struct dirent **entries;
	int nr = scandir(folder, &entries, is_shown, alphasort), rc = 0;
	char path[4096];

	if (nr < 0) {
		perror(folder);
		return 1;
	}
	for (int i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (nr_files < FILES_MAX)
			rc |= read_file(path, &corpus[nr_files++]);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

static void make_up(uint64_t *seed, struct blob *out)
{
	out->size = weir_rng_next(seed) % INPUT_MAX;
	for (size_t i = 0; i < out->size; i++)
		out->bytes[i] = (uint8_t)weir_rng_next(seed);
}

/* Appends a part of @from to @out. */
static void append(struct blob *out, const struct blob *from, size_t at, size_t length)
{
	if (at > from->size)
		at = from->size;
	if (length > from->size - at)
		length = from->size - at;
	if (length > INPUT_MAX - out->size)
		length = INPUT_MAX - out->size;
	memcpy(out->bytes + out->size, from->bytes + at, length);
	out->size += length;
}

/* The head of one file with the rest of another, and a few other bytes. */
static void change(uint64_t *seed, struct blob *out)
{
	static const uint8_t likely[] = { 0, 1, 0x7f, 0x80, 0xff };
	const struct blob *a = &corpus[weir_rng_next(seed) % nr_files];
	const struct blob *b = &corpus[weir_rng_next(seed) % nr_files];
	uint64_t changes = weir_rng_next(seed) % CHANGES_MAX;
	size_t cut = weir_rng_next(seed) % (a->size + 1);

	out->size = 0;
	append(out, a, 0, cut);
	append(out, weir_rng_next(seed) % 2 ? a : b, cut + weir_rng_next(seed) % 5 - 2, INPUT_MAX);
	while (changes-- && out->size) {
		size_t at = weir_rng_next(seed) % out->size;
		uint64_t to = weir_rng_next(seed);

		if (to & 0x100)
			out->bytes[at] = (uint8_t)to;
		else if (to & 0x200)
			out->bytes[at] = likely[to % sizeof(likely)];
		else
			out->bytes[at] += (to & 0x400) ? 1 : -1;
	}
}

int main(int argc, char **argv)
{
	static struct blob input;
	char *end = NULL;
	uint64_t seed;
	long count = 0;
	int rc = 0;

	if (argc >= 3) {
		seed = strtoull(argv[1], &end, 0);
		count = strtol(argv[2], NULL, 0);
	}
	if (!end || *end) {
		for (int i = 1; i < argc; i++) {
			rc |= read_file(argv[i], &input);
			run(&input);
		}
		return rc;
	}
	if (argc > 3)
		rc = read_corpus(argv[3]);
	for (unsigned int i = 0; i < nr_files; i++)
		run(&corpus[i]);
	for (long i = 0; i < count; i++) {
		if (nr_files && i % 3)
			change(&seed, &input);
		else
			make_up(&seed, &input);
		run(&input);
	}
	return rc;
}
