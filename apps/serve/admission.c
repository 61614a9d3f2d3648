/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/cmd.h"
#include "apps/serve/serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Clients of @key would refuse this donor. */
static bool is_of_another_donor(const struct weir_key *key, const struct weir_identity *identity)
{
	unsigned char public[32];

	if (!key->nr_donors)
		return false;
	if (identity)
		weir_identity_public(identity, public);
	for (unsigned int i = 0; identity && i < key->nr_donors; i++)
		if (!memcmp(key->donors[i], public, sizeof(public)))
			return false;
	return true;
}

int admission_load_keys(struct serve *serve)
{
	struct weir_error error;

	if (serve->identity_path &&
	    weir_identity_load(serve->identity_path, &serve->identity, &error))
		return failure(serve->cmd, "%s", error.text);
	for (unsigned int i = 0; i < serve->nr_keys; i++) {
		if (weir_key_load(serve->key_path[i], &serve->key[i], &error))
			return failure(serve->cmd, "%s", error.text);
		if (is_of_another_donor(serve->key[i], serve->identity))
			return failure(serve->cmd,
				       "%s names other donors, so its clients would refuse this "
				       "one: give --identity, or add the line of 'weir key "
				       "identity' to it",
				       serve->key_path[i]);
	}
	return 0;
}

bool admission_has_rights(const struct serve *serve)
{
	return serve->keys_path || (serve->membership.pool && serve->nr_keys > 1);
}

/* Before the donor listens: without a good list it would admit nobody, so it does not start. */
int admission_read_list(struct serve *serve, struct key_list **list)
{
	struct weir_error error;

	if (serve->keys_path && donor_keys_read(serve->keys_path, serve->membership.pool, list,
						&serve->answer.list, &error))
		return failure(serve->cmd, "%s", error.text);
	return EXIT_OK;
}

/* The keys of --key: the first is also the one that donors of a pool prove to each other. */
static struct key_set *make_fixed_set(const struct serve *serve)
{
	struct key_set *set = key_set_new(serve->nr_keys);

	for (unsigned int i = 0; set && i < set->nr; i++) {
		set->memory[i] = *serve->key[i];
		set->key[i] = (struct weir_donor_key){
			.key = &set->memory[i],
			.tenant = i,
			.rights = WEIR_RIGHTS_ALL | (i ? 0 : WEIR_RIGHT_POOL),
		};
		set->pool = &set->memory[0];
	}
	return set;
}

static int set_fixed_keys(struct serve *serve)
{
	struct weir_error error;

	if (!serve->nr_keys)
		return EXIT_OK;
	serve->key_set = make_fixed_set(serve);
	if (!serve->key_set)
		return failure(serve->cmd, "out of memory");
	if (admission_has_rights(serve) &&
	    weir_donor_keys_set(serve->donor, serve->key_set->key, serve->key_set->nr, &error))
		return failure(serve->cmd, "%s", error.text);
	return EXIT_OK;
}

/* @list: given, or NULL */
int admission_set_keys(struct serve *serve, struct key_list *list)
{
	struct weir_error error;

	if (!list)
		return set_fixed_keys(serve);
	donor_keys_fini(&serve->keys); /* of an earlier incarnation */
	if (donor_keys_set(&serve->keys, list, &serve->tenants, &serve->key_set, &error))
		return failure(serve->cmd, "%s", error.text);
	return EXIT_OK;
}

static int try_reload_list(struct serve *serve, struct weir_error *error)
{
	struct weir_error of_pool;
	struct key_set *set;
	int rc = donor_keys_reload(&serve->keys, serve->keys_path, serve->membership.pool,
				   &serve->tenants, &set, &serve->answer.list, error);

	if (!set) {
		log_event(WEIR_LOG_ERROR, "keys not reloaded, the old ones stay id=W301: %s",
			  error->text);
		return rc;
	}
	if (rc)
		log_event(WEIR_LOG_ERROR,
			  "keys not reloaded, but those not in the list are gone id=W301: %s",
			  error->text);
	key_set_put(serve->key_set);
	serve->key_set = set;
	if (!membership_set_keys(&serve->membership, set, &of_pool))
		return rc;
	log_event(WEIR_LOG_ERROR, "keys not reloaded in the pool id=W301: %s", of_pool.text);
	*error = rc ? *error : of_pool;
	return rc ? rc : -ENOMEM;
}

/* 'weir key' waits for the answer. */
void admission_reload(struct serve *serve)
{
	struct weir_error error = { "" };

	if (!serve->keys_path)
		return;
	memset(&serve->answer, 0, sizeof(serve->answer));
	serve->answer.status = try_reload_list(serve, &error);
	if (serve->answer.status)
		snprintf(serve->answer.reason, sizeof(serve->answer.reason), "%s", error.text);
	if (serve->page >= 0)
		donor_page_update(serve->page, serve->donor, &serve->answer);
}

void admission_warn_of_no_quota(const struct serve *serve)
{
	const struct key_set *set = serve->key_set;
	unsigned int without = 0;
	bool has_several = false;

	for (unsigned int i = 0; set && i < set->nr; i++) {
		has_several |= set->key[i].tenant != set->key[0].tenant;
		without += !set->key[i].bytes_max &&
			   !(serve->membership.pool && set->key[i].rights & WEIR_RIGHT_POOL);
	}
	if (without && has_several && !serve->key_memory)
		log_event(WEIR_LOG_WARNING,
			  "no quota keys=%u id=W207: each of these keys may take all free memory: "
			  "see --key-memory, and --quota of 'weir key add'",
			  without);
}
