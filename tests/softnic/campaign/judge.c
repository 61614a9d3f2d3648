// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Replaying a lane's log on plain memory.
 *
 * What was done must be there. What was flushed must not. What failed, or was under way
 * when its source was killed, is in doubt: each of its bytes is as before or as it wanted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "campaign.h"

static bool is_in_doubt(const struct op *op)
{
	return op->state == OP_FAILED || op->state == OP_POSTED;
}

/* Could an operation in doubt have left this byte? */
static bool is_excused(const struct lane *lane, uint32_t at, uint8_t byte)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		const struct op *op = &lane->ops[i];

		if (op->kind == KIND_WRITE && is_in_doubt(op) && at >= op->offset &&
		    at - op->offset < op->length && op_byte(op, at - op->offset) == byte)
			return true;
	}
	return false;
}

static bool judge_bytes(const struct lane *lane, const uint8_t *zone, char *why, size_t size)
{
	uint8_t *model = calloc(1, ZONE);
	uint32_t i, k;

	for (i = 0; i < OPS_MAX; i++) {
		const struct op *op = &lane->ops[i];

		for (k = 0; op->kind == KIND_WRITE && op->state == OP_DONE && k < op->length; k++)
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

static bool judge_count(const struct lane *lane, enum kind kind, uint64_t found, bool is_minimum,
			const char *what, char *why, size_t size)
{
	uint32_t done = 0, doubt = 0, i;

	for (i = 0; i < OPS_MAX; i++) {
		if (lane->ops[i].kind != kind)
			continue;
		done += lane->ops[i].state == OP_DONE;
		doubt += is_in_doubt(&lane->ops[i]);
	}
	if ((found >= done || !is_minimum) && found <= done + doubt)
		return true;
	snprintf(why, size, "%llu %s; %u were done, and %u are in doubt",
		 (unsigned long long)found, what, done, doubt);
	return false;
}

static bool judge_ends(const struct lane *lane, char *why, size_t size)
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

static bool judge_lane(const struct world *w, uint32_t source, uint32_t target, uint32_t killed,
		       char *why, size_t size)
{
	const struct lane *lane = &w->lanes[source][target];
	const uint8_t *zone = w->zones[target][source];
	uint64_t counter;

	memcpy(&counter, zone, sizeof(counter));
	if (!(killed & 1u << source) && !judge_ends(lane, why, size))
		return false;
	return judge_bytes(lane, zone, why, size) &&
	       judge_count(lane, KIND_ADD, counter, true, "additions took effect", why, size) &&
	       judge_count(lane, KIND_SEND, lane->received, !(killed & 1u << target),
			   "messages arrived", why, size);
}

bool judge_world(const struct world *w, uint32_t killed, char *why, size_t size)
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
