/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The loans of a volume: requests for memory, each answered some steps later, or not at all. The
 * hunt checks from outside that no lost donor is asked, that a silent one is left alone, and that
 * memory is given back exactly when unused.
 */
#include "sim/hunt/fuzz_volume.h"

#define EXTENT_BYTES 8u

void hunt_volume_init_loans(struct fuzz_volume *v)
{
	weir_borrow_init(&v->borrow, &v->volume, EXTENT_BYTES, VOLUME_PATIENCE);
}

/* The only cause of loss: an extent's last replica goes with its donor. */
static void lose_donor(struct fuzz_volume *v, uint8_t donor)
{
	uint32_t i;

	v->donors[donor].is_up = false;
	weir_borrow_session(&v->borrow, donor, WEIR_EXTENTS_DONOR_DOWN);
	for (i = 0; i < VOLUME_EXTENTS; i++)
		v->was_lost[i] |= weir_extents_is_lost(&v->volume, i);
}

/* As the host does, the volume learns of it between two steps. */
void hunt_volume_donor_changes(struct fuzz_volume *v, uint8_t donor)
{
	struct fuzz_volume_donor *d = &v->donors[donor];

	d->is_mute = !v->is_calm && !hunt_volume_below(v, 4);
	if (v->is_asking || (!d->is_up && !d->is_awaited))
		return;
	if (d->is_up && !v->is_calm && !hunt_volume_below(v, 25)) {
		lose_donor(v, donor);
		return;
	}
	if (!d->is_up)
		*d = (struct fuzz_volume_donor){ .is_up = true };
	weir_borrow_session(&v->borrow, donor,
			    !v->is_calm && hunt_volume_below(v, 2) ? WEIR_EXTENTS_DONOR_SLOW :
								     WEIR_EXTENTS_DONOR_UP);
}

/* Memory goes from a replica that no operation uses. */
static void check_return(struct fuzz_volume *v)
{
	const struct weir_extents_placement *place = &v->step.place;

	hunt_expect(v->hunt, !hunt_volume_is_busy(v, place->extent, place->slot),
		    "memory of extent %u is given back while in use", place->extent);
	hunt_expect(v->hunt, v->is_there[place->extent][place->slot],
		    "memory of extent %u is given back twice", place->extent);
	hunt_expect(v->hunt, v->donors[place->donor].is_up == (v->step.op == WEIR_BORROW_GIVE_BACK),
		    "donor %u is not told, or is told and gone", place->donor);
}

static void check_asked(struct fuzz_volume *v)
{
	struct fuzz_volume_donor *d = &v->donors[v->step.place.donor];

	hunt_expect(v->hunt, d->is_up, "donor %u is asked, and is down", v->step.place.donor);
	hunt_expect(v->hunt, !d->is_silent || v->clock >= d->quiet_until,
		    "donor %u is silent, and asked again at once", v->step.place.donor);
	v->retries += d->is_silent;
	hunt_expect(v->hunt, v->retries <= 1, "two silent donors are asked in one round");
}

static void ask(struct fuzz_volume *v)
{
	uint8_t donor;

	if (v->borrow.phase == WEIR_BORROW_OVER) {
		weir_borrow_begin(&v->borrow, WEIR_BORROW_FORGET, WEIR_BORROW_RETRY);
		v->retries = 0;
	}
	weir_borrow_next(&v->borrow, &v->step, v->clock);
	donor = v->step.place.donor;
	switch (v->step.op) {
	case WEIR_BORROW_GIVE_BACK:
		check_return(v);
		/* fall through */
	case WEIR_BORROW_ASK_MEMORY:
	case WEIR_BORROW_ASK_ROOM:
		check_asked(v);
		break;
	case WEIR_BORROW_DROP:
		check_return(v);
		break;
	case WEIR_BORROW_RECONNECT:
		hunt_expect(v->hunt, !weir_extents_donor_extents(&v->volume, donor),
			    "donor %u is replaced, and holds memory", donor);
		v->donors[donor].is_awaited = true;
		return;
	default:
		return;
	}
	v->is_asking = true;
}

static void take(struct fuzz_volume *v, int rc)
{
	struct weir_extents_placement place = v->step.place;
	bool is_placed;

	if (!rc)
		place.extent = hunt_volume_below(v, VOLUME_EXTENTS); /* wanted elsewhere by now */
	is_placed = weir_borrow_taken(&v->borrow, &place, rc, v->clock);
	hunt_expect(v->hunt, !is_placed || !rc, "memory is placed that no donor gave");
	if (!is_placed)
		return;
	hunt_expect(v->hunt, !v->is_there[place.extent][place.slot],
		    "memory is granted to a replica that has memory");
	v->is_there[place.extent][place.slot] = true;
	memset(v->memory[place.extent][place.slot], 0, sizeof(v->memory[0][0]));
}

static int draw_answer(struct fuzz_volume *v)
{
	static const int unanswered[] = { -ETIMEDOUT, -ENOTCONN, -ECONNRESET, -EAGAIN };
	struct fuzz_volume_donor *d = &v->donors[v->step.place.donor];

	d->is_silent = d->is_mute && v->step.op != WEIR_BORROW_DROP;
	d->quiet_until = v->clock + VOLUME_PATIENCE;
	if (d->is_silent)
		return unanswered[hunt_volume_below(v, 4)];
	if (v->step.op == WEIR_BORROW_ASK_MEMORY && !v->is_calm && !hunt_volume_below(v, 10))
		return -ENOSPC;
	return 0;
}

/* A room may end with a part of an extent, for which a request would be refused. */
static void answer(struct fuzz_volume *v)
{
	const struct weir_extents_placement *place = &v->step.place;
	int rc = draw_answer(v);

	v->is_asking = false;
	if (v->step.op == WEIR_BORROW_ASK_MEMORY) {
		take(v, rc);
	} else if (v->step.op == WEIR_BORROW_ASK_ROOM) {
		weir_borrow_room(&v->borrow, place->donor, rc,
				 VOLUME_ROOM * EXTENT_BYTES + hunt_volume_below(v, EXTENT_BYTES),
				 v->clock);
		hunt_expect(v->hunt, rc || v->volume.donor[place->donor].free == VOLUME_ROOM,
			    "donor %u has room for a part of an extent", place->donor);
	} else if (weir_borrow_returned(&v->borrow, &v->step, rc, v->clock)) {
		v->is_there[place->extent][place->slot] = false;
	}
}

void hunt_volume_loan(struct fuzz_volume *v)
{
	if (v->is_asking)
		answer(v);
	else
		ask(v);
}
