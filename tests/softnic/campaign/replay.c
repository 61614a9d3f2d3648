// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Replay a lane's log on plain memory.
 *
 * A completed operation must be there; a flushed operation must not. An operation is in doubt
 * if it failed, or was in flight when the source was killed: each byte is either old or new. UC
 * may lose a completed operation, but only as a whole, unless an end was killed meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "campaign.h"

static bool is_in_doubt(const struct campaign_op *op)
{
	return op->state == OP_FAILED || op->state == OP_POSTED;
}

/* Whether an operation in doubt could have left this byte. */
static bool is_excused(const struct campaign_lane *lane, uint32_t at, uint8_t byte)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		const struct campaign_op *op = &lane->ops[i];

		if (kind_writes(op->kind) && is_in_doubt(op) && at >= op->offset &&
		    at - op->offset < op->length && op_byte(op, at - op->offset) == byte)
			return true;
	}
	return false;
}

static bool judge_bytes(const struct campaign_lane *lane, const uint8_t *zone, char *why,
			size_t size)
{
	uint8_t *model = calloc(1, ZONE);
	uint32_t i, k;

	for (i = 0; i < OPS_MAX; i++) {
		const struct campaign_op *op = &lane->ops[i];

		for (k = 0; kind_writes(op->kind) && op->state == OP_DONE && k < op->length; k++)
			model[op->offset + k] = op_byte(op, k);
	}
	for (k = COUNTER_BYTES; k < ZONE; k++)
		if (zone[k] != model[k] && !is_excused(lane, k, zone[k]))
			break;
	if (k < ZONE)
		snprintf(why, size, "byte %u is %02x, should be %02x", k, zone[k], model[k]);
	free(model);
	return k == ZONE;
}

/* Whether the whole operation is there, apart from bytes explained by later operations. */
static bool is_whole(const struct campaign_op *op, const uint8_t *zone, const bool *explained)
{
	uint32_t k;

	for (k = 0; k < op->length; k++)
		if (!explained[op->offset + k] && zone[op->offset + k] != op_byte(op, k))
			return false;
	return true;
}

/*
 * Go from the last operation to the first. Bytes not explained by later operations show whether
 * the operation took effect.
 */
static bool judge_lossy_bytes(const struct campaign_lane *lane, const uint8_t *zone,
			      bool may_be_torn, char *why, size_t size)
{
	bool *explained = calloc(ZONE, sizeof(*explained));
	uint32_t i, k;

	for (i = OPS_MAX; i-- > 0;) {
		const struct campaign_op *op = &lane->ops[i];
		bool torn = may_be_torn || is_in_doubt(op);

		if (!kind_writes(op->kind) || op->state == OP_NONE || op->state == OP_FLUSHED ||
		    (!torn && !is_whole(op, zone, explained)))
			continue;
		for (k = 0; k < op->length; k++)
			explained[op->offset + k] |= zone[op->offset + k] == op_byte(op, k);
	}
	for (k = COUNTER_BYTES; k < ZONE; k++)
		if (zone[k] && !explained[k])
			break;
	if (k < ZONE)
		snprintf(why, size, "byte %u is %02x, of no write that is there as a whole", k,
			 zone[k]);
	free(explained);
	return k == ZONE;
}

static bool judge_count(const struct campaign_lane *lane, bool (*is_one)(enum op_kind kind),
			uint64_t found, bool is_minimum, const char *what, char *why, size_t size)
{
	uint32_t done = 0, doubt = 0, i;

	for (i = 0; i < OPS_MAX; i++) {
		if (!is_one(lane->ops[i].kind))
			continue;
		done += lane->ops[i].state == OP_DONE;
		doubt += is_in_doubt(&lane->ops[i]);
	}
	if ((found >= done || !is_minimum) && found <= done + doubt)
		return true;
	snprintf(why, size, "%llu %s; %u were done, and %u are in doubt", (unsigned long long)found,
		 what, done, doubt);
	return false;
}

static bool judge_ends(const struct campaign_lane *lane, char *why, size_t size)
{
	uint32_t i;

	for (i = 0; i < lane->num_ops; i++) {
		if (lane->ops[i].state != OP_POSTED && lane->ops[i].state != OP_NONE)
			continue;
		snprintf(why, size, "operation %u never ended", i);
		return false;
	}
	return true;
}

static bool is_add(enum op_kind kind)
{
	return kind == KIND_ADD;
}

static bool is_swap(enum op_kind kind)
{
	return kind == KIND_SWAP;
}

static uint64_t word_at(const uint8_t *zone, uint32_t at)
{
	uint64_t word;

	memcpy(&word, zone + at, sizeof(word));
	return word;
}

static bool judge_lane(const struct campaign_world *w, uint32_t source, uint32_t target,
		       uint32_t killed, char *why, size_t size)
{
	bool is_reliable = transport_between(w->seed, source, target) == RC;
	const struct campaign_lane *lane = &w->lanes[source][target];
	const uint8_t *zone = w->zones[target][source];
	bool target_lives = !(killed & 1u << target);

	if (!(killed & 1u << source) && !judge_ends(lane, why, size))
		return false;
	return (is_reliable ? judge_bytes(lane, zone, why, size) :
			      judge_lossy_bytes(lane, zone, !target_lives, why, size)) &&
	       judge_count(lane, is_add, word_at(zone, 0), true, "additions took effect", why,
			   size) &&
	       judge_count(lane, is_swap, word_at(zone, SWAP_AT), true, "swaps took effect", why,
			   size) &&
	       judge_count(lane, kind_is_received, lane->received, is_reliable && target_lives,
			   "messages and immediates arrived", why, size);
}

bool judge_world(const struct campaign_world *w, uint32_t killed, char *why, size_t size)
{
	uint32_t s, t;
	int n;

	for (s = 0; s < w->workers; s++) {
		for (t = 0; t < w->workers; t++) {
			if (s == t)
				continue;
			n = snprintf(why, size, "from %u to %u: ", s, t);
			if (!judge_lane(w, s, t, killed, why + n, size - n))
				return false;
		}
	}
	return true;
}
