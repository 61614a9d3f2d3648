/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <sodium.h>
#include <weir/error.h>

#include "lib/conn/key.h"
#include "preload/unload/discovery/proof.h"
#include "preload/unload/diag.h"
#include "preload/unload/settings.h"

static struct weir_key *key;

void proof_init(void)
{
	const char *path = settings_key();
	struct weir_error error = { .text = "libsodium cannot start" };

	if (sodium_init() < 0 || (path && !key && weir_key_load(path, &key, &error)))
		diag_log("%s: nothing is unloaded to other hosts", error.text);
}

bool proof_has_key(void)
{
	return key;
}

static void mac_of(const struct wire_discovery_offer *offer,
		   const struct wire_discovery_secret *secret, uint8_t mac[static WIRE_MAC])
{
	const struct iovec pieces[] = {
		{ (void *)offer, offsetof(struct wire_discovery_offer, mac) },
		{ (void *)secret, sizeof(*secret) },
	};

	weir_key_mac(key, pieces, 2, mac);
}

void proof_seal(struct wire_discovery_offer *offer, const struct wire_discovery_secret *secret)
{
	mac_of(offer, secret, offer->mac);
}

bool proof_holds(const struct wire_discovery_offer *offer,
		 const struct wire_discovery_secret *secret)
{
	uint8_t mac[WIRE_MAC];

	mac_of(offer, secret, mac);
	return !sodium_memcmp(mac, offer->mac, sizeof(mac));
}
