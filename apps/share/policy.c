/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The policy that a configuration gives a process. */
#include "apps/share/config.h"

#include <string.h>

#define CONNECTIONS_DEFAULT 1024
#define PEERS_DEFAULT 64
#define MEMORY_DEFAULT (1ull << 30)

/* Whether @cgroup is @whole or below it. */
static bool is_within(const char *cgroup, const char *whole)
{
	size_t length = strlen(whole);

	while (length && whole[length - 1] == '/')
		length--;
	return !strncmp(cgroup, whole, length) && (!cgroup[length] || cgroup[length] == '/');
}

static const struct share_rule *rule_for(const struct share_config *config, uid_t uid,
					 const char *cgroup)
{
	const struct share_rule *user = NULL, *group = NULL;
	size_t i;

	for (i = 0; i < config->nr_rules; i++) {
		const struct share_rule *rule = &config->rules[i];

		if (rule->kind == RULE_USER && rule->uid == uid && !user)
			user = rule;
		if (rule->kind == RULE_CGROUP && is_within(cgroup, rule->cgroup) &&
		    (!group || strlen(rule->cgroup) > strlen(group->cgroup)))
			group = rule;
	}
	return group ? group : user;
}

/* A party is all processes under the same cgroup line, or else of the same user. */
static uint64_t group_id_of(const struct share_rule *rule, uid_t uid)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */
	const char *at;

	if (!rule || rule->kind == RULE_USER)
		return uid;
	for (at = rule->cgroup; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 1099511628211u;
	return hash | 1ull << 63;
}

struct share_policy share_config_policy(const struct share_config *config, uid_t uid,
					const char *cgroup)
{
	const struct share_rule *rule = rule_for(config, uid, cgroup);
	struct share_policy terms = rule ? rule->terms : config->terms;
	const struct share_policy *d = &config->terms;

	terms.group_id = group_id_of(rule, uid);
	terms.is_cgroup = rule && rule->kind == RULE_CGROUP;
	if (!terms.weight)
		terms.weight = d->weight ? d->weight : 1;
	if (!terms.has_class)
		terms.class_nr = d->class_nr;
	if (!terms.connections)
		terms.connections = d->connections ? d->connections : CONNECTIONS_DEFAULT;
	if (!terms.peers)
		terms.peers = d->peers ? d->peers : PEERS_DEFAULT;
	if (!terms.memory_bytes)
		terms.memory_bytes = d->memory_bytes ? d->memory_bytes : MEMORY_DEFAULT;
	if (!terms.rate_bytes_s)
		terms.rate_bytes_s = d->rate_bytes_s;
	return terms;
}
