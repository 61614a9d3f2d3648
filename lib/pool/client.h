/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client's view of a pool: reads the map, waits for its next version, opens volumes, and reports
 * to the coordinator. Errors besides those named are the store's: see store.h. When the store does
 * not answer (-EHOSTUNREACH), a client goes on with the map that it has.
 *
 * Context of all: any thread, one at a time for each client. All may block, for a few seconds.
 */
#ifndef WEIR_LIB_POOL_CLIENT_H
#define WEIR_LIB_POOL_CLIENT_H

#include "core/pool/map.h"
#include "lib/pool/store.h"

struct weir_pool_client;

/**
 * weir_pool_client_open() - find a pool; contacts nobody yet
 * @pool: "etcd:http://h1:2379,h2:2379/NAME", "file:PATH", or NAME, also as "pool:NAME"
 * @client: receives the client; the caller owes a weir_pool_client_close()
 * @error: may be NULL
 *
 * A NAME stands for the line in the file NAME of the folder $WEIR_POOLS, or else of
 * ~/.config/weir/pools or /etc/weir/pools.
 *
 * Return: 0; -EINVAL; -ENOENT no such name or folder; -ENOMEM.
 */
int weir_pool_client_open(const char *pool, struct weir_pool_client **client,
			  struct weir_error *error);

/* Also closes the volume, if one is open. */
void weir_pool_client_close(struct weir_pool_client *client);

/* The store, for functions of store.h. */
struct weir_pool_store *weir_pool_client_store(struct weir_pool_client *client);

/**
 * weir_pool_client_read() - read the map
 * @client: the client
 * @map: receives the map; unchanged on failure
 * @error: may be NULL
 *
 * Return: 0; -ENOENT the pool does not exist; -EPROTO; -EPROTONOSUPPORT.
 */
int weir_pool_client_read(struct weir_pool_client *client, struct weir_pool_map *map,
			  struct weir_error *error);

/* Waits for a change after @map->revision. Return: 0; -ETIMEDOUT nothing has changed. */
int weir_pool_client_wait(struct weir_pool_client *client, const struct weir_pool_map *map,
			  unsigned int timeout_ms, struct weir_error *error);

/* Sleeps after a failure of the store: ever longer, until a weir_pool_client_read() succeeds. */
void weir_pool_client_pause(struct weir_pool_client *client);

/**
 * weir_pool_client_rest() - sleep until there is something to do
 * @client: the client
 * @map: as last read; its change ends the sleep
 * @is_silent: the store does not answer
 * @due_ns: ends the sleep, as does a third of a lease
 *
 * While the store is silent, and after a failure, it is a weir_pool_client_pause(): a wait for a
 * map that is gone would end at once.
 */
void weir_pool_client_rest(struct weir_pool_client *client, const struct weir_pool_map *map,
			   bool is_silent, uint64_t due_ns);

/**
 * weir_pool_client_report_failed() - tell the coordinator that a donor does not answer
 * @client: the client
 * @donor: the donor's name
 * @incarnation: the incarnation that does not answer
 * @error: may be NULL
 *
 * The coordinator takes this incarnation out of each group that can be read without it, and raises
 * the versions. A group that needs it waits for its return.
 *
 * Return: 0, also if somebody has reported it before.
 */
int weir_pool_client_report_failed(struct weir_pool_client *client, const char *donor,
				   uint64_t incarnation, struct weir_error *error);

/**
 * weir_pool_client_report_synced() - a SYNCING member has all data of the open volume
 * @client: the client
 * @group: number of the group
 * @donor: the member's name
 * @joined: since which version it is a member: a donor may leave a group and come back
 * @error: may be NULL
 *
 * Once each volume of the scheme that has data says so, the member becomes SERVING.
 */
int weir_pool_client_report_synced(struct weir_pool_client *client, uint16_t group,
				   const char *donor, uint64_t joined, struct weir_error *error);

/**
 * weir_pool_client_open_volume() - open a volume, for one client at a time
 * @client: the client
 * @volume: its name
 * @map: receives the map as it is after the volume was opened: the first write must use this map
 *	or a newer one
 * @error: may be NULL
 *
 * The client owes a weir_pool_client_keep() at least every third of @map->lease_ms. A donor that
 * rebuilds the volume gives way: its claim ends.
 *
 * Return: 0; -ENOENT no such pool or volume; -EBUSY another client has the volume open; -EAGAIN
 *	the volume is being opened or removed, or the groups are not made yet: too few
 *	donors, or no coordinator; try again.
 */
int weir_pool_client_open_volume(struct weir_pool_client *client, const char *volume,
				 struct weir_pool_map *map, struct weir_error *error);

/* The same for a donor that rebuilds the volume. -EBUSY: also another donor that does. */
int weir_pool_client_open_rebuild(struct weir_pool_client *client, const char *volume,
				  struct weir_pool_map *map, struct weir_error *error);

/*
 * The same for a donor that serves the files of the volume: it may take over from another, see
 * weir_pool_map_is_abandoned(). The two calls above refuse such a volume, and this refuses any
 * other: -EOPNOTSUPP.
 */
int weir_pool_client_open_files(struct weir_pool_client *client, const char *volume,
				struct weir_pool_map *map, struct weir_error *error);

/**
 * weir_pool_client_publish() - show where the files of a volume are served
 * @client: any client of the pool
 * @volume: name, address, server, server_incarnation and is_mounted, as mounts shall see them;
 *	server_claim: version of the claim's key
 * @lease: holds the claim
 * @error: may be NULL
 *
 * Return: 0; -EAGAIN or -ESTALE the claim is another now.
 */
int weir_pool_client_publish(struct weir_pool_client *client,
			     const struct weir_pool_volume *volume, uint64_t lease,
			     struct weir_error *error);

/* A mount does not reach the server of @volume, which has @claimed it: another donor may. */
int weir_pool_client_suspect(struct weir_pool_client *client, const char *volume,
			     uint64_t claimed, struct weir_error *error);

/* Return: whether no client had opened the volume before, so that it had no data. */
bool weir_pool_client_was_blank(const struct weir_pool_client *client);

/*
 * The epoch of the open volume: higher than that of any client that had the volume before. Its
 * lease, for functions of store.h.
 */
uint64_t weir_pool_client_epoch(const struct weir_pool_client *client);
uint64_t weir_pool_client_lease(const struct weir_pool_client *client);

/**
 * struct weir_pool_claim - a claim that a process hands to the next
 * @lease: holds the claim
 * @epoch, @claimed: versions of the claim's key, at first and now
 * @opened: version of the volume's key since then
 * @lease_ms: duration of the lease
 * @was_blank: the volume had no data when it was opened
 */
struct weir_pool_claim {
	uint64_t lease, epoch, claimed, opened;
	uint32_t lease_ms, was_blank;
};

/* Reads the claim on the open volume. */
void weir_pool_client_read_claim(const struct weir_pool_client *client,
				 struct weir_pool_claim *claim);

/*
 * Goes on with a claim of another process, which has ended. Contacts nobody: a
 * weir_pool_client_keep() tells whether it stands. Return: 0; -EINVAL.
 */
int weir_pool_client_resume(struct weir_pool_client *client, const char *volume,
			    const struct weir_pool_claim *claim, struct weir_error *error);

/* Forgets the claim, so that weir_pool_client_close() does not end it. */
void weir_pool_client_hand_over(struct weir_pool_client *client);

/*
 * Prolongs the claim on the open volume, or makes it again, if the lease is over and nobody has
 * opened the volume since. A donor that rebuilds makes none again. Return: 0; -ESTALE another
 * client has the volume, or had it: this one must write no more.
 */
int weir_pool_client_keep(struct weir_pool_client *client, struct weir_error *error);

/* The version of the claim's key, which changes when the claim is made again. */
uint64_t weir_pool_client_claimed(const struct weir_pool_client *client);

/**
 * weir_pool_client_confirm() - whether a claim stands
 * @client: any client of the pool
 * @volume: name of the volume
 * @claimed: version of the claim's key
 * @error: may be NULL
 *
 * Return: 0; -ESTALE another has claimed the volume; -EAGAIN nobody has a claim now.
 */
int weir_pool_client_confirm(struct weir_pool_client *client, const char *volume, uint64_t claimed,
			     struct weir_error *error);

/**
 * weir_pool_client_report_progress() - show how far new members of the open volume are
 * @client: the client
 * @percent: share of their data that is copied; 100: done, nothing is shown
 * @donor: the only donor with places to fill; NULL: any
 * @error: may be NULL
 */
int weir_pool_client_report_progress(struct weir_pool_client *client, unsigned int percent,
				     const char *donor, struct weir_error *error);

/**
 * weir_pool_client_report_wrong() - count reads of the open volume that found wrong bytes
 * @client: the client, which rebuilds
 * @donor: its memory had the wrong bytes
 * @incarnation: of that memory
 * @reads: how many more
 * @error: may be NULL
 *
 * Return: 0; -EAGAIN the claim is over: the bytes may be those of the next client.
 */
int weir_pool_client_report_wrong(struct weir_pool_client *client, const char *donor,
				  uint64_t incarnation, uint64_t reads, struct weir_error *error);

#endif
