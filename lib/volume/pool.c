/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opens a volume of a pool, and keeps its donors' sessions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/volume/coded/coded.h"
#include "lib/volume/memory.h"
#include "lib/volume/pool.h"
#include "lib/volume/rebuild.h"
#include "lib/volume/target.h"

#define LOOK_NS (100 * WEIR_NS_PER_MS)
#define REPORT_NS (250 * WEIR_NS_PER_MS) /* after a report that failed */
#define WIDTH_MAX 8u /* extents that a long transfer uses at once */

/* Whether the donor of a target is registered. */
static bool is_registered(const struct weir_volume *v, const struct weir_volume_target *target)
{
	uint16_t donor = weir_pool_map_donor(v->pool->map, target->id);

	return donor != WEIR_POOL_NO_DONOR &&
	       v->pool->map->donor[donor].incarnation == target->incarnation;
}

static bool has_target(const struct weir_volume *v, const struct weir_pool_donor *donor)
{
	for (unsigned int i = 0; i < v->nr_targets; i++) {
		if (v->targets[i].address && v->targets[i].incarnation == donor->incarnation &&
		    !strcmp(v->targets[i].id, donor->id))
			return true;
	}
	return false;
}

static void add_target(struct weir_volume *v, const struct weir_pool_donor *donor)
{
	struct weir_volume_target *target = v->targets;
	char *address;

	while (target < v->targets + v->nr_targets && target->address)
		target++;
	if (target == v->targets + v->nr_targets || weir_volume_target_start(target, NULL))
		return; /* a target that is free later */
	address = strdup(donor->address);
	if (!address)
		return;
	weir_volume_lock(v);
	target->address = address;
	memcpy(target->id, donor->id, sizeof(target->id));
	target->incarnation = donor->incarnation;
	target->has_identity = donor->has_identity;
	memcpy(target->identity, donor->identity, sizeof(target->identity));
	target->has_new_key = false; /* @target->thread is not connecting */
	target->connect_status = 0;
	target->is_failed = target->is_reported = false;
	target->wrong_reads = target->wrong_shown = 0;
	target->since_ns = weir_now_ns();
	weir_volume_unlock(v);
}

/* A target whose donor is not in the pool any more, and has no copy, becomes free. */
static void remove_target(struct weir_volume *v, uint8_t index)
{
	struct weir_volume_target *target = &v->targets[index];
	bool is_free;

	weir_volume_lock(v);
	target->is_joining = false;
	is_free = !target->is_connecting && !target->fresh &&
		  !weir_extents_donor_extents(&v->core, index);
	weir_volume_unlock(v);
	if (!is_free)
		return;
	if (target->session)
		weir_volume_target_drop(target);
	weir_volume_lock(v);
	free(target->address);
	target->address = NULL;
	weir_extents_donor_slow(&v->core, index);
	weir_volume_unlock(v);
}

static bool any_session(const struct weir_volume *v)
{
	bool any = false;

	for (unsigned int i = 0; i < v->nr_targets; i++)
		any |= v->targets[i].session != NULL;
	return any;
}

/* Whether the donor's host has said that the incarnation is not there. */
static bool is_gone(const struct weir_volume_target *target)
{
	return target->connect_status == -ECONNREFUSED || target->connect_status == -ESTALE;
}

/*
 * A donor that is gone, or could not be connected for a while, is reported, if another could be
 * connected. A donor that refuses the key is not at fault.
 */
static void check_absence(struct weir_volume *v, struct weir_volume_target *target)
{
	bool is_late = weir_now_ns() > weir_after_ns(target->since_ns, v->options.timeout_ns);

	weir_volume_lock(v);
	if ((is_late || is_gone(target)) && any_session(v) &&
	    target->connect_status != -EKEYREJECTED)
		target->is_failed = true;
	weir_volume_unlock(v);
}

static void check_target(struct weir_volume *v, uint8_t index)
{
	struct weir_volume_target *target = &v->targets[index];
	bool is_new = weir_volume_target_adopt(target), is_up, was_lost = false;

	is_up = weir_volume_target_state(target) != WEIR_EXTENTS_DONOR_DOWN;
	if (target->session && !is_up) {
		weir_volume_pool_detach(v, index);
		weir_volume_target_drop(target);
		target->since_ns = weir_now_ns();
		was_lost = true;
	}
	if (!target->session)
		weir_volume_target_reconnect(target);
	weir_volume_lock(v);
	if (was_lost)
		target->is_failed = true;
	else if (is_new && is_up && !target->is_reported)
		target->is_failed = false;
	if (is_up)
		weir_extents_donor_up(&v->core, index);
	else
		weir_extents_donor_slow(&v->core, index);
	weir_volume_unlock(v);
	if (!is_up)
		check_absence(v, target);
}

static void take_map(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;

	weir_volume_lock(v);
	if (p->has_fresh) {
		struct weir_pool_map *old = p->map;

		p->map = p->fresh;
		p->fresh = old;
		p->has_fresh = false;
	}
	weir_volume_unlock(v);
}

/* The watching thread finds out whether another has the volume: the claim may just be renewed. */
static int confirm_claim(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	uint64_t claimed, now_ns = weir_now_ns();
	int rc;

	weir_volume_lock(v);
	claimed = p->claimed;
	weir_volume_unlock(v);
	rc = weir_pool_client_confirm(p->reporter, p->name, claimed, NULL);
	if (rc)
		return rc;
	weir_volume_lock(v);
	p->confirmed_ns = now_ns;
	weir_volume_unlock(v);
	return 0;
}

static void give_proof(struct weir_volume *v)
{
	bool is_wanted;

	weir_volume_lock(v);
	is_wanted = v->pool->wants_proof;
	weir_volume_unlock(v);
	if (!is_wanted || confirm_claim(v))
		return;
	weir_volume_lock(v);
	v->pool->wants_proof = false;
	weir_volume_unlock(v);
}

static bool must_report(struct weir_volume *v, const struct weir_volume_target *target)
{
	bool is_failed;

	weir_volume_lock(v);
	is_failed = target->address && target->is_failed;
	weir_volume_unlock(v);
	return is_failed && !target->is_reported;
}

/*
 * Reports donors that failed. A client whose claim is over sees refusals, and must blame no donor:
 * so the claim is confirmed first. Without the store, there is another time.
 */
static void report_failed(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	bool is_confirmed = false;

	if (weir_now_ns() < p->report_ns)
		return;
	for (unsigned int i = 0; i < v->nr_targets && !weir_volume_is_closing(v); i++) {
		struct weir_volume_target *target = &v->targets[i];
		int rc = 0;

		if (!must_report(v, target))
			continue;
		if (!is_confirmed)
			rc = confirm_claim(v);
		if (rc)
			return;
		is_confirmed = true;
		rc = weir_pool_client_report_failed(p->reporter, target->id, target->incarnation,
						    NULL);
		target->is_reported = !rc;
		if (rc)
			p->report_ns = weir_now_ns() + REPORT_NS;
	}
}

static void maintain(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;

	take_map(v);
	for (uint16_t i = 0; i < p->map->nr_donors; i++) {
		if (p->map->donor[i].incarnation && !has_target(v, &p->map->donor[i]))
			add_target(v, &p->map->donor[i]);
	}
	for (unsigned int i = 0; i < v->nr_targets; i++) {
		if (!v->targets[i].address)
			continue;
		check_target(v, (uint8_t)i);
		if (!is_registered(v, &v->targets[i]))
			remove_target(v, (uint8_t)i);
	}
	give_proof(v);
	report_failed(v);
	weir_volume_pool_place(v);
	report_failed(v);
	weir_volume_wake(&p->changed);
}

/* A member that stands in the map has the write, or has failed and leaves. */
static enum weir_volume_fate fate_of_copy(struct weir_volume *v, uint32_t extent, uint8_t slot)
{
	if (v->extents[extent].replica[slot].state != WEIR_REPLICA_VALID)
		return WEIR_VOLUME_IS_OUT;
	return *weir_volume_region(v, extent, slot) ? WEIR_VOLUME_MAY_RETRY : WEIR_VOLUME_MUST_WAIT;
}

static bool may_come(struct weir_volume *v, uint32_t extent)
{
	const struct weir_pool_group *group = &v->pool->map->group[v->pool->group[extent]];

	bool is_readable = v->coded ? weir_coded_is_enough(&v->coded->layout, &v->core, extent,
							   UINT16_MAX) :
				      weir_extents_count_valid(&v->core, extent);

	return is_readable || !weir_pool_group_is_lost(group);
}

static void suspect(struct weir_volume *v, uint32_t extent, uint8_t slot)
{
	v->targets[v->extents[extent].replica[slot].donor].is_failed = true;
}

static bool is_certain(struct weir_volume *v, uint64_t since_ns)
{
	struct weir_volume_pool *p = v->pool;

	p->wants_proof |= p->confirmed_ns <= since_ns;
	return p->confirmed_ns > since_ns;
}

const struct weir_volume_layout weir_volume_mapped = {
	.maintain = maintain,
	.fate_of_copy = fate_of_copy,
	.is_equal = weir_volume_pool_is_equal,
	.may_come = may_come,
	.suspect = suspect,
	.is_certain = is_certain,
	.stop = weir_volume_pool_stop,
	.is_mapped = true,
};

/* Splits POOL/VOLUME. */
static int split_name(const char *text, char *pool, size_t size, const char **volume,
		      struct weir_error *error)
{
	const char *slash = strrchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : 0;

	if (!length || !slash[1] || length >= size)
		return weir_error_set(error, -EINVAL, "%s: expected POOL/VOLUME", text);
	memcpy(pool, text, length);
	pool[length] = '\0';
	*volume = slash + 1;
	return 0;
}

typedef int open_fn(struct weir_pool_client *client, const char *volume,
		    struct weir_pool_map *map, struct weir_error *error);

static open_fn *open_claim(const struct weir_volume *v)
{
	if (v->rebuild)
		return weir_pool_client_open_rebuild;
	return v->is_files ? weir_pool_client_open_files : weir_pool_client_open_volume;
}

static int claim(struct weir_volume *v, struct weir_error *error)
{
	struct weir_volume_pool *p = v->pool;
	char pool[1024];
	const char *volume = "";
	int rc = split_name(v->options.volume, pool, sizeof(pool), &volume, error);

	if (!rc)
		rc = weir_pool_client_open(pool, &p->client, error);
	if (!rc)
		rc = weir_pool_client_open(pool, &p->reporter, error);
	if (!rc)
		rc = open_claim(v)(p->client, volume, p->scratch, error);
	if (rc)
		return rc;
	snprintf(p->name, sizeof(p->name), "%s", volume);
	p->lease = weir_pool_client_lease(p->client);
	p->epoch = weir_pool_client_epoch(p->client);
	p->claimed = weir_pool_client_claimed(p->client);
	p->members.is_blank = weir_pool_client_was_blank(p->client);
	p->shown = 100;
	p->shown_ns = weir_now_ns();
	*p->map = *p->scratch;
	return 0;
}

static uint32_t choose_width(const struct weir_pool_map *map, const struct weir_pool_volume *volume,
			     uint32_t extent_pages)
{
	uint32_t width = weir_pool_map_table(map, volume->scheme)->count;
	uint64_t bytes = (uint64_t)extent_pages * WEIR_VOLUME_PAGE_BYTES;
	uint64_t extents = (volume->bytes + bytes - 1) / bytes;

	width = width < WIDTH_MAX ? width : WIDTH_MAX;
	return extents < width ? (uint32_t)extents : width;
}

void weir_volume_pool_stripe(const struct weir_pool_map *map, const struct weir_pool_volume *volume,
			     struct weir_stripe *stripe)
{
	stripe->extent = (uint32_t)(volume->extent_bytes / WEIR_VOLUME_PAGE_BYTES);
	stripe->unit = stripe->extent < WEIR_VOLUME_UNIT_PAGES ? stripe->extent :
								 WEIR_VOLUME_UNIT_PAGES;
	stripe->width = choose_width(map, volume, stripe->extent);
}

static int choose_stripe(struct weir_volume *v, const struct weir_pool_volume *volume)
{
	const struct weir_volume_pool *p = v->pool;
	int rc;

	weir_volume_pool_stripe(p->map, volume, &v->stripe);
	if (volume->scheme.data == 1)
		return 0;
	rc = weir_volume_coded_init(v, volume->scheme.data, volume->scheme.spare,
				    volume->extent_bytes, volume->id, p->epoch);
	v->stripe.width = choose_width(p->map, volume, v->stripe.extent);
	return rc;
}

static int allocate_members(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;

	p->group = calloc(v->core.nr_extents, sizeof(*p->group));
	p->copies = calloc((size_t)v->core.nr_extents * v->core.slots, sizeof(*p->copies));
	p->equal = calloc(v->core.nr_extents, sizeof(*p->equal));
	p->groups = calloc(weir_pool_map_groups(p->map), sizeof(*p->groups));
	if (!p->group || !p->copies || !p->equal || !p->groups)
		return -ENOMEM;
	p->members.extents = &v->core;
	p->members.copy = p->copies;
	p->members.group = p->groups;
	p->members.group_of = p->group;
	p->members.equal = p->equal;
	p->members.data = weir_pool_map_volume(p->map, p->name)->scheme.data;
	p->members.is_rebuild = v->rebuild;
	return 0;
}

static int lay_out(struct weir_volume *v, struct weir_error *error)
{
	struct weir_volume_pool *p = v->pool;
	const struct weir_pool_volume *volume = weir_pool_map_volume(p->map, p->name);
	int rc;

	p->pool_id = p->map->id;
	p->volume_id = volume->id;
	v->bytes = volume->bytes;
	v->options.copies = weir_pool_width(volume->scheme);
	rc = choose_stripe(v, volume);
	if (!rc)
		rc = weir_volume_memory_lay_out(v);
	if (!rc && v->coded)
		rc = weir_volume_coded_lay_out(v);
	if (!rc)
		rc = allocate_members(v);
	if (rc)
		return weir_error_set(error, rc, "no memory for a volume of %llu bytes",
				      (unsigned long long)v->bytes);
	v->core.is_mapped = true;
	v->core.repairs = !v->rebuild; /* a donor only writes its own copies */
	for (uint32_t i = 0; i < v->core.nr_extents; i++)
		p->group[i] = weir_pool_map_group(p->map, volume, i);
	for (uint8_t i = 0; i < v->nr_targets; i++)
		weir_extents_donor_slow(&v->core, i);
	return 0;
}

/*
 * A request to a silent donor ends after up to two timeouts, and then the map has to change. Both
 * fit into two leases, which is how long a pool may take to notice.
 */
static uint64_t choose_timeout(const struct weir_pool_map *map)
{
	uint64_t ns = map->lease_ms * WEIR_NS_PER_MS * 2 / 3;

	return ns < WEIR_VOLUME_TIMEOUT_NS ? ns : WEIR_VOLUME_TIMEOUT_NS;
}

int weir_volume_pool_open(struct weir_volume *v, struct weir_error *error)
{
	struct weir_volume_pool *p = calloc(1, sizeof(*p));
	int rc;

	v->pool = p;
	if (p) {
		p->map = calloc(1, sizeof(*p->map));
		p->fresh = calloc(1, sizeof(*p->fresh));
		p->scratch = calloc(1, sizeof(*p->scratch));
	}
	if (!p || !p->map || !p->fresh || !p->scratch)
		return weir_error_set(error, -ENOMEM, "out of memory");
	v->nr_targets = v->options.nr_donors;
	for (unsigned int i = 0; i < v->nr_targets; i++)
		v->targets[i].volume = v;
	rc = claim(v, error);
	if (!v->options.timeout_ns)
		v->options.timeout_ns = choose_timeout(p->map);
	if (!rc)
		rc = lay_out(v, error);
	if (!rc)
		rc = weir_volume_pool_watch(v, error);
	return rc;
}

/* With the lock held. Return: why the volume will not open, or 0. */
static int find_obstacle(struct weir_volume *v, struct weir_error *error)
{
	struct weir_volume_pool *p = v->pool;

	if (v->stops && __atomic_load_n(v->stops, __ATOMIC_ACQUIRE))
		return weir_error_set(error, -ECANCELED, "volume %s: the donor stops", p->name);
	if (v->status == -ESTALE)
		return weir_error_set(error, -ESTALE, "volume %s: the claim is over", p->name);
	if (v->status)
		return weir_error_set(error, v->status, "volume %s has lost data: a group has no "
				      "donor left; see 'weir pool status'", p->name);
	for (unsigned int i = 0; i < v->nr_targets; i++) {
		if (v->targets[i].address && v->targets[i].connect_status == -EKEYREJECTED)
			return weir_error_set(error, -EKEYREJECTED, "donor %s, %s: %s",
					      v->targets[i].id, v->targets[i].address,
					      v->targets[i].reason.text);
	}
	return p->refusal ? weir_error_set(error, p->refusal, "%s", p->reason.text) : 0;
}

static int explain_delay(struct weir_volume *v, struct weir_error *error)
{
	struct weir_extents_census census = weir_extents_census(&v->core);

	for (unsigned int i = 0; i < v->nr_targets; i++) {
		const struct weir_volume_target *target = &v->targets[i];

		if (target->address && target->connect_status)
			return weir_error_set(error, target->connect_status,
					      "volume %s: donor %s, %s: %s", v->pool->name,
					      target->id, target->address, target->reason.text);
	}
	return weir_error_set(error, -ETIMEDOUT,
			      "volume %s: %u of %u pieces have all copies, and there is no "
			      "progress: 'weir pool status' shows what is missing",
			      v->pool->name, census.whole, v->core.nr_extents);
}

/* With the lock held. Return: whether there is nothing to wait for. */
static bool is_ready(const struct weir_volume *v)
{
	return v->rebuild ? v->pool->is_rebuilt : v->pool->is_open;
}

/* How long an opening waits without progress. */
static uint64_t patience_ns(struct weir_volume *v)
{
	uint64_t ns;

	weir_volume_lock(v); /* the maintaining thread replaces the map */
	ns = 2 * v->options.timeout_ns + 3ull * v->pool->map->lease_ms * WEIR_NS_PER_MS;
	weir_volume_unlock(v);
	return ns;
}

/* Each change wakes. Progress of copies, and a donor's stop, are seen within a moment. */
int weir_volume_pool_wait_open(struct weir_volume *v, struct weir_error *error)
{
	struct weir_volume_pool *p = v->pool;
	uint64_t wait_ns = patience_ns(v), until_ns = 0, last = UINT64_MAX;
	bool is_done = false;
	int rc = 0;

	while (!is_done && !rc) {
		uint32_t seen = __atomic_load_n(&p->changed, __ATOMIC_SEQ_CST);
		uint64_t progress;

		weir_volume_lock(v);
		is_done = is_ready(v);
		progress = p->members.moves + v->core.copied + p->map->revision;
		if (progress != last)
			until_ns = weir_after_ns(weir_now_ns(), wait_ns);
		last = progress;
		rc = is_done ? 0 : find_obstacle(v, error);
		if (!is_done && !rc && weir_now_ns() >= until_ns)
			rc = explain_delay(v, error);
		weir_volume_unlock(v);
		if (!is_done && !rc)
			weir_volume_sleep(&p->changed, seen, weir_now_ns() + LOOK_NS);
	}
	return rc;
}

void weir_volume_pool_claim(struct weir_volume *v, uint64_t *lease, uint64_t *claimed)
{
	weir_volume_lock(v);
	*lease = v->pool->lease;
	*claimed = v->pool->claimed;
	weir_volume_unlock(v);
}

void weir_volume_pool_close(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;

	if (!p)
		return;
	weir_pool_client_close(p->client);
	weir_pool_client_close(p->reporter);
	free(p->map);
	free(p->fresh);
	free(p->scratch);
	free(p->group);
	free(p->copies);
	free(p->equal);
	free(p->groups);
	free(p);
}
