/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_CONN_IDENTITY_H
#define WEIR_LIB_CONN_IDENTITY_H

#include <weir/key.h>
#include "core/link/noise.h"

struct weir_identity {
	struct weir_noise_pair pair;
};

struct weir_handshake_setup;

/**
 * weir_identity_pin() - choose which other ends a dialling end trusts
 * @setup: receives the pins
 * @pin: the only public key to trust; NULL: those that the file of @key names, or else any
 * @key: may be NULL
 *
 * @pin and @key are kept until the end of the handshake.
 */
void weir_identity_pin(struct weir_handshake_setup *setup, const unsigned char *pin,
		       const struct weir_key *key);

/* Fills @pair with @identity's, or with a new one if that is NULL. */
void weir_identity_pair(const struct weir_identity *identity, struct weir_noise_pair *pair);

#endif
