/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <sodium.h>

#include "lib/conn/cookie.h"

static void renew_secrets(struct weir_cookies *cookies, uint64_t now_ns)
{
	if (now_ns < cookies->due_ns)
		return;
	/* There is no earlier secret at first, and after a long idle time it is too old. */
	if (cookies->due_ns && now_ns - cookies->due_ns < WEIR_COOKIE_NS)
		memcpy(cookies->secrets[1], cookies->secrets[0], WEIR_COOKIE_SECRET);
	else
		randombytes_buf(cookies->secrets[1], WEIR_COOKIE_SECRET);
	randombytes_buf(cookies->secrets[0], WEIR_COOKIE_SECRET);
	cookies->due_ns = now_ns + WEIR_COOKIE_NS;
}

static void make_by(const uint8_t secret[WEIR_COOKIE_SECRET], const uint8_t gid[WIRE_GID],
		    uint8_t cookie[WIRE_COOKIE])
{
	crypto_generichash(cookie, WIRE_COOKIE, gid, WIRE_GID, secret, WEIR_COOKIE_SECRET);
}

void weir_cookie_make(struct weir_cookies *cookies, const uint8_t gid[WIRE_GID], uint64_t now_ns,
		      uint8_t cookie[WIRE_COOKIE])
{
	renew_secrets(cookies, now_ns);
	make_by(cookies->secrets[0], gid, cookie);
}

bool weir_cookie_holds(struct weir_cookies *cookies, const uint8_t gid[WIRE_GID], uint64_t now_ns,
		       const uint8_t cookie[WIRE_COOKIE])
{
	uint8_t mine[WIRE_COOKIE];
	bool holds = false;

	renew_secrets(cookies, now_ns);
	for (unsigned int i = 0; !holds && i < 2; i++) {
		make_by(cookies->secrets[i], gid, mine);
		holds = !sodium_memcmp(mine, cookie, sizeof(mine));
	}
	sodium_memzero(mine, sizeof(mine));
	return holds;
}

void weir_cookies_fini(struct weir_cookies *cookies)
{
	sodium_memzero(cookies, sizeof(*cookies));
}
