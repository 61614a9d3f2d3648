/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks and copies by the target's CPU, compared with a list that is searched linearly and a naive
 * memory. Registrations come, go and overlap. Writes hit allowed places, forbidden places, or a
 * byte too far. An accepted write must be in memory, no other may be, and each is reported once, to
 * an initiator that counts its slots. Reports arrive late.
 */
#include <string.h>

#include "core/unload/unload_rx.h"
#include "core/unload/unload_slots.h"
#include "sim/hunt/hunt.h"

#define SIZE 32 /* entries of the table */
#define TAGS 40
#define OWNERS 3
#define STEPS 300
#define AREA 128 /* registrations start at multiples and may be longer */
#define AREAS 8
#define LENGTH 200 /* longest registration */
#define MEMORY ((AREAS + 2) * AREA)
#define SLOTS 8
#define TELL_MAX (SLOTS / 4)

struct fuzz_umtt {
	struct hunt *hunt;
	struct sim_rng rng;
	struct weir_unload_rx core;
	struct weir_unload_slots slots;
	uint32_t in_flight; /* reports, as far as the target knows */
	uint32_t completions; /* of reports, to come */
	uint8_t memory[MEMORY], model[MEMORY];
	uint16_t copied, reported; /* since the buffer was set up */
	struct weir_umtt map;
	struct weir_umtt_entry table[SIZE];
	struct weir_umtt_entry list[TAGS]; /* by tag; length 0: not registered */
	uint32_t count;
};

static uint32_t draw_below(struct fuzz_umtt *r, uint32_t count)
{
	return (uint32_t)sim_rng_below(&r->rng, count);
}

/* One draw a statement: the compiler may evaluate an initializer in any order. */
static void add_registration(struct fuzz_umtt *r, uint32_t tag)
{
	struct weir_umtt_entry entry = { .tag = tag * 0x101 };
	int rc;

	entry.addr = (uintptr_t)r->memory + AREA * (1 + draw_below(r, AREAS - 1));
	entry.length = 1 + draw_below(r, LENGTH);
	entry.owner = draw_below(r, OWNERS);
	entry.is_writable = draw_below(r, 4);
	rc = weir_umtt_add(&r->map, &entry);
	hunt_expect(r->hunt, (rc == -EEXIST) == !!r->list[tag].length,
		    "registering tag %u returns %d", tag, rc);
	hunt_expect(r->hunt, rc != -ENOSPC || r->count >= SIZE - SIZE / 4,
		    "there is no room for tag %u", tag);
	if (rc)
		return;
	r->list[tag] = entry;
	r->count++;
}

static void remove_registration(struct fuzz_umtt *r, uint32_t tag)
{
	weir_umtt_remove(&r->map, tag * 0x101);
	r->count -= !!r->list[tag].length;
	r->list[tag].length = 0;
}

static void buffer_begin(struct fuzz_umtt *r)
{
	weir_unload_rx_init(&r->core, SLOTS);
	weir_unload_slots_init(&r->slots, SLOTS);
	r->copied = r->reported = 0;
	r->in_flight = r->completions = 0;
}

/* Whether the target reports, compared with the model. */
static bool reports_now(struct fuzz_umtt *r, bool more)
{
	bool is_news = r->copied != r->reported || r->core.is_refused;
	bool has_room = r->in_flight < SLOTS;
	bool reports = weir_unload_rx_must_report(&r->core, more);

	hunt_expect(r->hunt, !reports || is_news, "a report says nothing new");
	hunt_expect(r->hunt, !reports || has_room, "too many reports are in flight");
	hunt_expect(r->hunt, reports || more || !is_news || !has_room,
		    "%u writes are done and not reported", r->copied - r->reported);
	hunt_expect(r->hunt, reports || r->copied - r->reported < TELL_MAX || !has_room,
		    "too many writes are not reported");
	return reports;
}

/* A refused write ends a buffer; the initiator gets a new buffer after the report. */
static void report_to_initiator(struct fuzz_umtt *r, bool more)
{
	int count;

	if (!reports_now(r, more))
		return;
	count = weir_unload_slots_returned(&r->slots, r->core.seen,
					   weir_unload_slots_open(&r->slots));
	hunt_expect(r->hunt, count == r->copied - r->reported,
		    "%u writes are done, and %d are reported", r->copied - r->reported, count);
	r->completions += weir_unload_rx_reported(&r->core);
	r->in_flight++;
	r->reported = r->copied;
	if (r->core.is_refused)
		buffer_begin(r);
}

/* The completion of a report stands for as many as half of the slots. */
static void report_completed(struct fuzz_umtt *r)
{
	if (!r->completions) {
		hunt_expect(r->hunt, r->in_flight < SLOTS / 2,
			    "no report that is in flight has a completion");
		return;
	}
	r->completions--;
	r->in_flight -= SLOTS / 2;
	weir_unload_rx_report_arrived(&r->core);
	report_to_initiator(r, false);
}

/* A write to a place in or near a registration. */
struct fuzz_write {
	uint64_t addr, length;
	uint32_t owner;
};

static struct fuzz_write draw_anywhere(struct fuzz_umtt *r, const struct weir_umtt_entry *e)
{
	struct fuzz_write w = { .owner = e->owner };

	w.addr = e->addr - 1 + draw_below(r, (uint32_t)e->length + 3);
	w.length = draw_below(r, (uint32_t)e->length + 2);
	if (!draw_below(r, 4))
		w.owner = draw_below(r, OWNERS);
	return w;
}

static struct fuzz_write draw_inside(struct fuzz_umtt *r, const struct weir_umtt_entry *e)
{
	uint32_t offset = draw_below(r, (uint32_t)e->length);

	return (struct fuzz_write){
		.addr = e->addr + offset,
		.length = 1 + draw_below(r, (uint32_t)e->length - offset),
		.owner = e->owner,
	};
}

static bool is_allowed(const struct weir_umtt_entry *e, const struct fuzz_write *w)
{
	return e->length && w->length && w->owner == e->owner && e->is_writable &&
	       w->addr >= e->addr && w->addr + w->length <= e->addr + e->length;
}

/* Most writes are allowed; or no buffer would live for long. */
static void unload_one(struct fuzz_umtt *r, uint32_t tag)
{
	const struct weir_umtt_entry *e = &r->list[tag];
	bool is_proper = e->length && e->is_writable && draw_below(r, 32);
	struct fuzz_write w = is_proper ? draw_inside(r, e) : draw_anywhere(r, e);
	bool may = is_allowed(e, &w);
	bool was_refused = r->core.is_refused;
	uint8_t bytes[LENGTH + 1 + 7], *data = bytes + draw_below(r, 8);
	uint32_t i;
	int rc;

	weir_unload_slots_take(&r->slots, &(bool){ false });
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)draw_below(r, 256);
	rc = weir_unload_rx_copy(&r->core, &r->map, w.owner, tag * 0x101, w.addr, data,
				 (uint32_t)w.length);
	hunt_expect(r->hunt,
		    rc == (was_refused ? -ECANCELED :
			   may	       ? 0 :
					 -EACCES),
		    "a write by tag %u is checked, which gives %d", tag, rc);
	if (may && !was_refused) {
		memcpy(r->model + (w.addr - (uintptr_t)r->memory), data, w.length);
		r->copied++;
	}
	hunt_expect(r->hunt, !memcmp(r->memory, r->model, MEMORY),
		    "after a write by tag %u the memory differs from the model", tag);
	report_to_initiator(r, draw_below(r, 2));
}

/* Mostly a tag of memory that somebody may write. */
static uint32_t draw_tag(struct fuzz_umtt *r)
{
	uint32_t tag = draw_below(r, TAGS), tries = draw_below(r, 32) ? TAGS : 0;

	for (; tries && !(r->list[tag].length && r->list[tag].is_writable); tries--)
		tag = (tag + 1) % TAGS;
	return tag;
}

static uint32_t digest(const struct fuzz_umtt *r)
{
	uint32_t i, of_all = 0;

	for (i = 0; i < MEMORY; i++)
		of_all = of_all * 31 + r->memory[i];
	return of_all;
}

void hunt_umtt(struct hunt *h, uint64_t seed)
{
	struct fuzz_umtt r = { .hunt = h };
	uint32_t step;

	sim_rng_init(&r.rng, seed, "rights", 0);
	buffer_begin(&r);
	hunt_expect(h, !weir_umtt_init(&r.map, r.table, SIZE), "there is no map");
	for (step = 0; step < STEPS && !*h->why; step++) {
		uint32_t tag = draw_below(&r, TAGS), what = draw_below(&r, 5);

		if (!what)
			remove_registration(&r, tag);
		else if (what == 1)
			add_registration(&r, tag);
		else if (weir_unload_slots_open(&r.slots) == SLOTS || !draw_below(&r, 16))
			report_completed(&r);
		else
			unload_one(&r, draw_tag(&r));
	}
	hunt_note(h, "rights", r.count, digest(&r), 0);
}
