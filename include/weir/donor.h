/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The donor: a process that lends memory to those who prove a key.
 *
 * One thread of its own does everything: connections, proofs, regions, messages. One-sided
 * requests of clients take no part of it.
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

struct weir_donor_options {
	const char *listen; /* "addr", "addr:port", ":port"; default 127.0.0.1:7474. Port 0: any */
	const char *device; /* only this verbs device; NULL: that of @listen, or the first by
			     * name */
	const struct weir_key *const *keys; /* each is a tenant with its own PD, names and
					     * application state; kept until close. None: loopback
					     * only */
	unsigned int nr_keys;
	uint64_t memory_bytes; /* lent in all; required */
	uint64_t quota_bytes; /* one client at most: what it has created and still exists; default
			       * memory_bytes */
	unsigned int clients_max; /* default 64 */
	unsigned int absence_ms; /* how long a client whose connection broke may take to come back
				  * before what it holds is given back; default 30,000. One that
				  * closes or dies is not waited for */
	unsigned int keepalive_ms; /* without a word of a client until it is asked whether its host
				    * is there; who does not answer may take as long again to come
				    * back, absence_ms at least; default 600,000 */
	bool no_huge_pages; /* then it lies in a sealed memfd, which softnic's clients map */
	unsigned int unload_percent_max; /* of a processor that the donor's thread may take while
					  * clients unload, 1 to 100; beyond, they are told to write
					  * by RDMA; default 50 */

	/* The application's. All run in the donor's thread. Any may be NULL. */
	weir_message_fn *on_message;
	void (*on_join)(void *arg, struct weir_peer *peer); /* proven, all regions open to it */
	void (*on_leave)(void *arg, struct weir_peer *peer); /* its QPs are gone: no write of its
							      * can still arrive */
	void (*on_log)(void *arg, enum weir_log_level level, const char *line);
	void *arg;
};

/**
 * weir_donor_open() - take memory, register it lazily, listen, and start serving
 *
 * Return: 0; -EINVAL; -ENODEV; -EADDRINUSE; -EPERM no key but not loopback; -ENOMEM the memory or
 * RLIMIT_MEMLOCK is too small (the text says which and what to do).
 */
int weir_donor_open(const struct weir_donor_options *options, struct weir_donor **donor,
		    struct weir_error *error);

/*
 * Tells the clients, cuts them off (on_leave runs for each), gives the memory back. Timers that are
 * not due are dropped; calls that are not answered still want their weir_reply(). Not from a
 * callback.
 */
void weir_donor_close(struct weir_donor *donor);

/**
 * weir_donor_limit() - lend so much in all from now on, or as much as is lent already
 * @bytes: at most the memory_bytes that it was opened with
 *
 * Clients that can move what they keep here are asked to give back what is beyond: block devices of
 * several donors. What is given back goes to the system at once.
 *
 * Context: any thread. Return: 0; -EINVAL; -ENOMEM.
 */
int weir_donor_limit(struct weir_donor *donor, uint64_t bytes);

struct weir_donor_info {
	char device[64];
	char address[64]; /* address:port it listens on */
	uint64_t incarnation;
	uint64_t memory_bytes, lent_bytes;
	unsigned int clients, regions;
	uint64_t joins, rejects, messages;
	uint64_t unloaded, unload_refused; /* writes that the donor's CPU copied for clients, or did
					    * not */
	uint64_t unload_pauses; /* times that clients were told to unload nothing for a while */
	bool huge_pages;
};

void weir_donor_info(struct weir_donor *donor, struct weir_donor_info *info);

/* Which key a peer proved: index into options.keys; 0 without keys. */
unsigned int weir_peer_tenant(const struct weir_peer *peer);
/* Unique for the life of the donor. */
uint64_t weir_peer_id(const struct weir_peer *peer);
const char *weir_peer_name(const struct weir_peer *peer); /* address, for logs */

/**
 * weir_donor_region_create() - lent memory for the application's own use
 * @tenant: the clients of this key may reach it with @token (weir_region_attach())
 * @addr: receives where it lies here; zeroed
 *
 * Context: the donor's thread, or before the first client. Return: 0; -ENOSPC; -ENOMEM.
 */
int weir_donor_region_create(struct weir_donor *donor, unsigned int tenant, uint64_t length,
			     struct weir_region_token *token, void **addr);
/* Takes it back: returns when no peer can reach it any more. */
void weir_donor_region_destroy(struct weir_donor *donor, const struct weir_region_token *token);

/*
 * Runs @fn in the donor's thread, once, at least @delay_ms from now: for the application's timers.
 * Context: any thread. Return: 0; -ENOMEM.
 */
int weir_donor_after(struct weir_donor *donor, unsigned int delay_ms, void (*fn)(void *arg),
		     void *arg);

#ifdef __cplusplus
}
#endif
#endif
