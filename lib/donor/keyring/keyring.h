/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The keys of a donor, each with its tenant, rights and quota. Several keys may open one tenant, so
 * that a new key can replace an old one while clients of both are connected.
 *
 * A key is in the donor's list, or revoked. A revoked key admits nobody. It is wiped and freed with
 * the last connection or client that proved it.
 *
 * Context of all but weir_donor_keys_set(): the donor's thread, or no thread of the donor runs.
 */
#ifndef WEIR_LIB_DONOR_KEYRING_KEYRING_H
#define WEIR_LIB_DONOR_KEYRING_KEYRING_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/donor.h>
#include "core/base/list.h"
#include "lib/conn/key.h"
#include "lib/donor/region_table.h"

struct wire_control_request;

/**
 * struct weir_donor_secret - one key
 * @link: in the donor's list; in none once revoked
 * @is_revoked: connections that proved it are ending
 * @budget: bytes of the regions that clients of this key created
 * @refs: the list's, and those of connections and clients
 */
struct weir_donor_secret {
	struct weir_list link;
	struct weir_key key;
	uint64_t key_id;
	unsigned int tenant, rights;
	struct weir_region_budget budget;
	unsigned int refs;
	bool is_revoked;
};

/* Adds the keys of the options, or the empty key. Return: 0; -ENOMEM; -EEXIST a key came twice. */
int weir_keyring_init(struct weir_donor *donor, struct weir_error *error);
/* After the last connection. */
void weir_keyring_fini(struct weir_donor *donor);

/* Return: the key with this id, or NULL. */
struct weir_donor_secret *weir_keyring_find(const struct weir_donor *donor, uint64_t key_id);

struct weir_donor_secret *weir_keyring_get(struct weir_donor_secret *secret);
/* @secret may be NULL. */
void weir_keyring_put(struct weir_donor *donor, struct weir_donor_secret *secret);

/* The PD for connections of a key. One that may not write reaches only what is registered there. */
struct ibv_pd *weir_keyring_pd(const struct weir_donor *donor,
			       const struct weir_donor_secret *secret);

/*
 * If a tenant has neither keys nor clients any more: frees its regions, which are zeroed, and
 * informs the application.
 */
void weir_keyring_settle_tenant(struct weir_donor *donor, unsigned int tenant);

/**
 * weir_keyring_check_request() - whether a key permits a request about regions
 * @secret: of the client
 * @name: of the region, if the request has one
 * @is_own: of a DELETE: the session created the region
 *
 * Return: 0; -EACCES.
 */
int weir_keyring_check_request(const struct weir_donor *donor,
			       const struct weir_donor_secret *secret,
			       const struct wire_control_request *request, const char *name,
			       bool is_own, struct weir_error *error);

#endif
