/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys. Donor and client hold the same secret in a file; each proves to the other
 * that it knows it, by HMAC-SHA-256 over fresh nonces, before any memory is named.
 * The key never travels.
 */
#ifndef WEIR_KEY_H
#define WEIR_KEY_H

#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_key;

/**
 * weir_key_load() - read a key from a file
 * @path: a regular file that only its owner may read, 16 to 4096 bytes, any content;
 *	one trailing newline is ignored
 * @key: receives the key; free it with weir_key_free()
 * @error: may be NULL
 *
 * Return: 0; -ENOENT; -EACCES if it can't be read or others may read it (mode & 077);
 * -EINVAL if it is shorter than 16 or longer than 4096 bytes; -ENOMEM.
 */
int weir_key_load(const char *path, struct weir_key **key, struct weir_error *error);

/**
 * weir_key_create() - write a new random key to a file, mode 0600
 * @path: must not exist
 *
 * Return: 0; -EEXIST; another errno of open(2) or write(2).
 */
int weir_key_create(const char *path, struct weir_error *error);

/* Wipes and frees @key. NULL is fine. No session or donor that was given it may be open. */
void weir_key_free(struct weir_key *key);

#ifdef __cplusplus
}
#endif
#endif
