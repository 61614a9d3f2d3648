/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A volume over a list of donors: the core places copies where there is room. */
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/volume/donor_list.h"
#include "lib/volume/memory.h"
#include "lib/volume/target.h"

#define COPIES_DEFAULT 2u

static void check_target(struct weir_volume *v, uint8_t donor)
{
	bool is_new = weir_volume_target_adopt(&v->targets[donor]);
	enum weir_extents_donor_state state = weir_volume_target_state(&v->targets[donor]);

	weir_volume_lock(v);
	weir_borrow_session(&v->borrow, donor, state);
	weir_volume_unlock(v);
	if (is_new)
		weir_volume_memory_query_room(v, donor);
}

static void maintain(struct weir_volume *v)
{
	for (unsigned int i = 0; i < v->nr_targets; i++)
		check_target(v, (uint8_t)i);
	weir_volume_memory_round(v, WEIR_BORROW_FORGET, WEIR_BORROW_RETRY, NULL);
}

/* A copy that missed a write is replaced. */
static enum weir_volume_fate fate_of_copy(struct weir_volume *v, uint32_t extent, uint8_t slot)
{
	(void)v;
	(void)extent;
	(void)slot;
	return WEIR_VOLUME_IS_OUT;
}

/* No earlier client has left copies. */
static bool is_equal(struct weir_volume *v, uint32_t extent)
{
	(void)v;
	(void)extent;
	return true;
}

static bool may_come(struct weir_volume *v, uint32_t extent)
{
	return !weir_extents_is_lost(&v->core, extent);
}

/* The donor's state tells. */
static void suspect(struct weir_volume *v, uint32_t extent, uint8_t slot)
{
	(void)v;
	(void)extent;
	(void)slot;
}

static void stop(struct weir_volume *v)
{
	(void)v;
}

/* No other client has the memory. */
static bool is_certain(struct weir_volume *v, uint64_t since_ns)
{
	(void)v;
	(void)since_ns;
	return true;
}

const struct weir_volume_layout weir_volume_donor_list = {
	.maintain = maintain,
	.fate_of_copy = fate_of_copy,
	.is_equal = is_equal,
	.may_come = may_come,
	.suspect = suspect,
	.is_certain = is_certain,
	.stop = stop,
};

static int check_donors(const struct weir_volume_options *o, struct weir_error *error)
{
	if (!o->donors || o->nr_donors < 1 || o->nr_donors > WEIR_VOLUME_DONORS_MAX)
		return weir_error_set(error, -EINVAL, "a volume with %u donors: name 1 to %d",
				      o->nr_donors, WEIR_VOLUME_DONORS_MAX);
	for (unsigned int i = 0; i < o->nr_donors; i++) {
		for (unsigned int j = 0; j < i; j++) {
			if (!strcmp(o->donors[i], o->donors[j]))
				return weir_error_set(error, -EINVAL,
						      "%s is named twice: two copies there would "
						      "be lost together",
						      o->donors[i]);
		}
	}
	return 0;
}

int weir_volume_donor_list_check(struct weir_volume_options *o, struct weir_error *error)
{
	int rc = check_donors(o, error);

	if (rc)
		return rc;
	if (!o->copies)
		o->copies = o->nr_donors < COPIES_DEFAULT ? o->nr_donors : COPIES_DEFAULT;
	if (!o->bytes)
		return weir_error_set(error, -EINVAL, "a volume of 0 bytes: set options.bytes");
	if (o->copies > WEIR_VOLUME_COPIES_MAX || o->copies > o->nr_donors)
		return weir_error_set(error, -EINVAL,
				      "%u copies at %u donors: at most %d, each at another donor",
				      o->copies, o->nr_donors, WEIR_VOLUME_COPIES_MAX);
	return 0;
}

static int open_targets(struct weir_volume *v, struct weir_error *error)
{
	int rc = 0;

	for (unsigned int i = 0; !rc && i < v->options.nr_donors; i++) {
		struct weir_volume_target *target = &v->targets[i];

		target->volume = v;
		target->address = strdup(v->options.donors[i]);
		if (!target->address)
			return weir_error_set(error, -ENOMEM, "out of memory");
		v->nr_targets++;
		rc = weir_volume_target_open(target, error);
	}
	return rc;
}

static int borrow_memory(struct weir_volume *v, struct weir_error *error)
{
	struct weir_error reason = { "" };
	struct weir_extents_census census;
	uint8_t donor;
	int rc = 0;

	for (unsigned int i = 0; !rc && i < v->nr_targets; i++) {
		weir_borrow_session(&v->borrow, (uint8_t)i, WEIR_EXTENTS_DONOR_UP);
		rc = weir_volume_memory_query_room(v, (uint8_t)i);
		if (rc)
			return weir_error_set(error, rc, "%s does not say how much it lends: %s",
					      v->targets[i].address, weir_strerror(rc));
	}
	weir_volume_memory_round(v, WEIR_BORROW_TAKE, WEIR_BORROW_TAKE, &reason);
	if (!v->borrow.is_short)
		return 0;
	census = weir_extents_census(&v->core);
	donor = weir_borrow_scarcest(&v->borrow);
	return weir_error_set(error, -ENOSPC,
			      "the donors lend too little: %u of %u pieces of %llu MiB have all "
			      "copies; %s offered %llu MiB. %s",
			      census.whole, v->core.nr_extents,
			      (unsigned long long)weir_volume_extent_bytes(v) >> 20,
			      v->targets[donor].address,
			      (unsigned long long)v->borrow.donor[donor].room_bytes >> 20,
			      reason.text);
}

int weir_volume_donor_list_open(struct weir_volume *v, struct weir_error *error)
{
	int rc = open_targets(v, error);

	if (rc)
		return rc;
	rc = weir_volume_memory_init(v);
	if (rc)
		return weir_error_set(error, rc, "no memory for a volume of %llu bytes",
				      (unsigned long long)v->bytes);
	return borrow_memory(v, error);
}
