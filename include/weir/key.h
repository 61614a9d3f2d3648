/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys. Donor and client hold the same secret in a file. Each side proves to the other that it
 * knows the secret, by the handshake Noise NXpsk2, before any address or rkey is sent. The key
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
 *	or root, and nobody else may access it; one trailing newline is ignored. After the key, each
 *	line "donor" and 64 hexadecimal digits names an identity: sessions with this key then trust
 *	these donors only, at most 64. A key cannot have a line that begins with "donor"
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
 *	-EINVAL  shorter than 16 or longer than 4096 bytes, a line of a donor with a mistake, or
 *	         the file of an identity;
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

/**
 * weir_key_trust() - add a line that names a donor's identity to the file of a key
 * @path: of the key
 * @identity: of weir_identity_public()
 * @error: may be NULL
 *
 * Context: Any thread; writes a file.
 * Return: 0; -EINVAL it names 64 donors; an error of weir_key_load(); or an errno of open(2) or
 * write(2).
 */
int weir_key_trust(const char *path, const unsigned char identity[32], struct weir_error *error);

/*
 * A donor's identity is a pair of keys of its own. Clients that know its public key admit no other
 * process in the donor's place, not even another client of the same key.
 */
struct weir_identity;

/**
 * weir_identity_create() - write a new random identity to a file, mode 0600
 * @path: must not exist
 * @error: may be NULL
 *
 * Context: Any thread; writes a file.
 * Return: 0; -EEXIST; or another errno of open(2) or write(2).
 */
int weir_identity_create(const char *path, struct weir_error *error);

/**
 * weir_identity_load() - read an identity from a file
 * @path: of weir_identity_create(); as private as the file of a key
 * @identity: receives the identity
 * @error: may be NULL
 *
 * The caller owes a weir_identity_free().
 *
 * Context: Any thread; reads a file.
 * Return: as weir_key_load().
 */
int weir_identity_load(const char *path, struct weir_identity **identity,
		       struct weir_error *error);

/* Writes the public key, which may be known to everybody. Context: any thread. */
void weir_identity_public(const struct weir_identity *identity, unsigned char key[32]);

/* Wipes and frees @identity. NULL is allowed. Context: any thread. */
void weir_identity_free(struct weir_identity *identity);

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
