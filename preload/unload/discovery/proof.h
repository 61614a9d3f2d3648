/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * That an offer or an answer is from the owner of the other QP: it is under the user's key, and
 * over what only the two ends of the program's connection know. See wire/discovery.h.
 */
#ifndef WEIR_PRELOAD_UNLOAD_DISCOVERY_PROOF_H
#define WEIR_PRELOAD_UNLOAD_DISCOVERY_PROOF_H

#include <stdbool.h>

#include "wire/discovery.h"

/* Loads the key that the user has given, if any, or says why it does not. Once, before all else. */
void proof_init(void);

/* Whether there is a key: without one nobody of another host is believed. Context: any. */
bool proof_has_key(void);

/* All of @offer but its MAC is filled in. Context: any. */
void proof_seal(struct wire_discovery_offer *offer, const struct wire_discovery_secret *secret);

/* Context: any. */
bool proof_holds(const struct wire_discovery_offer *offer,
		 const struct wire_discovery_secret *secret);

#endif
