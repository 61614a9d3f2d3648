/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/conn/endpoint.h"
#include "lib/conn/places.h"

void weir_places_init(struct weir_places *places)
{
	memset(places, 0, sizeof(*places));
	weir_list_init(&places->newcomers);
}

void weir_places_fini(struct weir_places *places)
{
	weir_cookies_fini(&places->cookies);
}

/* Only a newcomer needs a cookie; a session has places of its own. */
void weir_places_newcomer(struct weir_newcomer *newcomer, struct weir_places *places,
			  struct rdma_cm_id *id, const void *key, uint64_t session,
			  const uint8_t *cookie)
{
	uint8_t gid[WIRE_GID];

	memset(newcomer, 0, sizeof(*newcomer));
	weir_list_init(&newcomer->link);
	newcomer->key = key;
	newcomer->session = session;
	newcomer->since_ns = weir_now_ns();
	weir_endpoint_of_request(id, gid);
	weir_endpoint_network(id, gid, newcomer->network);
	newcomer->has_cookie =
		!session && cookie && wire_handshake_has_cookie(cookie) &&
		weir_cookie_holds(&places->cookies, gid, newcomer->since_ns, cookie);
}

static bool wants_same_place(const struct weir_newcomer *a, const struct weir_newcomer *b)
{
	return a->key == b->key && a->session == b->session && a->has_cookie == b->has_cookie;
}

/* Return: the eldest of these newcomers, or NULL. @network: only of this one, or NULL. */
static struct weir_newcomer *eldest_of(struct weir_places *places,
				       const struct weir_newcomer *asks, const uint8_t *network,
				       unsigned int *count)
{
	struct weir_newcomer *eldest = NULL;
	struct weir_list *link;

	*count = 0;
	for (link = places->newcomers.next; link != &places->newcomers; link = link->next) {
		struct weir_newcomer *other = weir_list_entry(link, struct weir_newcomer, link);

		if (!wants_same_place(other, asks) ||
		    (network && memcmp(other->network, network, WIRE_GID)))
			continue;
		eldest = eldest ? eldest : other;
		++*count;
	}
	return eldest;
}

static unsigned int places_max(const struct weir_newcomer *asks)
{
	if (asks->session)
		return WEIR_SESSION_PLACES;
	return asks->has_cookie ? WEIR_COOKIE_PLACES : WEIR_UNPROVEN_MAX;
}

int weir_places_make_room(struct weir_places *places, const struct weir_newcomer *asks,
			  struct weir_newcomer **replaced, struct weir_error *error)
{
	struct weir_newcomer *eldest = NULL;
	unsigned int taken;

	*replaced = NULL;
	if (asks->has_cookie) {
		eldest = eldest_of(places, asks, asks->network, &taken);
		if (taken < WEIR_NETWORK_PLACES)
			eldest = NULL;
	}
	if (!eldest) {
		eldest = eldest_of(places, asks, NULL, &taken);
		if (taken < places_max(asks))
			return 0;
	}
	if (asks->since_ns < eldest->since_ns + WEIR_UNPROVEN_NS)
		return weir_error_set(error, -EAGAIN,
				      "%u connections have not proven this key yet: try again",
				      taken);
	*replaced = eldest;
	return 0;
}

void weir_places_take(struct weir_places *places, struct weir_newcomer *newcomer)
{
	weir_list_add_tail(&places->newcomers, &newcomer->link);
}

void weir_places_leave(struct weir_newcomer *newcomer)
{
	weir_list_del(&newcomer->link);
}

void weir_places_cookie(struct weir_places *places, struct rdma_cm_id *id,
			uint8_t cookie[WIRE_COOKIE])
{
	uint8_t gid[WIRE_GID];

	weir_endpoint_of_request(id, gid);
	weir_cookie_make(&places->cookies, gid, weir_now_ns(), cookie);
}
