/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_CLIENT_MEMORY_REGION_H
#define WEIR_LIB_CLIENT_MEMORY_REGION_H

#include <stdbool.h>
#include <weir/region.h>
#include "core/base/list.h"

/* Bits of an enum weir_hint with the heat of a place; those above are a request's class. */
#define WEIR_REGION_HINTS 3u

/**
 * struct weir_region - a range of a donor's memory that this session holds
 * @link: in the session's regions, guarded by its hold_lock
 * @session: the owner
 * @addr, @length, @rkey: of the range
 * @hold: the donor's number of the hold; 0: attached, nothing to give back
 * @read_only: writes are refused here, as at the donor
 * @exclusive: no other session holds the region
 * @hint: for requests without a hint; an enum weir_hint, atomic
 * @class_nr: of requests; an enum weir_class, atomic
 *
 * All else is immutable.
 */
struct weir_region {
	struct weir_list link;
	struct weir_session *session;
	uint64_t addr;
	uint64_t length;
	uint64_t hold;
	uint32_t rkey;
	bool read_only;
	bool exclusive;
	uint8_t hint;
	uint8_t class_nr;
};

/*
 * As weir_region_close(), but keeps the region if the donor does not answer. Return: 0, or an
 * errno; the region still exists if weir_call_is_unanswered().
 */
int weir_region_try_close(struct weir_region *region);

/**
 * weir_region_open_fenced() - open a named region in place of earlier holders
 * @session: the session
 * @name: the region's name
 * @epoch: of the opener; the highest wins
 * @region: receives the region
 * @error: may be NULL
 *
 * On return no request of a client that opened the region before can reach it, on the way or later.
 * A region handle of this session that was opened before has no use, either.
 *
 * Return: as weir_region_open(), with -EBUSY if a client of a later epoch has opened the region.
 */
int weir_region_open_fenced(struct weir_session *session, const char *name, uint64_t epoch,
			    struct weir_region **region, struct weir_error *error);

/* Frees a region whose donor is gone. */
void weir_region_forget(struct weir_region *region);

/* Frees the regions that the user has not closed: the donor notices the end of the session. */
void weir_regions_fini(struct weir_session *session);

#endif
