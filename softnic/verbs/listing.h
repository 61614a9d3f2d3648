/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entries of protection domains, completion queues, SRQs and ids of the connection manager in the
 * public segment, for lists of objects. Nothing else depends on an entry: an object without one
 * works, and is in no list.
 */
#ifndef WEIR_SOFTNIC_VERBS_LISTING_H
#define WEIR_SOFTNIC_VERBS_LISTING_H

#include "softnic/shm/shared.h"

/** struct listing_place - the place of an object in the table; zeros: not listed */
struct listing_place {
	uint32_t index;
	uint32_t fork; /* the forks before; the child of a later one has another table */
};

/**
 * listing_begin() - list an object
 * @o: copied
 *
 * Does nothing while no device is open, or if the table is full.
 *
 * Context: Any thread. The caller serialises calls per object.
 */
void listing_begin(struct listing_place *l, const struct shared_object *o);

/** listing_end() - the object goes; does nothing if it is not listed */
void listing_end(struct listing_place *l);

/** listing_entry() - the entry, to be changed by its object's owner; NULL: not listed */
struct shared_object *listing_entry(const struct listing_place *l);

/** listing_add_users() - change the number of users by @n */
void listing_add_users(const struct listing_place *l, int32_t n);

#endif
