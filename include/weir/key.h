/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys. Donor and client hold the same secret in a file. Each side proves to the other that it
 * knows the secret, by HMAC-SHA-256 over fresh nonces, before any address or rkey is sent. The key
 * itself is never sent.
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
 * @path: a regular file of 16 to 4096 bytes, any content; it belongs to the caller's effective user
 *	or root, and nobody else may access it; one trailing newline is ignored
 * @key: receives the key
 * @error: may be NULL
 *
 * The caller owes a weir_key_free().
 *
 * Context: Any thread; reads a file.
 * Return: 0, or
 *	-ENOENT  the file does not exist;
 *	-EACCES  the file is unreadable, belongs to another user, or others may access it
 *	         (mode & 077);
 *	-EINVAL  shorter than 16 or longer than 4096 bytes;
 *	-ENOMEM  out of memory.
 */
int weir_key_load(const char *path, struct weir_key **key, struct weir_error *error);

/**
 * weir_key_create() - write a new random key to a file, mode 0600
 * @path: must not exist
 * @error: may be NULL
 *
 * Context: Any thread; writes a file.
 * Return: 0; -EEXIST; or another errno of open(2) or write(2).
 */
int weir_key_create(const char *path, struct weir_error *error);

/*
 * Wipes and frees @key. NULL is allowed. All sessions and donors with this key must be closed.
 * Context: any thread.
 */
void weir_key_free(struct weir_key *key);

/*
 * Encryption between hosts, if there is a key. softnic encrypts if its peer is a softnic. NICs and
 * Soft-RoCE encrypt nothing.
 */
enum weir_encryption {
	/* as REQUIRED where packets leave the host over softnic; other devices: clear text */
	WEIR_ENCRYPTION_DEFAULT,
	WEIR_ENCRYPTION_AUTO, /* encrypt if the peer does, otherwise clear text */
	/*
	 * Packets that leave the host are encrypted, or the peer is not admitted. Without a key
	 * -EINVAL, without softnic -ENODEV.
	 */
	WEIR_ENCRYPTION_REQUIRED,
};

#ifdef __cplusplus
}
#endif
#endif
