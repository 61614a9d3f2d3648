/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of an identity holds a word and the secret as hexadecimal digits. The word tells it from
 * the file of a key, which all clients have.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/secret.h"
#include "lib/conn/handshake.h"
#include "lib/conn/identity.h"

#define DIGITS (2 * WEIR_NOISE_KEY)
#define WORD ((ssize_t)sizeof(WEIR_IDENTITY_WORD) - 1)

int weir_identity_create(const char *path, struct weir_error *error)
{
	return weir_key_create_file(path, WEIR_IDENTITY_WORD, error);
}

int weir_identity_load(const char *path, struct weir_identity **identity,
		       struct weir_error *error)
{
	uint8_t text[WORD + DIGITS + 2];
	ssize_t length = weir_key_read_file(path, text, sizeof(text), error);
	struct weir_identity *i;
	int rc = 0;

	if (length < 0)
		return (int)length;
	i = weir_secret_alloc(sizeof(*i));
	if (!i) {
		rc = weir_error_set(error, -ENOMEM, "identity file %s: out of memory", path);
	} else if (length != WORD + DIGITS || memcmp(text, WEIR_IDENTITY_WORD, WORD) ||
		   sodium_hex2bin(i->pair.secret, sizeof(i->pair.secret),
				  (const char *)text + WORD, DIGITS, NULL, NULL, NULL)) {
		rc = weir_error_set(error, -EINVAL,
				    "%s is no file of an identity: 'weir key identity' makes one",
				    path);
		weir_secret_free(i);
	} else {
		weir_noise_pair_init(&i->pair, &weir_handshake_crypto);
		*identity = i;
	}
	sodium_memzero(text, sizeof(text));
	weir_secret_forget_registers();
	return rc;
}

void weir_identity_public(const struct weir_identity *identity, unsigned char key[32])
{
	memcpy(key, identity->pair.public, WEIR_NOISE_KEY);
}

void weir_identity_free(struct weir_identity *identity)
{
	weir_secret_free(identity);
}

void weir_identity_pin(struct weir_handshake_setup *setup, const unsigned char *pin,
		       const struct weir_key *key)
{
	if (pin) {
		setup->pins = (const uint8_t(*)[WIRE_KEY])pin;
		setup->nr_pins = 1;
	} else if (key) {
		setup->pins = key->donors;
		setup->nr_pins = key->nr_donors;
	}
}

void weir_identity_pair(const struct weir_identity *identity, struct weir_noise_pair *pair)
{
	if (identity) {
		*pair = identity->pair;
		return;
	}
	weir_handshake_random(pair->secret, sizeof(pair->secret));
	weir_noise_pair_init(pair, &weir_handshake_crypto);
}
