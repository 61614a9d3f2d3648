/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_CONN_KEY_H
#define WEIR_LIB_CONN_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <weir/key.h>
#include "wire/handshake.h"

#define WEIR_KEY_MIN 16 /* bytes */
#define WEIR_KEY_MAX 4096

struct weir_key {
	size_t length;
	uint8_t bytes[WEIR_KEY_MAX];
};

/**
 * weir_key_id() - the name under which a client asks for a key's tenant
 * @key: NULL is the empty key
 *
 * The first 8 bytes of SHA-256 over a label and the key. The id reveals nothing about a random key,
 * but lets an eavesdropper test guesses of a weak key.
 */
uint64_t weir_key_id(const struct weir_key *key);

/*
 * Whether an open file may hold a key: a regular file of this user or root, closed to others.
 * Return: 0; -EINVAL; -EACCES; an errno of fstat().
 */
int weir_key_check_file(int fd, const char *path, struct weir_error *error);

/* HMAC-SHA-256 under @key (NULL: the empty key) over all pieces. */
void weir_key_mac(const struct weir_key *key, const struct iovec *pieces, int nr_pieces,
		  uint8_t mac[static WIRE_MAC]);

#endif
