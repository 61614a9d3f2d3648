/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The extents of a volume with a code, and the stripes that earlier clients left in them. */
#include <errno.h>
#include <stdlib.h>

#include "lib/volume/coded/coded.h"
#include "lib/volume/pool.h"

static size_t record_bytes(const struct weir_volume *v)
{
	return (size_t)weir_coded_record_pages(&v->coded->layout) * WEIR_VOLUME_PAGE_BYTES;
}

int weir_volume_coded_init(struct weir_volume *v, uint8_t data, uint8_t spare,
			   uint64_t extent_bytes, uint64_t id, uint64_t epoch)
{
	struct weir_volume_coded *coded = calloc(1, sizeof(*coded));

	v->coded = coded;
	if (!coded)
		return -ENOMEM;
	weir_coded_lay_out(&coded->layout, data, spare,
			   (uint32_t)(extent_bytes / WEIR_VOLUME_PAGE_BYTES));
	weir_volume_erasure_init(&coded->erasure, data, spare);
	weir_list_init(&coded->waiters);
	coded->layout.volume = id;
	coded->epoch = epoch;
	v->stripe.unit = weir_coded_stripe_pages(&coded->layout);
	v->stripe.extent = weir_coded_extent_pages(&coded->layout);
	for (uint32_t i = 0; i < WEIR_VOLUME_REPAIRS_MAX; i++) {
		struct weir_volume_request *r = calloc(1, sizeof(*r) + sizeof(r->pieces[0]));

		coded->repair[i] = r;
		if (!r)
			return -ENOMEM;
		r->volume = v;
		r->op = WEIR_VOLUME_REPAIR;
		weir_volume_request_init_pieces(r, 1);
	}
	return 0;
}

static int init_extent(const struct weir_coded_layout *layout, struct weir_coded_extent *c)
{
	c->place = calloc(layout->places, sizeof(*c->place));
	c->record = calloc(layout->stripes, sizeof(*c->record));
	c->current = calloc(layout->stripes, sizeof(*c->current));
	c->sum = calloc((size_t)layout->stripes * layout->width,
			WEIR_CODED_FRAGMENT_PAGES * sizeof(*c->sum));
	if (!c->place || !c->record || !c->current || !c->sum)
		return -ENOMEM;
	weir_coded_init(layout, c);
	return 0;
}

int weir_volume_coded_lay_out(struct weir_volume *v)
{
	struct weir_volume_coded *coded = v->coded;
	int rc = 0;

	coded->extent = calloc(v->core.nr_extents, sizeof(*coded->extent));
	if (!coded->extent)
		return -ENOMEM;
	for (uint32_t i = 0; !rc && i < v->core.nr_extents; i++)
		rc = init_extent(&coded->layout, &coded->extent[i]);
	return rc;
}

void weir_volume_coded_fini(struct weir_volume *v)
{
	struct weir_volume_coded *coded = v->coded;

	if (!coded)
		return;
	for (uint32_t i = 0; coded->extent && i < v->core.nr_extents; i++) {
		free(coded->extent[i].place);
		free(coded->extent[i].record);
		free(coded->extent[i].current);
		free(coded->extent[i].sum);
	}
	free(coded->extent);
	for (uint32_t i = 0; i < WEIR_VOLUME_REPAIRS_MAX; i++)
		free(coded->repair[i]);
	free(coded);
}

int weir_volume_coded_clear(struct weir_volume *v, struct weir_region *region)
{
	void *nothing = calloc(1, record_bytes(v));
	int rc = nothing ? weir_write(region, 0, nothing, record_bytes(v)) : -ENOMEM;

	free(nothing);
	return rc;
}

/* The region of a slot, which only the maintaining thread replaces. */
static struct weir_region *region_at(struct weir_volume *v, uint32_t extent, uint8_t slot)
{
	struct weir_region *region;

	weir_volume_lock(v);
	region = *weir_volume_region(v, extent, slot);
	weir_volume_unlock(v);
	return region;
}

/* Return: the records at each slot of @found, to be freed; NULL if they cannot be read. */
static struct weir_coded_record *read_records(struct weir_volume *v, uint32_t extent,
					      uint16_t found,
					      const struct weir_coded_record **records)
{
	char *all = malloc(WEIR_EXTENTS_SLOTS_MAX * record_bytes(v));
	int rc = 0;

	for (uint8_t slot = 0; all && !rc && slot < v->core.slots; slot++) {
		char *at = all + slot * record_bytes(v);
		struct weir_region *region = region_at(v, extent, slot);

		records[slot] = (void *)at;
		if (!(found >> slot & 1))
			continue;
		rc = region ? weir_read(region, 0, at, record_bytes(v)) : -ENOTCONN;
		if (!rc)
			continue;
		weir_volume_lock(v);
		v->layout->suspect(v, extent, slot);
		weir_volume_unlock(v);
	}
	if (rc) {
		free(all);
		all = NULL;
	}
	return (struct weir_coded_record *)all;
}

/* Completes the records of writes that the last client began to commit. */
static int complete_records(struct weir_volume *v, uint32_t extent, uint16_t found,
			    const struct weir_coded_record *const *records)
{
	const struct weir_coded_extent *c = &v->coded->extent[extent];
	int rc = 0;

	for (uint8_t slot = 0; !rc && slot < v->core.slots; slot++) {
		struct weir_region *region = region_at(v, extent, slot);

		for (uint32_t i = 0; found >> slot & 1 && !rc && i < v->coded->layout.stripes;
		     i++) {
			uint64_t offset = c->current[i] * sizeof(c->record[i]);

			if (weir_coded_lacks_record(c, i, records[slot]))
				rc = weir_write(region, offset, &c->record[i],
						sizeof(c->record[i]));
		}
		if (!rc)
			continue;
		weir_volume_lock(v);
		v->layout->suspect(v, extent, slot);
		weir_volume_unlock(v);
	}
	return rc;
}

void weir_volume_coded_recover(struct weir_volume *v, uint32_t extent, uint16_t counting,
			       uint16_t found)
{
	const struct weir_coded_record *records[WEIR_EXTENTS_SLOTS_MAX] = { NULL };
	struct weir_coded_extent *c = &v->coded->extent[extent];
	struct weir_coded_record *all = read_records(v, extent, found, records);
	int rc;

	if (!all)
		return;
	weir_volume_lock(v);
	rc = weir_coded_recover(&v->coded->layout, c, extent, records, found);
	weir_volume_unlock(v);
	if (rc)
		weir_volume_pool_end(v, rc);
	else
		rc = complete_records(v, extent, found, records);
	free(all);
	if (rc)
		return;
	weir_volume_lock(v);
	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		if (counting >> slot & 1 && weir_coded_is_whole(&v->coded->layout, c, slot))
			weir_extents_trust(&v->core, extent, slot);
	}
	weir_volume_unlock(v);
}
