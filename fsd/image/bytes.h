/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bytes with room at the end, and a reader of unchecked bytes. */
#ifndef WEIR_FSD_IMAGE_BYTES_H
#define WEIR_FSD_IMAGE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* @is_short: there was no memory, and the bytes are incomplete; all zero: empty */
struct fsd_bytes {
	uint8_t *at;
	size_t length, room;
	bool is_short;
};

static inline void fsd_bytes_put(struct fsd_bytes *bytes, const void *from, size_t length)
{
	size_t room = bytes->room ? bytes->room : 4096;
	uint8_t *at;

	while (room - bytes->length < length)
		room *= 2;
	if (room != bytes->room) {
		at = realloc(bytes->at, room);
		if (!at) {
			bytes->is_short = true;
			return;
		}
		bytes->at = at;
		bytes->room = room;
	}
	if (length)
		memcpy(bytes->at + bytes->length, from, length);
	bytes->length += length;
}

/* Makes the length a multiple of @unit, a power of two, with zeroes. */
static inline void fsd_bytes_align(struct fsd_bytes *bytes, size_t unit)
{
	static const uint8_t zeroes[4096];

	fsd_bytes_put(bytes, zeroes, -bytes->length & (unit - 1));
}

static inline void fsd_bytes_free(struct fsd_bytes *bytes)
{
	free(bytes->at);
	*bytes = (struct fsd_bytes){ 0 };
}

struct fsd_reader {
	const uint8_t *at;
	size_t left;
};

/* Return: the next @length bytes, or NULL if there are fewer. */
static inline const void *fsd_reader_skip(struct fsd_reader *reader, size_t length)
{
	const uint8_t *at = reader->at;

	if (length > reader->left)
		return NULL;
	reader->at += length;
	reader->left -= length;
	return at;
}

/* Copies the next @length bytes. Return: false if there are fewer. */
static inline bool fsd_reader_get(struct fsd_reader *reader, void *to, size_t length)
{
	const void *from = fsd_reader_skip(reader, length);

	if (from)
		memcpy(to, from, length);
	return from;
}

#endif
