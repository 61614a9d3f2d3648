/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/secret.h"
#include "lib/donor/conn.h"
#include "lib/donor/donor.h"
#include "lib/donor/keyring/keyring.h"

#define RIGHTS_FILES (WEIR_RIGHT_FILES | WEIR_RIGHT_READ | WEIR_RIGHT_WRITE)
#define RIGHTS_POOL (WEIR_RIGHT_POOL | WEIR_RIGHT_READ | WEIR_RIGHT_WRITE | WEIR_RIGHT_REGIONS)
#define RIGHTS_KNOWN (WEIR_RIGHTS_ALL | WEIR_RIGHT_POOL)

static struct weir_donor_secret *secret_of(struct weir_list *link)
{
	return weir_list_entry(link, struct weir_donor_secret, link);
}

static struct weir_donor_secret *find_in(const struct weir_list *list, uint64_t key_id)
{
	struct weir_list *link;

	for (link = list->next; link != list; link = link->next)
		if (secret_of(link)->key_id == key_id)
			return secret_of(link);
	return NULL;
}

struct weir_donor_secret *weir_keyring_find(const struct weir_donor *donor, uint64_t key_id)
{
	return find_in(&donor->secrets, key_id);
}

/* Return: 0, after adding a copy of a key to a list; -EINVAL; -EEXIST; -ENOMEM. */
static int add_secret(struct weir_list *list, const struct weir_donor_key *given,
		      struct weir_error *error)
{
	unsigned int rights = given->rights ? given->rights : WEIR_RIGHTS_ALL;
	struct weir_donor_secret *secret;

	if (rights & ~RIGHTS_KNOWN || !(rights & WEIR_RIGHT_READ))
		return weir_error_set(error, -EINVAL, "rights %#x: a key may at least read",
				      rights);
	if (rights & WEIR_RIGHT_FILES && (rights & RIGHTS_FILES) != RIGHTS_FILES)
		return weir_error_set(error, -EINVAL, "the right to files takes read and write");
	if (rights & WEIR_RIGHT_POOL && (rights & RIGHTS_POOL) != RIGHTS_POOL)
		return weir_error_set(error, -EINVAL,
				      "the right to act for a pool takes read, write and regions");
	if (find_in(list, weir_key_id(given->key)))
		return weir_error_set(error, -EEXIST, "the same key is given twice");
	secret = weir_secret_alloc(sizeof(*secret));
	if (!secret)
		return weir_error_set(error, -ENOMEM, "out of memory");
	if (given->key)
		secret->key = *given->key;
	secret->key_id = weir_key_id(given->key);
	secret->tenant = given->tenant;
	secret->rights = rights;
	secret->budget.bytes_max = given->bytes_max ? given->bytes_max : UINT64_MAX;
	secret->refs = 1;
	weir_list_add_tail(list, &secret->link);
	weir_secret_forget_registers();
	return 0;
}

static void free_list(struct weir_list *list)
{
	while (!weir_list_is_empty(list)) {
		struct weir_donor_secret *secret = secret_of(list->next);

		weir_list_del(&secret->link);
		weir_secret_free(secret);
	}
}

int weir_keyring_init(struct weir_donor *donor, struct weir_error *error)
{
	unsigned int nr = weir_donor_has_keys(donor) ? donor->options.nr_keys : 1;
	int rc = 0;

	for (unsigned int i = 0; i < nr && !rc; i++) {
		struct weir_donor_key key = { .tenant = i };

		if (donor->options.nr_keys)
			key.key = donor->options.keys[i];
		rc = add_secret(&donor->secrets, &key, error);
		donor->tenants[i].has_keys = true;
	}
	return rc;
}

void weir_keyring_fini(struct weir_donor *donor)
{
	free_list(&donor->secrets);
}

struct weir_donor_secret *weir_keyring_get(struct weir_donor_secret *secret)
{
	secret->refs++;
	return secret;
}

void weir_keyring_put(struct weir_donor *donor, struct weir_donor_secret *secret)
{
	if (!secret || --secret->refs)
		return;
	pthread_mutex_lock(&donor->lock);
	weir_region_table_forget_budget(&donor->region_table, &secret->budget);
	pthread_mutex_unlock(&donor->lock);
	weir_secret_free(secret);
}

struct ibv_pd *weir_keyring_pd(const struct weir_donor *donor,
			       const struct weir_donor_secret *secret)
{
	const struct weir_region_key *key = &donor->keys[secret->tenant];

	return secret->rights & WEIR_RIGHT_WRITE ? key->pd : key->pd_read;
}

void weir_keyring_settle_tenant(struct weir_donor *donor, unsigned int tenant)
{
	struct weir_donor_tenant *t = &donor->tenants[tenant];
	struct weir_list *link;

	for (link = donor->secrets.next; link != &donor->secrets; link = link->next)
		if (secret_of(link)->tenant == tenant)
			return;
	if (!t->has_keys || t->nr_clients)
		return;
	t->has_keys = false;
	pthread_mutex_lock(&donor->lock);
	weir_region_table_purge(&donor->region_table, tenant);
	pthread_mutex_unlock(&donor->lock);
	weir_donor_log(donor, WEIR_LOG_INFO, "tenant=%u ended: it has no key any more", tenant);
	if (donor->options.on_tenant_end)
		donor->options.on_tenant_end(donor->options.arg, tenant);
}

/* ---- weir_donor_keys_set() ---- */

/* A caller that waits until the donor's thread has applied @secrets. */
struct keys_change {
	struct weir_donor *donor;
	struct weir_list secrets;
	pthread_mutex_t lock;
	pthread_cond_t is_done;
	bool done;
	int rc;
};

static bool are_equal(const struct weir_donor_secret *a, const struct weir_donor_secret *b)
{
	return a->key.length == b->key.length &&
	       !sodium_memcmp(a->key.bytes, b->key.bytes, a->key.length) &&
	       a->tenant == b->tenant && a->rights == b->rights &&
	       a->budget.bytes_max == b->budget.bytes_max;
}

/* Ends all connections of a key, proven or not, at the end of this turn. */
static void revoke(struct weir_donor *donor, struct weir_donor_secret *secret)
{
	struct weir_list *link;
	unsigned int nr = 0;

	weir_list_del(&secret->link);
	secret->is_revoked = true;
	for (link = donor->conns.next; link != &donor->conns; link = link->next) {
		struct weir_donor_conn *conn = weir_list_entry(link, struct weir_donor_conn, link);

		if (conn->secret != secret)
			continue;
		nr++;
		weir_donor_conn_kill(conn, "its key is revoked or has changed");
	}
	weir_donor_log(donor, WEIR_LOG_INFO, "revoked key=%016llx tenant=%u connections=%u",
		       (unsigned long long)secret->key_id, secret->tenant, nr);
	weir_keyring_put(donor, secret);
}

static int open_tenants(struct weir_donor *donor, const struct weir_list *secrets)
{
	struct weir_list *link;
	int rc = 0;

	for (link = secrets->next; link != secrets && !rc; link = link->next)
		rc = weir_donor_tenant_open(donor, secret_of(link)->tenant);
	return rc;
}

static void replace(struct weir_donor *donor, struct weir_list *secrets)
{
	struct weir_donor_secret *old, *same;
	struct weir_list *link, *next;

	for (link = donor->secrets.next; link != &donor->secrets; link = next) {
		next = link->next;
		old = secret_of(link);
		same = find_in(secrets, old->key_id);
		if (!same || !are_equal(old, same)) {
			revoke(donor, old);
			continue;
		}
		weir_list_del(&same->link);
		weir_secret_free(same);
	}
	while (!weir_list_is_empty(secrets)) {
		struct weir_donor_secret *new = secret_of(secrets->next);

		weir_list_del(&new->link);
		weir_list_add_tail(&donor->secrets, &new->link);
		donor->tenants[new->tenant].has_keys = true;
		weir_donor_log(donor, WEIR_LOG_DEBUG, "added key=%016llx tenant=%u rights=%#x",
			       (unsigned long long)new->key_id, new->tenant, new->rights);
	}
}

static void apply(void *arg)
{
	struct keys_change *change = arg;
	struct weir_donor *donor = change->donor;
	int rc = open_tenants(donor, &change->secrets);

	if (!rc) {
		replace(donor, &change->secrets);
		for (unsigned int i = 0; i < donor->nr_tenants; i++)
			weir_keyring_settle_tenant(donor, i);
	}
	pthread_mutex_lock(&change->lock);
	change->rc = rc;
	change->done = true;
	pthread_cond_signal(&change->is_done);
	pthread_mutex_unlock(&change->lock);
}

static int copy_keys(struct keys_change *change, const struct weir_donor_key *keys,
		     unsigned int nr_keys, struct weir_error *error)
{
	int rc = 0;

	for (unsigned int i = 0; i < nr_keys && !rc; i++) {
		if (!keys[i].key || keys[i].tenant >= change->donor->nr_tenants)
			return weir_error_set(error, -EINVAL,
					      "key %u: no key, or tenant %u of %u", i,
					      keys[i].tenant, change->donor->nr_tenants);
		rc = add_secret(&change->secrets, &keys[i], error);
	}
	return rc;
}

static int apply_and_wait(struct keys_change *change, struct weir_error *error)
{
	if (weir_donor_after(change->donor, 0, apply, change))
		return weir_error_set(error, -ENOMEM, "out of memory");
	pthread_mutex_lock(&change->lock);
	while (!change->done)
		pthread_cond_wait(&change->is_done, &change->lock);
	pthread_mutex_unlock(&change->lock);
	return change->rc ? weir_error_set(error, change->rc, "cannot allocate a PD: %s",
					   strerror(-change->rc)) :
			    0;
}

int weir_donor_keys_set(struct weir_donor *donor, const struct weir_donor_key *keys,
			unsigned int nr_keys, struct weir_error *error)
{
	struct keys_change change = { .donor = donor };
	int rc;

	if (!weir_donor_has_keys(donor))
		return weir_error_set(error, -EPERM, "a donor without keys takes none later");
	weir_list_init(&change.secrets);
	pthread_mutex_init(&change.lock, NULL);
	pthread_cond_init(&change.is_done, NULL);
	rc = copy_keys(&change, keys, nr_keys, error);
	if (!rc)
		rc = apply_and_wait(&change, error);
	free_list(&change.secrets);
	pthread_cond_destroy(&change.is_done);
	pthread_mutex_destroy(&change.lock);
	return rc;
}
