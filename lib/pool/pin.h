/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which identity a client of a pool demands of a donor. */
#ifndef WEIR_LIB_POOL_PIN_H
#define WEIR_LIB_POOL_PIN_H

#include <weir/error.h>
#include <weir/key.h>

#include "core/pool/map.h"

/**
 * weir_pool_pin() - check the identity that the map has for a donor
 * @donor: its name
 * @identity: as the map has it; NULL: none, and @key alone decides
 * @key: of the session; may be NULL
 * @error: may be NULL
 *
 * The map may name further donors, but no more than a key's file allows: an operator who lists the
 * donors in the file trusts nobody else, whoever can write to the map.
 *
 * Return: 0; -EKEYREJECTED the file of @key names donors, and not this one.
 */
int weir_pool_pin(const char *donor, const uint8_t *identity, const struct weir_key *key,
		  struct weir_error *error);

/* Return: the donor_identity of struct weir_session_options. */
static inline const uint8_t *weir_pool_identity(const struct weir_pool_donor *donor)
{
	return donor->has_identity ? donor->identity : NULL;
}

#endif
