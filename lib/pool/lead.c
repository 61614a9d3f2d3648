/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/pool/lead.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/pool/codec.h"

#define KEY_MAX (WEIR_POOL_NAME_MAX + 16)
#define ROUNDS_MAX 16 /* reads of the map in a row; the next call goes on */

static uint64_t wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / WEIR_NS_PER_MS;
}

static void format_key(const struct weir_pool_map *map, const struct weir_pool_op *op,
		       char key[static KEY_MAX])
{
	switch (op->kind) {
	case WEIR_POOL_PUT_TABLE:
		snprintf(key, KEY_MAX, "table/%s",
			 weir_pool_scheme_format(op->table.scheme).text);
		break;
	case WEIR_POOL_PUT_GROUP:
		snprintf(key, KEY_MAX, "group/%u", op->index);
		break;
	default:
		snprintf(key, KEY_MAX, "failed/%s", map->donor[op->index].id);
	}
}

/* Makes one change, if this donor still leads. */
static int put_op(const struct weir_pool_lead *lead, struct weir_pool_client *client,
		  struct weir_pool_map *map, const struct weir_pool_op *op,
		  struct weir_error *error)
{
	char key[KEY_MAX], *value = NULL;
	struct weir_pool_put put = { key, NULL, op->expected, 0, "leader", lead->token };
	uint64_t stored;
	int rc;

	format_key(map, op, key);
	if (op->kind == WEIR_POOL_PUT_TABLE)
		value = weir_pool_codec_table(&op->table);
	else if (op->kind == WEIR_POOL_PUT_GROUP)
		value = weir_pool_codec_group(map, &op->group);
	if (op->kind != WEIR_POOL_DROP_FAILED && !value)
		return weir_error_set(error, -ENOMEM, "out of memory");
	put.value = value;
	rc = weir_pool_store_put(weir_pool_client_store(client), &put, &stored, error);
	free(value);
	if (!rc)
		weir_pool_coordinator_did(map, op, stored);
	return rc;
}

/* Competes for the leader's key: a put of another donor, or of the leader, ends the try. */
static int campaign(struct weir_pool_client *client, struct weir_pool_map *map, const char *name,
		    uint64_t lease, struct weir_error *error)
{
	struct weir_pool_put put = { .key = "leader",
				     .lease = lease,
				     .expected = map->leader_stored };
	char *value;
	int rc;

	if (!weir_pool_map_may_lead(map, weir_pool_map_donor(map, name)))
		return 0;
	value = weir_pool_codec_leader(name);
	put.value = value;
	rc = value ? weir_pool_store_put(weir_pool_client_store(client), &put, NULL, error) :
		     -ENOMEM;
	free(value);
	if (rc && rc != -EAGAIN)
		return rc;
	return weir_pool_client_read(client, map, error);
}

/* Makes changes until none is due, or another has changed the map. */
static int make_changes(struct weir_pool_lead *lead, struct weir_pool_client *client,
			struct weir_pool_map *map, unsigned int *made, struct weir_error *error)
{
	struct weir_pool_op op;
	int rc = 0;

	*made = 0;
	while (!rc && weir_pool_coordinator_next(&lead->coordinator, map, weir_now_ns(), wall_ms(),
						 &op)) {
		rc = put_op(lead, client, map, &op, error);
		*made += !rc;
	}
	return rc == -EAGAIN ? 0 : rc;
}

int weir_pool_lead_run(struct weir_pool_lead *lead, struct weir_pool_client *client,
		       struct weir_pool_map *map, const char *name, uint64_t lease, bool is_back,
		       unsigned int *changes, struct weir_error *error)
{
	int rc = campaign(client, map, name, lease, error);
	unsigned int made;
	uint16_t self;

	*changes = 0;
	for (unsigned int round = 0; !rc && round < ROUNDS_MAX; round++) {
		self = weir_pool_map_donor(map, name);
		/* The key may be from a put whose answer was lost. */
		if (!map->leader_stored || map->leader != self) {
			lead->token = 0;
			return 0;
		}
		if (lead->token != map->leader_stored || (is_back && !round))
			weir_pool_coordinator_begin(&lead->coordinator, map->lease_ms,
						    weir_now_ns());
		lead->token = map->leader_stored;
		rc = make_changes(lead, client, map, &made, error);
		*changes += made;
		if (rc || !made)
			return rc;
		rc = weir_pool_client_read(client, map, error);
	}
	return rc;
}
