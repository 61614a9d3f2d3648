/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which donors lend the memory of a mount, and how often they hold each byte. */
#ifndef WEIR_APPS_FS_HOLDING_H
#define WEIR_APPS_FS_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/fs/place.h"
#include "core/pool/map.h"

/* @bytes: of the volume at this donor, copies included; @state: as 'weir pool donors' has it */
struct holding_donor {
	char name[WEIR_POOL_NAME_MAX], address[WEIR_POOL_NAME_MAX];
	const char *state;
	uint64_t bytes;
};

/**
 * struct holding - of a mount
 * @is_pool: the mount is of a pool's volume; otherwise the one donor has it all
 * @copies: of each byte
 * @donors: @nr of them
 */
struct holding {
	bool is_pool;
	unsigned int copies, nr;
	struct holding_donor donors[WEIR_POOL_DONORS_MAX];
};

/* Asks the pool's map, if the mount is of a pool. Return: 0, or an exit status after a message. */
int holding_find(const char *cmd, const struct fs_place *place, struct holding *holding);

#endif
