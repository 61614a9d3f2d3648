/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The donor: a process that lends memory to clients that prove a key.
 *
 * The donor's own thread handles connections, proofs, regions and messages. One-sided requests of
 * clients do not involve it.
 */
#ifndef WEIR_DONOR_H
#define WEIR_DONOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/key.h>
#include <weir/message.h>
#include <weir/region.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_donor;
struct weir_peer;

enum weir_log_level { WEIR_LOG_ERROR, WEIR_LOG_WARNING, WEIR_LOG_INFO, WEIR_LOG_DEBUG };

/* How to open a donor. Zero means the default in every field but the size and memory_bytes. */
struct weir_donor_options {
	size_t size; /* sizeof(struct weir_donor_options) */
	const char *listen; /* "addr", "addr:port", ":port"; default 127.0.0.1:7474. Port 0: any */
	/* use only this verbs device; NULL: the device of @listen, or the first by name */
	const char *device;
	/*
	 * Each key is a tenant with its own PD, region names and application state. Kept until
	 * close. Without keys, clients on loopback only.
	 */
	const struct weir_key *const *keys;
	unsigned int nr_keys;
	uint64_t memory_bytes; /* bytes lent in total; required */
	/*
	 * Most bytes per client; default memory_bytes. Regions that the client created, and that
	 * still exist, count. For a new named region, the donor also counts the regions that
	 * earlier clients of the same key left behind.
	 */
	uint64_t quota_bytes;
	unsigned int clients_max; /* default: key_clients_max for each key */
	/*
	 * How long a client with a broken connection may take to come back before the donor
	 * reclaims its regions; default 30,000. The donor does not wait for clients that close or
	 * die.
	 */
	unsigned int absence_ms;
	/*
	 * Silence of a client before the donor probes its host; default 600,000. A client that does
	 * not answer may take as long again to come back, and absence_ms at least.
	 */
	unsigned int keepalive_ms;
	bool no_huge_pages; /* use a sealed memfd instead, which softnic's clients map */
	/*
	 * Share of a processor, in percent, that the donor's thread may use while clients unload, 1
	 * to 100; default 50. Beyond that share, clients are told to write by RDMA.
	 */
	unsigned int unload_percent_max;

	/* The application's callbacks. All run in the donor's thread. Any may be NULL. */
	weir_message_fn *on_message;
	void (*on_join)(void *arg, struct weir_peer *peer); /* key proven, all regions accessible */
	/*
	 * its QPs are gone: none of its writes can still arrive; weir_peer_has_closed() tells a
	 * client that closed its session from one that died
	 */
	void (*on_leave)(void *arg, struct weir_peer *peer);
	/*
	 * @line: "EVENT[ KEY=VALUE...][: REASON]". A warning or an error has an id, such as
	 * id=W101, which docs/reference/errors.md explains.
	 */
	void (*on_log)(void *arg, enum weir_log_level level, const char *line);
	void *arg;

	/* most bytes of all regions of one key, the application's too; default memory_bytes */
	uint64_t key_bytes_max;
	unsigned int key_clients_max; /* clients of one key; default 64 */
	/*
	 * 1: take all memory from the system at once. Otherwise the system supplies pages when a
	 * region needs them, or kills the donor if it has none.
	 */
	unsigned int reserve;

	/*
	 * Tenants that weir_donor_keys_set() may number; default: one for each of @keys. With
	 * this, and without @keys, the donor admits nobody until it has keys.
	 */
	unsigned int tenants_max;
	/*
	 * A tenant has no key any more, and no client. Its clients' regions are gone; now the
	 * application destroys its own.
	 */
	void (*on_tenant_end)(void *arg, unsigned int tenant);
	uint64_t encryption; /* enum weir_encryption, for clients on other hosts */
	/* copied; NULL: another one each time, so no client can know it */
	const struct weir_identity *identity;
};

/**
 * weir_donor_open() - allocate memory, listen and start serving
 * @options: copied, except the keys
 * @donor: receives the donor
 * @error: may be NULL
 *
 * Memory is registered lazily. The caller owes a weir_donor_close().
 *
 * Context: Any thread.
 * Return: 0, or
 *	-EINVAL      an option is out of range;
 *	-E2BIG       an option that this library does not know;
 *	-ENODEV      no verbs device;
 *	-EADDRINUSE  another process listens at the address;
 *	-EPERM       without keys, only loopback addresses are allowed;
 *	-ENOMEM      too little memory or RLIMIT_MEMLOCK too low (@error says which, and the
 *	             remedy).
 */
int weir_donor_open(const struct weir_donor_options *options, struct weir_donor **donor,
		    struct weir_error *error);

/**
 * weir_donor_close() - disconnect all clients and free the memory
 *
 * The donor tells each client that it closes, waiting a second at most, then disconnects it;
 * on_leave runs for each. The sessions end with -ENOTCONN (options.on_down), which a donor that
 * dies never causes. Timers that are not due are dropped. Unanswered calls still need their
 * weir_reply().
 *
 * Context: Any thread outside callbacks.
 */
void weir_donor_close(struct weir_donor *donor);

/* Rights of the clients of a key. */
enum weir_right {
	WEIR_RIGHT_READ = 1, /* read memory; each key has this right */
	WEIR_RIGHT_WRITE = 2, /* write memory, and create regions without a name */
	WEIR_RIGHT_FILES = 4, /* the application's files; takes read and write */
	WEIR_RIGHT_REGIONS = 8, /* list and open named regions; with write, create their own */
	WEIR_RIGHT_ADMIN = 16, /* delete named regions of others */
	/*
	 * A pool's donors among themselves: delete memory of the pool's volumes that others made.
	 * Takes read, write and regions. Once a key has this right, that memory belongs to the
	 * key's tenant: other tenants neither make nor open regions with names of volumes.
	 */
	WEIR_RIGHT_POOL = 32,
};

#define WEIR_RIGHTS_ALL 31u /* all but WEIR_RIGHT_POOL */

/**
 * struct weir_donor_key - a key that a donor admits
 * @key: the key
 * @tenant: below options.tenants_max; keys of one tenant share its regions
 * @rights: of enum weir_right; 0: all
 * @bytes_max: most bytes of regions that clients of this key create; 0: no limit
 */
struct weir_donor_key {
	const struct weir_key *key;
	unsigned int tenant;
	unsigned int rights;
	uint64_t bytes_max;
};

/**
 * weir_donor_keys_set() - replace the keys of a running donor
 * @donor: opened with keys or with tenants_max
 * @keys: copied; all that the donor shall admit from now on
 * @nr_keys: their number; 0: nobody
 * @error: may be NULL
 *
 * A key that is not in @keys, or there with another tenant, rights or limit, is revoked: its
 * sessions end at once, and what only they held is zeroed. Sessions of all other keys go on. A
 * tenant whose last key is revoked ends: its regions are zeroed, and on_tenant_end runs.
 *
 * A client without the right to write is in a protection domain of its own: it reaches no memory
 * that is registered for writing, whatever rkey it learns.
 *
 * Context: Any thread outside callbacks. Waits for the donor's thread.
 * Return: 0, or -EINVAL (a tenant or rights out of range), -EEXIST (a key twice), -EPERM (the donor
 *	was opened without keys or tenants_max) or -ENOMEM; then nothing has changed.
 */
int weir_donor_keys_set(struct weir_donor *donor, const struct weir_donor_key *keys,
			unsigned int nr_keys, struct weir_error *error);

/**
 * weir_donor_limit() - change the total number of bytes to lend
 * @donor: the donor
 * @bytes: at most the memory_bytes given to weir_donor_open()
 *
 * If more than @bytes is lent already, that amount stays lent. The donor then asks clients that can
 * move their data (block devices with several donors) to return the excess. Returned memory goes to
 * the system at once; so does free memory that the donor had reserved.
 *
 * Context: Any thread.
 * Return: 0, or -EINVAL or -ENOMEM.
 */
int weir_donor_limit(struct weir_donor *donor, uint64_t bytes);

struct weir_donor_info {
	size_t size; /* bytes that the library has written */
	char device[64];
	char address[64]; /* address:port on which it listens */
	uint64_t incarnation;
	uint64_t memory_bytes, lent_bytes;
	unsigned int clients, regions;
	bool huge_pages;
	uint64_t joins, rejects, messages;
	/* writes that the donor's CPU copied, and writes that it refused */
	uint64_t unloaded, unload_refused;
	uint64_t unload_pauses; /* times that clients were told to stop unloading for a while */
	uint64_t limit_bytes; /* see weir_donor_limit(); lent_bytes may exceed it */
};

/*
 * Reads a donor's counters. One may lag behind another. @size: sizeof(*@info).
 * Context: any thread. Return: 0; -EINVAL @size is too small.
 */
int weir_donor_info(struct weir_donor *donor, struct weir_donor_info *info, size_t size);

/*
 * A peer as its key shows it. Context: the donor's thread, until on_leave returns. Return:
 *	weir_peer_tenant()  the tenant of the key that the peer proved: an index into options.keys
 *	                    at first; 0 without keys;
 *	weir_peer_rights()  of enum weir_right;
 *	weir_peer_is_revoked()  whether its key was revoked or changed: the reason, in on_leave;
 *	weir_peer_id()      a number, unique for the life of the donor;
 *	weir_peer_name()    its address, for logs;
 *	weir_peer_has_closed()  true in on_leave if the client has closed its session. Otherwise its
 *	                    process or host died, its link was lost, or the donor cut it off.
 */
unsigned int weir_peer_tenant(const struct weir_peer *peer);
unsigned int weir_peer_rights(const struct weir_peer *peer);
bool weir_peer_is_revoked(const struct weir_peer *peer);
uint64_t weir_peer_id(const struct weir_peer *peer);
const char *weir_peer_name(const struct weir_peer *peer);
bool weir_peer_has_closed(const struct weir_peer *peer);

/**
 * weir_donor_region_create() - take lent memory for the application's own use
 * @donor: the donor
 * @tenant: index of the key whose clients may access the region with @token: see
 *	weir_region_attach()
 * @length: bytes
 * @token: receives the region's token
 * @addr: receives the region's local address; zeroed
 *
 * The caller owes a weir_donor_region_destroy().
 *
 * Context: The donor's thread, or any thread before the first client.
 * Return: 0, or -ENOSPC (all memory is lent), -EDQUOT (key_bytes_max) or -ENOMEM.
 */
int weir_donor_region_create(struct weir_donor *donor, unsigned int tenant, uint64_t length,
			     struct weir_region_token *token, void **addr);
/*
 * Frees the region. Returns when no peer can access it any more. Context: as for
 * weir_donor_region_create().
 */
void weir_donor_region_destroy(struct weir_donor *donor, const struct weir_region_token *token);

/**
 * weir_donor_after() - run a function once in the donor's thread, for the application's timers
 * @delay_ms: the earliest time, from now
 *
 * Context: Any thread.
 * Return: 0, or -ENOMEM.
 */
int weir_donor_after(struct weir_donor *donor, unsigned int delay_ms, void (*fn)(void *arg),
		     void *arg);

#ifdef __cplusplus
}
#endif
#endif
