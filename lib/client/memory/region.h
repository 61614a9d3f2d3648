/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_CLIENT_MEMORY_REGION_H
#define WEIR_LIB_CLIENT_MEMORY_REGION_H

#include <stdbool.h>
#include <weir/region.h>
#include "core/base/list.h"

/**
 * struct weir_region - a range of a donor's memory that this session holds
 * @link: among the session's regions, guarded by its hold_lock
 * @session: whose
 * @addr, @length, @rkey: where it is
 * @hold: what the donor calls this holding; 0: attached, nothing to give back
 * @read_only: writes are refused here, as they would be there
 * @exclusive: nobody else holds it
 * @hint: of its requests that have none; an enum weir_hint, atomic
 *
 * Nothing else ever changes.
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
};

/* Forgets those that the user has not closed: the donor sees that the session is gone. */
void weir_regions_fini(struct weir_session *session);

#endif
