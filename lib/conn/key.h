/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_CONN_KEY_H
#define WEIR_LIB_CONN_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <weir/key.h>
#include "wire/handshake.h"

#define WEIR_KEY_MIN 16 /* bytes */
#define WEIR_KEY_MAX 4096
#define WEIR_KEY_DONORS_MAX 64 /* as many as a volume has */
/* A line that names a donor: this, and its public key as hexadecimal digits. */
#define WEIR_KEY_DONOR "donor "
#define WEIR_KEY_DONOR_LINE (sizeof(WEIR_KEY_DONOR) + 2 * WIRE_KEY) /* with its newline */
#define WEIR_IDENTITY_WORD "identity " /* begins the file of an identity */
#define WEIR_KEY_FILE_MAX (WEIR_KEY_MAX + WEIR_KEY_DONORS_MAX * WEIR_KEY_DONOR_LINE)

/* @donors: identities that clients trust; none: any donor that knows the key */
struct weir_key {
	size_t length;
	uint8_t bytes[WEIR_KEY_MAX];
	unsigned int nr_donors;
	uint8_t donors[WEIR_KEY_DONORS_MAX][WIRE_KEY];
};

/**
 * weir_key_id() - the name under which a client asks for a key's tenant
 * @key: NULL is the empty key
 *
 * The first 8 bytes of SHA-256 over a label and the key. The id reveals nothing about a random key,
 * but lets an eavesdropper test guesses of a weak key.
 */
uint64_t weir_key_id(const struct weir_key *key);

/* The key as Noise takes it: SHA-256 over a label and the key, another label than the id's. */
void weir_key_psk(const struct weir_key *key, uint8_t psk[static WIRE_KEY]);

/*
 * Whether an open file may hold a key: a regular file of @user or root, closed to others.
 * Return: 0; -EINVAL; -EACCES; an errno of fstat().
 */
int weir_key_check_file(int fd, const char *path, uid_t user, struct weir_error *error);

/**
 * weir_key_read_file() - read a private file, without its last newline
 * @bytes: room for @size bytes, of which the last two are not for contents
 *
 * Return: its length; or an error as of weir_key_load().
 */
ssize_t weir_key_read_file(const char *path, uint8_t *bytes, size_t size, struct weir_error *error);

/* Writes @prefix and a new random secret in hexadecimal digits: as weir_key_create(). */
int weir_key_create_file(const char *path, const char *prefix, struct weir_error *error);

/* Whether two keys are the same, in constant time. */
bool weir_key_same(const struct weir_key *a, const struct weir_key *b);

/*
 * The key as the kernel takes it: the content of its file, without the last newline.
 * Return: its length. @bytes: room for WEIR_KEY_FILE_MAX.
 */
size_t weir_key_format(const struct weir_key *key, uint8_t *bytes);

/* HMAC-SHA-256 under @key (NULL: the empty key) over all pieces. */
void weir_key_mac(const struct weir_key *key, const struct iovec *pieces, int nr_pieces,
		  uint8_t mac[static WIRE_MAC]);

#endif
