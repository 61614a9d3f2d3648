/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cookies: a listener under load learns, without memory for each stranger, that a stranger
 * receives at the address that the request names.
 *
 * A REQ is one datagram on RoCE and InfiniBand, and a forger may invent its address. A REJ takes
 * a cookie to that address. Only a peer that receives there can bring the cookie in another REQ.
 * A cookie is a MAC of the address, by a secret that changes: the listener stores no cookie. The
 * idea is WireGuard's (Donenfeld 2017, 5.3), and the MAC libsodium's keyed BLAKE2b. WireGuard also
 * encrypts cookies; here somebody who reads the network may use the cookies of others.
 */
#ifndef WEIR_LIB_CONN_COOKIE_H
#define WEIR_LIB_CONN_COOKIE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/handshake.h"

#define WEIR_COOKIE_SECRET 32
#define WEIR_COOKIE_NS 120000000000ull /* a secret's time; then cookies hold as long again */

/**
 * struct weir_cookies - a listener's secrets; zero at first. The owner serialises
 * @secrets: the present one, and the one before
 * @due_ns: when the present secret ends
 */
struct weir_cookies {
	uint8_t secrets[2][WEIR_COOKIE_SECRET];
	uint64_t due_ns;
};

/* Makes the cookie of an address: weir_endpoint_of_request(). @now_ns: at least 1. */
void weir_cookie_make(struct weir_cookies *cookies, const uint8_t gid[WIRE_GID], uint64_t now_ns,
		      uint8_t cookie[WIRE_COOKIE]);

/* Return: whether weir_cookie_make() gave @cookie to this address, not too long ago. */
bool weir_cookie_holds(struct weir_cookies *cookies, const uint8_t gid[WIRE_GID], uint64_t now_ns,
		       const uint8_t cookie[WIRE_COOKIE]);

/* Wipes the secrets. */
void weir_cookies_fini(struct weir_cookies *cookies);

#endif
