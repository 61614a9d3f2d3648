/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The configuration of weir share: a file of lines such as
 *
 *	default weight 1 connections 64
 *	user postgres weight 4 class 0
 *	cgroup /system.slice/db.service rate 100M memory 1G
 *	class 0 tos 104
 *	class 1 segment 16K pass 4M
 *	idle 60
 *
 * A tenant's line is the longest cgroup that contains the process, else the user, else default.
 * Terms missing there come from the default line, then from built-in values; but deny is never
 * inherited.
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

/* 0 means not given; a bool says so where 0 is a value. */
struct share_policy {
	bool is_denied, has_class;
	bool is_cgroup; /* the party is a cgroup line */
	uint64_t group_id; /* the unit of sharing: a cgroup line, or a user */
	unsigned int weight; /* 1 to 1024, of all connections together; default 1 */
	unsigned int class_nr; /* most urgent class allowed; default the first */
	unsigned int connections; /* at a time; default 1024 */
	unsigned int peers; /* other muxes reached by own connects; default 64 */
	uint64_t memory_bytes; /* of rings and regions; default 1 GiB */
	uint64_t rate_bytes_s; /* sent; default no limit */
};

enum share_rule_kind { RULE_CGROUP, RULE_USER };

struct share_rule {
	enum share_rule_kind kind;
	char cgroup[SHARE_CONFIG_NAME_MAX]; /* of RULE_CGROUP */
	uid_t uid; /* of RULE_USER */
	struct share_policy terms;
};

/*
 * @classes: @nr_classes classes: the built-in ones and those of class lines; read at start only
 * @idle_ns: how long QPs to a mux without connections are kept; 0: the mux's default
 */
struct share_config {
	struct weir_mux_class classes[WEIR_MUX_CLASSES_MAX];
	unsigned int nr_classes;
	uint64_t idle_ns;
	struct share_policy terms; /* where no rule applies */
	struct share_rule *rules;
	size_t nr_rules;
};

/**
 * share_config_parse() - parse a configuration
 * @text: @length bytes
 * @config: receives the result; free with share_config_fini()
 * @error: receives the line and the mistake
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int share_config_parse(const char *text, size_t length, struct share_config *config,
		       struct weir_error *error);

/* Parses a file; @path NULL: the defaults. Return: as above, and the errors of open(2). */
int share_config_load(const char *path, struct share_config *config, struct weir_error *error);
void share_config_fini(struct share_config *config);

/* Return: the policy for a process, defaults filled in. @cgroup: "/" if unknown. */
struct share_policy share_config_policy(const struct share_config *config, uid_t uid,
					const char *cgroup);

#endif
