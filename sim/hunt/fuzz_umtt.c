/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks and copies by the target's CPU, compared with a list that is searched linearly and a naive
 * memory. Registrations come, go and overlap. Writes hit allowed places, forbidden places, or a
 * byte too far. An accepted write must be in memory, no other may be, and each is reported once.
 */
#include <string.h>

#include "core/unload/unload_rx.h"
#include "sim/hunt/hunt.h"

#define SIZE 32 /* entries of the table */
#define TAGS 40
#define OWNERS 3
#define STEPS 300
#define AREA 128 /* registrations start at multiples and may be longer */
#define AREAS 8
#define LENGTH 200 /* longest registration */
#define MEMORY ((AREAS + 2) * AREA)
#define TELL_MAX 4

struct fuzz_umtt {
	struct hunt *hunt;
	struct sim_rng rng;
	struct weir_unload_rx core;
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

/* A refused write ends a buffer; the initiator gets a new buffer after the report. */
static void report_to_initiator(struct fuzz_umtt *r, bool more)
{
	bool is_news = r->copied != r->reported || r->core.is_refused;
	bool reports = weir_unload_rx_must_report(&r->core, more);

	hunt_expect(r->hunt, !reports || is_news, "a report says nothing new");
	hunt_expect(r->hunt, reports || more || !is_news, "%u writes are done and not reported",
		    r->copied - r->reported);
	hunt_expect(r->hunt, reports || r->copied - r->reported < TELL_MAX,
		    "too many writes are not reported");
	if (!reports)
		return;
	hunt_expect(r->hunt, r->core.seen == r->copied, "%u writes are done, and %u are reported",
		    r->copied, r->core.seen);
	weir_unload_rx_reported(&r->core);
	r->reported = r->copied;
	if (r->core.is_refused) {
		weir_unload_rx_init(&r->core, TELL_MAX);
		r->copied = r->reported = 0;
	}
}

static void unload_one(struct fuzz_umtt *r, uint32_t tag)
{
	const struct weir_umtt_entry *e = &r->list[tag];
	uint64_t addr = e->addr - 1 + draw_below(r, (uint32_t)e->length + 3);
	uint64_t length = draw_below(r, (uint32_t)e->length + 2);
	uint32_t owner = draw_below(r, 4) ? e->owner : draw_below(r, OWNERS);
	bool may = e->length && length && owner == e->owner && e->is_writable && addr >= e->addr &&
		   addr + length <= e->addr + e->length;
	bool was_refused = r->core.is_refused;
	uint8_t bytes[LENGTH + 1 + 7], *data = bytes + draw_below(r, 8);
	uint32_t i;
	int rc;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)draw_below(r, 256);
	rc = weir_unload_rx_copy(&r->core, &r->map, owner, tag * 0x101, addr, data,
				 (uint32_t)length);
	hunt_expect(r->hunt,
		    rc == (was_refused ? -ECANCELED :
			   may	       ? 0 :
					 -EACCES),
		    "a write by tag %u is checked, which gives %d", tag, rc);
	if (may && !was_refused) {
		memcpy(r->model + (addr - (uintptr_t)r->memory), data, length);
		r->copied++;
	}
	hunt_expect(r->hunt, !memcmp(r->memory, r->model, MEMORY),
		    "after a write by tag %u the memory differs from the model", tag);
	report_to_initiator(r, draw_below(r, 2));
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
	weir_unload_rx_init(&r.core, TELL_MAX);
	hunt_expect(h, !weir_umtt_init(&r.map, r.table, SIZE), "there is no map");
	for (step = 0; step < STEPS && !*h->why; step++) {
		uint32_t tag = draw_below(&r, TAGS), what = draw_below(&r, 5);

		if (!what)
			remove_registration(&r, tag);
		else if (what == 1)
			add_registration(&r, tag);
		else
			unload_one(&r, tag);
	}
	hunt_note(h, "rights", r.count, digest(&r), 0);
}
