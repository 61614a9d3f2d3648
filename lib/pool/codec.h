/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The keys of a pool as JSON texts: from a listing to a map, and from parts of a map to values. */
#ifndef WEIR_LIB_POOL_CODEC_H
#define WEIR_LIB_POOL_CODEC_H

#include "core/pool/map.h"
#include "lib/pool/store.h"

/**
 * weir_pool_codec_read() - make a map of a listing
 * @listing: all keys of a pool
 * @name: the pool's name
 * @map: receives the map; undefined on failure
 * @error: may be NULL
 *
 * Return: 0; -ENOENT the pool does not exist; -EPROTONOSUPPORT another format; -EPROTO a damaged
 *	key, which @error names.
 */
int weir_pool_codec_read(const struct weir_pool_listing *listing, const char *name,
			 struct weir_pool_map *map, struct weir_error *error);

/* Values. The caller frees the text; NULL: no memory. */
char *weir_pool_codec_pool(const struct weir_pool_map *map);
char *weir_pool_codec_donor(const struct weir_pool_donor *donor);
char *weir_pool_codec_table(const struct weir_pool_table *table);
char *weir_pool_codec_group(const struct weir_pool_map *map, const struct weir_pool_group *group);
char *weir_pool_codec_volume(const struct weir_pool_volume *volume);
/* Of the leader: {"donor"}. Of a report that a donor failed: {"incarnation", "by"}. */
char *weir_pool_codec_leader(const char *donor);
char *weir_pool_codec_failed(uint64_t incarnation, const char *by);
/*
 * Of a donor's wrong bytes: {"incarnation", "reads"}. @old: the value so far, or NULL; another
 * incarnation's does not count.
 */
char *weir_pool_codec_wrong(const char *old, uint64_t incarnation, uint64_t reads);
/* Of a server of files: {"donor", "incarnation", "address", "claim",
 * "mounted"}. Of a mount that does not reach it: {"claim", "by"} */
char *weir_pool_codec_server(const struct weir_pool_volume *volume);
char *weir_pool_codec_suspect(uint64_t claim, const char *by);
/* Of a claim: {"by", "rebuilds"}. Of progress: {"percent", "donor"}; @donor: may be NULL */
char *weir_pool_codec_holder(const char *by, bool rebuilds);
char *weir_pool_codec_progress(unsigned int percent, const char *donor);

/**
 * weir_pool_codec_synced() - add a member to the value of synced/VOLUME
 * @old: the value so far, or NULL
 * @group: number of the group
 * @donor: its name
 * @joined: since which version it is a member
 *
 * Return: the new value, as above.
 */
char *weir_pool_codec_synced(const char *old, uint16_t group, const char *donor, uint64_t joined);

#endif
