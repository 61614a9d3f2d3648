/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A listener's places for connections that have not proven the key.
 *
 * Anybody may take the first places of a key, also a forger of addresses, who sends a REQ and
 * nothing more. Once they are taken, a newcomer is rejected with a cookie: see cookie.h. A newcomer
 * with a cookie gets a further place. These are limited for each network, too. A newcomer
 * replaces the eldest that has had WEIR_UNPROVEN_NS for its proof, which a stranger cannot give.
 * A living session has places of its own, for REQs that name it, so that strangers cannot keep its
 * client from coming back.
 *
 * Context of all: the owner serialises.
 */
#ifndef WEIR_LIB_CONN_PLACES_H
#define WEIR_LIB_CONN_PLACES_H

#include <weir/error.h>

#include "core/base/list.h"
#include "lib/conn/cookie.h"

struct rdma_cm_id;

#define WEIR_UNPROVEN_MAX 32 /* newcomers of a key */
#define WEIR_COOKIE_PLACES 16 /* further ones, for newcomers with a cookie */
#define WEIR_NETWORK_PLACES 4 /* of these, for one address, or for one /64 of IPv6 */
#define WEIR_SESSION_PLACES (WIRE_CHANNEL_UNLOAD + 1) /* of a living session */
#define WEIR_UNPROVEN_NS 1000000000ull /* then a newcomer's place may be taken */

/* @newcomers: in order of arrival; @cookies: for those who find no place */
struct weir_places {
	struct weir_list newcomers;
	struct weir_cookies cookies;
};

/**
 * struct weir_newcomer - a connection without a proof
 * @link: in places.newcomers, or in none
 * @key: newcomers of another key have other places
 * @session: keeps the place; 0: none does
 * @network: of weir_endpoint_network()
 * @has_cookie: its place is one of WEIR_COOKIE_PLACES
 * @since_ns: of its REQ
 */
struct weir_newcomer {
	struct weir_list link;
	const void *key;
	uint64_t session;
	uint8_t network[WIRE_GID];
	bool has_cookie;
	uint64_t since_ns;
};

void weir_places_init(struct weir_places *places);
/* Wipes the secrets of the cookies. No newcomer is left. */
void weir_places_fini(struct weir_places *places);

/**
 * weir_places_newcomer() - describe the sender of a REQ, who has no place yet
 * @id: from the request
 * @key: that the REQ names, by any pointer
 * @session: that the REQ names and that lives; 0: none
 * @cookie: of the REQ; NULL: none
 */
void weir_places_newcomer(struct weir_newcomer *newcomer, struct weir_places *places,
			  struct rdma_cm_id *id, const void *key, uint64_t session,
			  const uint8_t *cookie);

/**
 * weir_places_make_room() - find a place for a newcomer
 * @replaced: receives a newcomer that the caller ends now, or NULL
 *
 * Then the caller accepts the REQ, and calls weir_places_take().
 *
 * Return: 0; -EAGAIN all places are taken.
 */
int weir_places_make_room(struct weir_places *places, const struct weir_newcomer *asks,
			  struct weir_newcomer **replaced, struct weir_error *error);

/* @newcomer: initialised, with room. The caller owes a weir_places_leave(). */
void weir_places_take(struct weir_places *places, struct weir_newcomer *newcomer);

/* The connection has proven the key, or ends. A newcomer without a place may leave, too. */
void weir_places_leave(struct weir_newcomer *newcomer);

/* Makes the cookie for a REQ that found no place: for weir_listener_reject(). */
void weir_places_cookie(struct weir_places *places, struct rdma_cm_id *id,
			uint8_t cookie[WIRE_COOKIE]);

#endif
