/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A run of weir serve. Context of all: the main thread. */
#ifndef WEIR_APPS_SERVE_SERVE_H
#define WEIR_APPS_SERVE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/http/http_server.h"
#include "apps/log/log.h"
#include "apps/serve/donor_keys.h"
#include "apps/serve/donor_page.h"
#include "apps/serve/key_set.h"
#include "apps/serve/membership.h"
#include "apps/serve/memory_target.h"
#include "apps/serve/tenant.h"

#define SERVE_KEYS_MAX 64
#define SERVE_PAGE (2ull << 20) /* the smallest unit of lending */

/* @asked: of --memory, or 0; @memory: that, or its default; @is_reserved: taken at the start */
struct serve {
	int argc;
	char **argv;
	const char *cmd, *listen, *wanted, *device, *keys_path, *identity_path;
	struct weir_identity *identity;
	uint64_t asked, memory, quota, key_memory, spare;
	const char *key_path[SERVE_KEYS_MAX];
	struct weir_key *key[SERVE_KEYS_MAX];
	enum weir_log_level log_level;
	enum log_format log;
	unsigned int nr_keys, key_clients, cpu_percent, keepalive;
	bool reserve, is_reserved, no_reserve, no_huge_pages, no_encrypt, no_sandbox, json;
	struct http_options metrics, web;
	struct metrics_server *metrics_server;
	struct http_server *web_server;
	struct donor_keys keys; /* with @keys_path */
	struct key_set *key_set; /* the donor's keys now; NULL: none */
	struct fs_tenants tenants;
	struct weir_donor *donor;
	struct membership membership;
	char address[64]; /* the same for each incarnation in a pool */
	int page; /* for weir top; less than 0: no descriptor */
	struct donor_page_keys answer; /* for weir key */
};

/*
 * Checks that options go together, after cmdline_parse(). @options: a struct serve. Return: an exit
 * status, after a message.
 */
int serve_check(const char *cmd, const void *options);

/* Applies the changed options of @new that need no restart, and names all others. */
void serve_change_options(struct serve *serve, const struct serve *new,
			  struct memory_target *target);

/*
 * admission.c: the keys that the donor admits. An int is an exit status, after a message.
 *
 * Loads --identity and the files of --key.
 */
int admission_load_keys(struct serve *serve);

/* Reads the list of --keys. @list: NULL, and receives the list if there is one. */
int admission_read_list(struct serve *serve, struct key_list **list);

/*
 * Whether the donor gets its keys only once it is open: rights are no option of a donor. A single
 * key needs none.
 */
bool admission_has_rights(const struct serve *serve);

/* Gives the open donor its keys. @list: given, or NULL: those of --key */
int admission_set_keys(struct serve *serve, struct key_list *list);

/* Reads the list again, if there is one. 'weir key' waits for the answer. */
void admission_reload(struct serve *serve);

/*
 * Warns of keys without a quota: one tenant's clients can take all memory that the others have not
 * taken yet. The key of a pool's donors is meant to have all.
 */
void admission_warn_of_no_quota(const struct serve *serve);

#endif
