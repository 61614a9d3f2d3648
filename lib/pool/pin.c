/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/conn/handshake.h"
#include "lib/pool/pin.h"

static_assert(WEIR_POOL_IDENTITY == WIRE_KEY, "an identity is a public key of the handshake");

int weir_pool_pin(const char *donor, const uint8_t *identity, const struct weir_key *key,
		  struct weir_error *error)
{
	bool is_trusted = !identity || !key || !key->nr_donors;

	for (unsigned int i = 0; !is_trusted && i < key->nr_donors; i++)
		is_trusted = !memcmp(key->donors[i], identity, WEIR_POOL_IDENTITY);
	if (is_trusted)
		return 0;
	return weir_error_set(error, -EKEYREJECTED,
			      "the pool's donor %s has an identity that the key's file does not "
			      "name: 'weir key add --identity' adds it",
			      donor);
}
