/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Proves that an offer or answer comes from the owner of the other QP. The MAC uses the user's key,
 * and covers values known only to the two ends of the program's connection. See wire/discovery.h.
 */
#ifndef WEIR_PRELOAD_UNLOAD_DISCOVERY_PROOF_H
#define WEIR_PRELOAD_UNLOAD_DISCOVERY_PROOF_H

#include <stdbool.h>

#include "wire/discovery.h"

/* Loads the user's key, if given, or prints a reason for failure. Once, before any other call. */
void proof_init(void);

/* Is there a key? Without a key no other host is trusted. Context: any. */
bool proof_has_key(void);

/* Computes the MAC of @offer; all other fields are filled in. Context: any. */
void proof_seal(struct wire_discovery_offer *offer, const struct wire_discovery_secret *secret);

/* Verifies the MAC of @offer. Context: any. */
bool proof_holds(const struct wire_discovery_offer *offer,
		 const struct wire_discovery_secret *secret);

#endif
