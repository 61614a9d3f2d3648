/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The names that a pool's volumes give to their regions at the donors. */
#ifndef WEIR_LIB_VOLUME_REGION_NAME_H
#define WEIR_LIB_VOLUME_REGION_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <weir/region.h>

#include "core/volume/members.h"

/**
 * struct weir_volume_region_name - a copy of an extent
 * @pool, @volume: ids
 * @joined: of the member that holds the copy. A donor that leaves a group and returns does not find
 *	its old bytes
 * @extent: number of the extent
 */
struct weir_volume_region_name {
	uint64_t pool, volume, joined;
	uint32_t extent;
};

static inline void weir_volume_region_name_format(const struct weir_volume_region_name *name,
						  char text[static WEIR_REGION_NAME_MAX + 1])
{
	snprintf(text, WEIR_REGION_NAME_MAX + 1, WEIR_MEMBERS_REGION_NAME,
		 (unsigned long long)name->pool, (unsigned long long)name->volume, name->extent,
		 (unsigned long long)name->joined);
}

/* Return: whether @text is such a name. */
static inline bool weir_volume_region_name_parse(const char *text,
						 struct weir_volume_region_name *name)
{
	char again[WEIR_REGION_NAME_MAX + 1];
	unsigned long long pool, volume, joined;

	if (sscanf(text, WEIR_MEMBERS_REGION_NAME, &pool, &volume, &name->extent, &joined) != 4)
		return false;
	name->pool = pool;
	name->volume = volume;
	name->joined = joined;
	weir_volume_region_name_format(name, again);
	return !strcmp(text, again);
}

#endif
