/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/volume/borrow.h"
#include "core/link/call_table.h"

void weir_borrow_init(struct weir_borrow *b, struct weir_extents *extents, uint64_t extent_bytes,
		      uint64_t timeout_ns)
{
	memset(b, 0, sizeof(*b));
	b->extents = extents;
	b->extent_bytes = extent_bytes;
	b->timeout_ns = timeout_ns;
	b->phase = b->last = WEIR_BORROW_OVER;
}

static enum weir_extents_donor_state state_of(const struct weir_borrow *b, uint8_t donor)
{
	return (enum weir_extents_donor_state)b->extents->donor[donor].state;
}

void weir_borrow_session(struct weir_borrow *b, uint8_t donor, enum weir_extents_donor_state state)
{
	if (state == WEIR_EXTENTS_DONOR_DOWN)
		weir_extents_donor_lost(b->extents, donor);
	else if (state == WEIR_EXTENTS_DONOR_UP && !b->donor[donor].is_silent)
		weir_extents_donor_up(b->extents, donor);
	else
		weir_extents_donor_slow(b->extents, donor);
}

void weir_borrow_answered(struct weir_borrow *b, uint8_t donor, int rc, uint64_t now_ns)
{
	struct weir_borrow_donor *d = &b->donor[donor];

	d->is_silent = weir_call_is_unanswered(rc);
	if (!d->is_silent)
		return;
	d->ask_again_ns = now_ns;
	if (rc != -EINTR) /* which concerns the caller, not the donor */
		d->ask_again_ns += b->timeout_ns;
	if (state_of(b, donor) == WEIR_EXTENTS_DONOR_UP)
		weir_extents_donor_slow(b->extents, donor);
}

bool weir_borrow_taken(struct weir_borrow *b, struct weir_extents_placement *place, int rc,
		       uint64_t now_ns)
{
	weir_borrow_answered(b, place->donor, rc, now_ns);
	if (rc && !weir_call_is_unanswered(rc))
		weir_extents_donor_room(b->extents, place->donor, 0);
	return !rc && !weir_extents_granted(b->extents, place);
}

/* The room for a part of an extent is none: asking for it would only be refused. */
void weir_borrow_room(struct weir_borrow *b, uint8_t donor, int rc, uint64_t bytes, uint64_t now_ns)
{
	weir_borrow_answered(b, donor, rc, now_ns);
	if (rc)
		return;
	b->donor[donor].room_bytes = bytes;
	weir_extents_donor_room(b->extents, donor, bytes / b->extent_bytes);
	b->is_wanted |= b->phase == WEIR_BORROW_RETRY;
}

uint8_t weir_borrow_scarcest(const struct weir_borrow *b)
{
	uint8_t scarcest = 0;

	for (uint8_t i = 1; i < b->extents->nr_donors; i++) {
		if (b->extents->donor[i].free < b->extents->donor[scarcest].free)
			scarcest = i;
	}
	return scarcest;
}

/*
 * Memory that goes after TAKE makes way for other memory: at its donor, which has room again, or,
 * if the donor is lost, in its extent, which has a free slot again.
 */
bool weir_borrow_returned(struct weir_borrow *b, const struct weir_borrow_step *step, int rc,
			  uint64_t now_ns)
{
	bool is_gone = !weir_call_is_unanswered(rc);

	if (step->op == WEIR_BORROW_GIVE_BACK)
		weir_borrow_answered(b, step->place.donor, rc, now_ns);
	weir_extents_returned(b->extents, &step->place, is_gone);
	b->is_wanted |= is_gone && b->phase == WEIR_BORROW_RETURN;
	return is_gone;
}

void weir_borrow_begin(struct weir_borrow *b, enum weir_borrow_phase first,
		       enum weir_borrow_phase last)
{
	b->phase = first;
	b->last = last;
	b->next = 0;
	b->is_wanted = false;
}

/* The donors to whom memory can go back now: the lost ones and, with @tell, those that answer. */
static uint64_t choose_donors(const struct weir_borrow *b, bool tell)
{
	uint64_t donors = 0;

	for (uint8_t i = 0; i < b->extents->nr_donors; i++) {
		if (state_of(b, i) == WEIR_EXTENTS_DONOR_DOWN ||
		    (tell && state_of(b, i) == WEIR_EXTENTS_DONOR_UP))
			donors |= 1ull << i;
	}
	return donors;
}

static enum weir_borrow_op give_back(struct weir_borrow *b, bool tell,
				     struct weir_extents_placement *place)
{
	weir_extents_trim(b->extents);
	if (!weir_extents_next_return(b->extents, choose_donors(b, tell), place))
		return WEIR_BORROW_END;
	return state_of(b, place->donor) == WEIR_EXTENTS_DONOR_DOWN ? WEIR_BORROW_DROP :
								      WEIR_BORROW_GIVE_BACK;
}

static enum weir_borrow_op take_memory(struct weir_borrow *b, struct weir_extents_placement *place)
{
	int rc = weir_extents_next_placement(b->extents, place);

	b->is_short = rc == -ENOSPC;
	return rc ? WEIR_BORROW_END : WEIR_BORROW_ASK_MEMORY;
}

/* The donors that are up, by turns. */
static enum weir_borrow_op query_room(struct weir_borrow *b, struct weir_extents_placement *place)
{
	while (b->next < b->extents->nr_donors) {
		place->donor = b->next++;
		if (state_of(b, place->donor) == WEIR_EXTENTS_DONOR_UP)
			return WEIR_BORROW_ASK_ROOM;
	}
	return WEIR_BORROW_END;
}

/* A lost donor of whose memory nothing is left. */
static enum weir_borrow_op replace_donor(struct weir_borrow *b,
					 struct weir_extents_placement *place)
{
	while (b->next < b->extents->nr_donors) {
		uint8_t donor = b->next++;

		if (state_of(b, donor) != WEIR_EXTENTS_DONOR_DOWN ||
		    weir_extents_donor_extents(b->extents, donor))
			continue;
		place->donor = donor;
		b->donor[donor].is_silent = false;
		return WEIR_BORROW_RECONNECT;
	}
	return WEIR_BORROW_END;
}

static enum weir_borrow_op retry_silent(struct weir_borrow *b, struct weir_extents_placement *place,
					uint64_t now_ns)
{
	uint8_t first = b->extents->nr_donors;

	for (uint8_t i = 0; i < b->extents->nr_donors; i++) {
		if (!b->donor[i].is_silent || state_of(b, i) == WEIR_EXTENTS_DONOR_DOWN ||
		    b->donor[i].ask_again_ns > now_ns)
			continue;
		if (first == b->extents->nr_donors ||
		    b->donor[i].ask_again_ns < b->donor[first].ask_again_ns)
			first = i;
	}
	if (b->next || first == b->extents->nr_donors)
		return WEIR_BORROW_END;
	b->next = 1;
	place->donor = first;
	return WEIR_BORROW_ASK_ROOM;
}

static enum weir_borrow_op step_of_phase(struct weir_borrow *b,
					 struct weir_extents_placement *place, uint64_t now_ns)
{
	switch (b->phase) {
	case WEIR_BORROW_FORGET:
		return give_back(b, false, place);
	case WEIR_BORROW_TAKE:
		return take_memory(b, place);
	case WEIR_BORROW_QUERY:
		return query_room(b, place);
	case WEIR_BORROW_RETURN:
		return give_back(b, true, place);
	case WEIR_BORROW_REPLACE:
		return replace_donor(b, place);
	case WEIR_BORROW_RETRY:
		return retry_silent(b, place, now_ns);
	case WEIR_BORROW_OVER:
		break;
	}
	return WEIR_BORROW_END;
}

/* Rooms are for the next round's TAKE. */
static void advance(struct weir_borrow *b)
{
	bool is_content = !b->is_short && !weir_extents_census(b->extents).leaving;

	b->next = 0;
	if (b->phase >= b->last)
		b->phase = WEIR_BORROW_OVER;
	else if (b->phase == WEIR_BORROW_TAKE && is_content)
		b->phase = WEIR_BORROW_RETURN;
	else
		b->phase++;
}

void weir_borrow_next(struct weir_borrow *b, struct weir_borrow_step *step, uint64_t now_ns)
{
	*step = (struct weir_borrow_step){ WEIR_BORROW_END };
	while (step->op == WEIR_BORROW_END && b->phase != WEIR_BORROW_OVER) {
		step->op = (uint8_t)step_of_phase(b, &step->place, now_ns);
		if (step->op == WEIR_BORROW_END)
			advance(b);
	}
}
