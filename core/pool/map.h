/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The map of a pool: a snapshot of the keys of one pool, as the store last had them.
 *
 *	pool			how the pool works
 *	donor/ID		a donor with a lease: address, memory, failure domain, incarnation,
 *				identity
 *	drain/ID		the operator wants this donor empty
 *	failed/ID		a client could not reach this incarnation of the donor
 *	group/N			version and members of a group
 *	volume/NAME		size, scheme and groups of a volume
 *	synced/VOLUME		members that have all data of the volume
 *	holder/VOLUME		the client that has the volume open, or the donor that rebuilds it
 *	progress/VOLUME		how much of the volume new members have
 *	server/VOLUME		the donor that serves the files of the volume, and has it open
 *	suspect/VOLUME		a mount that does not reach this server
 *	table/SCHEME		which groups are the table of a scheme
 *	leader			the donor that runs the coordinator
 *
 * Groups. A group is a set of donors in different failure domains that hold the same extents. The
 * groups of one scheme are a table. The coordinator makes a table once, when a volume needs one,
 * and changes the members of a group only when donors come, fail or leave. So the map grows with
 * donors, and never with data.
 *
 * Versions. Each change of a group's members raises its version by one: the epoch of the group. A
 * client that acts on an older version must read the map again.
 *
 * Members.
 *
 *	SYNCING --- each volume has reported its data there ---> SERVING
 *	   |                                                        |
 *	   +------ its donor failed, or is another incarnation -----+--> OUT
 *
 * A SERVING member has each completed write. A SYNCING member gets all new writes, and lacks some
 * earlier data. An OUT member gets nothing, and no client reads it. A write is done when every
 * SERVING and SYNCING member has it, or has become OUT in a newer version of the map.
 *
 * An incarnation is one memory. A donor that restarts is another incarnation: zeroed, with new
 * keys. So an incarnation that is OUT stays OUT.
 *
 * Storage is the caller's. The host serialises calls on one map.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_POOL_MAP_H
#define WEIR_CORE_POOL_MAP_H

#include "core/base/platform.h"

#define WEIR_POOL_NAME_MAX 64u /* bytes of a name, its NUL included */
#define WEIR_POOL_IDENTITY 32u /* bytes of a public key */
#define WEIR_POOL_DONORS_MAX 64u
#define WEIR_POOL_GROUPS_MAX 1024u /* of all tables */
#define WEIR_POOL_VOLUMES_MAX 128u
#define WEIR_POOL_TABLES_MAX 8u /* schemes in use */
#define WEIR_POOL_WIDTH_MAX 8u
#define WEIR_POOL_MEMBERS_MAX (2 * WEIR_POOL_WIDTH_MAX) /* while members are replaced */
#define WEIR_POOL_COPIES_MAX 4u
#define WEIR_POOL_NO_DONOR UINT16_MAX
#define WEIR_POOL_SYNCED_WORDS (WEIR_POOL_VOLUMES_MAX / 64)

/**
 * struct weir_pool_scheme - how a group protects an extent
 * @data: members that are enough to read: 1 for copies, k for a code k+r
 * @spare: members that may be lost: copies - 1, or r
 */
struct weir_pool_scheme {
	uint8_t data, spare;
};

/* The number of members of a whole group. */
static inline uint8_t weir_pool_width(struct weir_pool_scheme scheme)
{
	return scheme.data + scheme.spare;
}

/**
 * weir_pool_scheme_parse() - read "copies=2" or "code=4+2"
 * @text: the scheme
 * @scheme: receives it
 *
 * Return: 0; -EINVAL if @text is no scheme; -ERANGE if it has too many copies or members.
 */
int weir_pool_scheme_parse(const char *text, struct weir_pool_scheme *scheme);

struct weir_pool_scheme_text {
	char text[16];
};

struct weir_pool_scheme_text weir_pool_scheme_format(struct weir_pool_scheme scheme);

enum weir_pool_member_state {
	WEIR_POOL_SERVING,
	WEIR_POOL_SYNCING,
	WEIR_POOL_OUT,
};

/* "serving", "syncing" and "out". */
extern const char *const weir_pool_member_states[3];

/**
 * struct weir_pool_member - a donor's part in a group
 * @donor: index in the map's donors; valid for this snapshot only
 * @shard: 0 to width - 1: the part of a code that it holds; each copy has one, too
 * @state: an enum weir_pool_member_state
 * @synced: a bit for each volume that has data and has reported it there, by its index in the map;
 *	from the keys synced/VOLUME
 * @incarnation: the donor's, when it became a member
 * @joined: the group's version that made it a member; tells this membership from an earlier one
 */
struct weir_pool_member {
	uint16_t donor;
	uint8_t shard;
	uint8_t state;
	uint64_t incarnation, joined;
	uint64_t synced[WEIR_POOL_SYNCED_WORDS];
};

/**
 * struct weir_pool_group - a group
 * @version: the epoch; 0: the group does not exist
 * @stored: the key's version in the store
 * @lean_ms: wall clock since which it lacks serving members; 0: it lacks none
 * @scheme: of its table
 * @nr_members: members in use
 * @member: at most one of each shard is SERVING, and one SYNCING
 */
struct weir_pool_group {
	uint64_t version, stored, lean_ms;
	struct weir_pool_scheme scheme;
	uint8_t nr_members;
	struct weir_pool_member member[WEIR_POOL_MEMBERS_MAX];
};

/**
 * struct weir_pool_donor - a donor that is registered, or that a group names
 * @id: its name in the pool, kept over restarts
 * @address: "addr:port" for clients; empty unless registered
 * @domain: its failure domain, such as a rack
 * @bytes: memory that it lends
 * @incarnation: current incarnation; 0: not registered, its lease is over
 * @identity: the public key that clients must find at @address, if @has_identity
 * @stored: version of its key
 * @failed: incarnation that a client reported; 0: none
 * @failed_stored: version of that report
 * @wrong_reads: reads of donors that rebuilt, in which this incarnation's memory had wrong bytes
 * @is_draining: the operator wants it empty
 */
struct weir_pool_donor {
	char id[WEIR_POOL_NAME_MAX];
	char address[WEIR_POOL_NAME_MAX];
	char domain[WEIR_POOL_NAME_MAX];
	uint64_t bytes, incarnation, stored;
	uint64_t failed, failed_stored, wrong_reads;
	uint8_t identity[WEIR_POOL_IDENTITY];
	bool has_identity, is_draining;
};

/**
 * struct weir_pool_volume - a volume
 * @name: its name
 * @id: random; a volume made again under the same name has another
 * @bytes: its size
 * @extent_bytes: bytes of an extent
 * @scheme: its table
 * @stored: version of its key
 * @is_blank: no client has opened it for writing, so that no member lacks data
 * @holder: version of its claim's key; 0: nobody has it open
 * @is_rebuilding: the claim is a donor's, which gives way to a client
 * @progress: percent of its data that new members have, while somebody fills them
 * @filled: index of the donor whose places are filled, or WEIR_POOL_NO_DONOR: all
 * @is_files: it holds files: only a donor that serves them may open it
 * @is_mounted: the server of its files has mounts
 * @address: where the server of its files listens; empty: there is none
 * @server, @server_incarnation: that donor; @server_claim: version of its claim when it said so;
 *	@server_stored: version of the key that says so
 * @suspect: version of the claim of a server that a mount does not reach; 0: none
 */
struct weir_pool_volume {
	char name[WEIR_POOL_NAME_MAX];
	uint64_t id, bytes, extent_bytes, stored;
	struct weir_pool_scheme scheme;
	bool is_blank, is_rebuilding;
	uint8_t progress;
	uint16_t filled;
	uint64_t holder;
	bool is_files, is_mounted;
	char address[WEIR_POOL_NAME_MAX], server[WEIR_POOL_NAME_MAX];
	uint64_t server_incarnation, server_claim, server_stored, suspect;
};

/**
 * struct weir_pool_table - the groups of one scheme
 * @scheme: the scheme
 * @first: number of the first group
 * @count: groups; they exist once each has a version
 */
struct weir_pool_table {
	struct weir_pool_scheme scheme;
	uint16_t first, count;
};

/**
 * struct weir_pool_map - a snapshot
 * @name: the pool's name
 * @id: random; tells a pool from another of the same name
 * @stored: version of the pool's key; 0: there is no pool
 * @revision: of the store at the snapshot
 * @lease_ms: how long a silent donor stays a member
 * @replace_ms: how long an OUT member's place waits for its donor, before another donor gets it
 * @table_groups: groups of a new table
 * @donor: @nr_donors in use
 * @table: @nr_tables in use
 * @group: by number; those of the tables exist
 * @volume: @nr_volumes in use
 * @leader: index of the coordinator's donor, or WEIR_POOL_NO_DONOR
 * @leader_stored: version of the leader's key; 0: nobody leads
 */
struct weir_pool_map {
	char name[WEIR_POOL_NAME_MAX];
	uint64_t id, stored, revision;
	uint32_t lease_ms, replace_ms;
	uint16_t table_groups;
	uint16_t nr_donors, nr_tables, nr_volumes;
	uint16_t leader;
	uint64_t leader_stored;
	struct weir_pool_donor donor[WEIR_POOL_DONORS_MAX];
	struct weir_pool_table table[WEIR_POOL_TABLES_MAX];
	struct weir_pool_group group[WEIR_POOL_GROUPS_MAX];
	struct weir_pool_volume volume[WEIR_POOL_VOLUMES_MAX];
};

/* Empties a map. */
void weir_pool_map_init(struct weir_pool_map *map);

/* Return: whether @name can be that of a donor, domain or volume: A-Z a-z 0-9 . _ - : [ ] */
bool weir_pool_map_is_name(const char *name);

/**
 * weir_pool_map_donor() - find a donor by name
 * @map: the map
 * @id: the donor's name
 *
 * Return: its index, or WEIR_POOL_NO_DONOR.
 */
uint16_t weir_pool_map_donor(const struct weir_pool_map *map, const char *id);

/* The same, and adds a donor that the map lacks. WEIR_POOL_NO_DONOR: too many, or a bad name. */
uint16_t weir_pool_map_add_donor(struct weir_pool_map *map, const char *id);

/* Return: the volume of this name, or NULL. */
const struct weir_pool_volume *weir_pool_map_volume(const struct weir_pool_map *map,
						    const char *name);

/*
 * Return: whether another donor may serve the files of a volume although one has claimed it: that
 * one has ended or been reported, or a mount does not reach it.
 */
bool weir_pool_map_is_abandoned(const struct weir_pool_map *map,
				const struct weir_pool_volume *volume);

/* Return: whether mounts can use the files of a volume at @volume->address. */
bool weir_pool_map_is_served(const struct weir_pool_volume *volume);

/* Return: the table of a scheme, or NULL. */
const struct weir_pool_table *weir_pool_map_table(const struct weir_pool_map *map,
						  struct weir_pool_scheme scheme);

/* Return: the end of the last table: all groups have lower numbers. */
uint16_t weir_pool_map_groups(const struct weir_pool_map *map);

/* Return: whether all groups of the scheme's table exist, so that its volumes can be used. */
bool weir_pool_map_is_ready(const struct weir_pool_map *map, struct weir_pool_scheme scheme);

/**
 * weir_pool_map_group() - the group of an extent
 * @map: a map with a table of the volume's scheme
 * @volume: the volume
 * @extent: number of the extent
 *
 * Depends on the volume's id and the table's size only, and so never changes. Of any run of extents
 * as long as the table that begins at a multiple of its length, each group holds one.
 *
 * Return: number of the group.
 */
uint16_t weir_pool_map_group(const struct weir_pool_map *map,
			     const struct weir_pool_volume *volume, uint64_t extent);

/* Return: whether the member's donor is registered as the incarnation that the group knows. */
bool weir_pool_map_is_present(const struct weir_pool_map *map,
			      const struct weir_pool_member *member);

/* Return: whether a volume, by its index in the map, has reported its data at the member. */
static inline bool weir_pool_member_is_synced(const struct weir_pool_member *member,
					      uint16_t volume)
{
	return member->synced[volume / 64] >> volume % 64 & 1;
}

static inline void weir_pool_member_set_synced(struct weir_pool_member *member, uint16_t volume)
{
	member->synced[volume / 64] |= 1ull << volume % 64;
}

/* Return: the number of members in this state. */
uint8_t weir_pool_group_count(const struct weir_pool_group *group,
			      enum weir_pool_member_state state);

/* Return: whether each shard has a SERVING member. */
bool weir_pool_group_is_whole(const struct weir_pool_group *group);

/* Return: the number of registered donors, or of their failure domains. */
uint16_t weir_pool_map_count_donors(const struct weir_pool_map *map);
uint16_t weir_pool_map_count_domains(const struct weir_pool_map *map);

/*
 * Return: whether a donor may take the leader's key, as the map shows it: nobody leads, or the
 * leader's incarnation is reported as failed, and the donor's is not. A leader that was reported by
 * mistake makes no further change: each needs the key as the leader has put it.
 */
bool weir_pool_map_may_lead(const struct weir_pool_map *map, uint16_t donor);

/* Return: whether an incarnation is OUT of a group, or reported as failed. */
bool weir_pool_map_is_outcast(const struct weir_pool_map *map, uint16_t donor,
			      uint64_t incarnation);

/* Return: whether an incarnation is a SERVING member of a group that still has its data. */
bool weir_pool_map_is_serving(const struct weir_pool_map *map, uint16_t donor,
			      uint64_t incarnation);

/**
 * weir_pool_map_may_serve() - whether a member serves, or may serve without a further report
 * @map: the map as it was after the volume was opened, or newer
 * @member: a member of a group of the volume's scheme
 * @volume: the volume, in @map
 * @was_blank: the volume had no data when it was opened
 *
 * A client that opens a volume gives such a member all data before the first write, and each write
 * must reach it. A member that was reported before the opening may be promoted at any time. So may
 * each member if the volume was blank: the coordinator may have read the map before the opening.
 * Any other member needs a report of this client, because a report demands the claim.
 */
bool weir_pool_map_may_serve(const struct weir_pool_map *map,
			     const struct weir_pool_member *member,
			     const struct weir_pool_volume *volume, bool was_blank);

/**
 * weir_pool_map_may_restart() - whether a donor should begin another incarnation
 * @map: the map, of any age
 * @donor: its index
 * @incarnation: the incarnation of its memory
 *
 * An incarnation that is OUT of a group can serve that group no more. The coordinator takes it out
 * of all groups that can be read without it, one after another, and promotes it nowhere. So two
 * donors that start again at the same time cannot take the last copies of a group with them.
 *
 * A report alone is not enough for a SYNCING member: the coordinator may promote it from a map that
 * is older than the report. It makes the member OUT after the next read.
 *
 * Return: true if the incarnation is OUT somewhere, or reported as failed and SYNCING nowhere; and
 *	serves nowhere.
 */
bool weir_pool_map_may_restart(const struct weir_pool_map *map, uint16_t donor,
			       uint64_t incarnation);

/* Return: whether another member is SYNCING to take the shard of member @index. */
bool weir_pool_group_has_successor(const struct weir_pool_group *group, uint8_t index);

/* Return: whether a group has fewer SERVING members than are needed to read it. */
bool weir_pool_group_is_lost(const struct weir_pool_group *group);

#endif
