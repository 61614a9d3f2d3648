/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How weir share treats whom: a file of lines
 *
 *	default                          weight 1 connections 64
 *	user postgres                    weight 4 class 0
 *	cgroup /system.slice/db.service  rate 100M memory 1G
 *	class 0                          tos 104
 *	class 1                          segment 16K pass 4M
 *	idle                             60
 *
 * Who is of several is treated by the first that fits of: the longest cgroup that holds him, his
 * user, default. What a line does not say the default line does, and what that does not, weir; but
 * deny is of its own line alone.
 */
#ifndef WEIR_APPS_SHARE_CONFIG_H
#define WEIR_APPS_SHARE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <weir/error.h>
#include <weir/mux.h>

#define SHARE_CONFIG_RULES_MAX 1024
#define SHARE_CONFIG_NAME_MAX 256

/* Each is 0 where nothing is said; classes and permission are told apart from that by a bit. */
struct share_policy {
	bool is_denied, has_class;
	bool is_cgroup; /* the party is those of a cgroup's line */
	uint64_t party; /* who has the weight: all of a cgroup's line, or else of a user */
	unsigned int weight; /* 1 to 1024, of all connections together; default 1 */
	unsigned int class_nr; /* the most urgent that he may use; default the first */
	unsigned int connections; /* at once; default 1024 */
	unsigned int peers; /* other muxes that its connects have begun, at once; default 64 */
	uint64_t memory_bytes; /* of rings and regions; default 1 GiB */
	uint64_t rate_bytes_s; /* that he sends; default: any amount */
};

enum share_rule_kind { RULE_CGROUP, RULE_USER };

struct share_rule {
	enum share_rule_kind kind;
	char cgroup[SHARE_CONFIG_NAME_MAX]; /* of RULE_CGROUP */
	uid_t uid; /* of RULE_USER */
	struct share_policy terms;
};

/*
 * @classes: @nr_classes of them, those of a mux without options and as many as lines name; read
 *	when the daemon begins
 * @idle_ns: that queue pairs to a mux are kept with which nobody has a connection; 0: as a mux does
 */
struct share_config {
	struct weir_mux_class classes[WEIR_MUX_CLASSES_MAX];
	unsigned int nr_classes;
	uint64_t idle_ns;
	struct share_policy terms; /* of all for whom there is no rule */
	struct share_rule *rules;
	size_t nr_rules;
};

/**
 * share_config_parse() - read it
 * @text: @length bytes
 * @config: receives it; share_config_fini() it
 * @error: says which line, and what is wrong with it
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int share_config_parse(const char *text, size_t length, struct share_config *config,
		       struct weir_error *error);

/* The same, of a file. @path: NULL: nothing is said of anybody. Return: also what open(2) says. */
int share_config_load(const char *path, struct share_config *config, struct weir_error *error);
void share_config_fini(struct share_config *config);

/* How somebody is treated, defaults filled in. @cgroup: "/" where it is not known. */
struct share_policy share_config_policy(const struct share_config *config, uid_t uid,
					const char *cgroup);

#endif
