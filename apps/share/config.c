/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/share/config.h"

#include "apps/common/number.h"
#include "apps/common/size.h"
#include "lib/base/error.h"
#include "lib/mux/classes.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1 << 20)
#define CONNECTIONS_MAX 65535
#define PEERS_MAX 4096
#define WEIGHT_MAX 1024
#define CLASS_MAX (WEIR_MUX_CLASSES_MAX - 1)
#define TOS_MAX 255
#define LEVEL_MAX 255
#define DEPTH_MAX 64
#define SEGMENT_MIN 1024
#define SEGMENT_MAX 65536
#define IDLE_MIN 0.1 /* seconds */
#define IDLE_MAX 86400

/* State of the parser: the rest of a line, cut into words as the parser proceeds. */
struct parser {
	char *at;
	unsigned int line;
	struct weir_error *error;
};

static char *next_word(struct parser *p)
{
	char *word;

	while (isspace((unsigned char)*p->at))
		p->at++;
	if (!*p->at || *p->at == '#')
		return NULL;
	word = p->at;
	while (*p->at && !isspace((unsigned char)*p->at))
		p->at++;
	if (*p->at)
		*p->at++ = '\0';
	return word;
}

/* Parses a number from @low to @high. */
static int parse_number(const struct parser *p, const char *term, const char *word,
			unsigned int low, unsigned int high, unsigned int *out)
{
	if (number_parse_uint(word, low, high, out))
		return 0;
	return weir_error_set(p->error, -EINVAL, "line %u: %s %s: must be %u to %u", p->line, term,
			      word, low, high);
}

static int parse_size(const struct parser *p, const char *term, const char *word, uint64_t *out)
{
	uint64_t size;

	if (size_parse(word, &size) || !size)
		return weir_error_set(p->error, -EINVAL,
				      "line %u: %s %s: not a size; try 512M or 4G", p->line, term,
				      word);
	*out = size;
	return 0;
}

static int parse_term(struct parser *p, const char *term, struct share_policy *terms)
{
	char *word;

	if (!strcmp(term, "deny")) {
		terms->is_denied = true;
		return 0;
	}
	word = next_word(p);
	if (!word)
		return weir_error_set(p->error, -EINVAL, "line %u: %s: the value is missing",
				      p->line, term);
	if (!strcmp(term, "weight"))
		return parse_number(p, term, word, 1, WEIGHT_MAX, &terms->weight);
	if (!strcmp(term, "connections"))
		return parse_number(p, term, word, 1, CONNECTIONS_MAX, &terms->connections);
	if (!strcmp(term, "peers"))
		return parse_number(p, term, word, 1, PEERS_MAX, &terms->peers);
	if (!strcmp(term, "class")) {
		terms->has_class = true;
		return parse_number(p, term, word, 0, CLASS_MAX, &terms->class_nr);
	}
	if (!strcmp(term, "memory"))
		return parse_size(p, term, word, &terms->memory_bytes);
	if (!strcmp(term, "rate"))
		return parse_size(p, term, word, &terms->rate_bytes_s);
	return weir_error_set(p->error, -EINVAL,
			      "line %u: %s: not one of weight, class, connections, "
			      "peers, memory, rate and deny",
			      p->line, term);
}

static int parse_terms(struct parser *p, struct share_policy *terms)
{
	const char *word;
	int rc = 0;

	while (!rc && (word = next_word(p)) != NULL)
		rc = parse_term(p, word, terms);
	return rc;
}

static int parse_user(const struct parser *p, const char *name, uid_t *uid)
{
	const struct passwd *entry;
	unsigned int number;

	if (isdigit((unsigned char)*name)) {
		int rc = parse_number(p, "user", name, 0, UINT32_MAX - 1, &number);

		*uid = rc ? 0 : number;
		return rc;
	}
	entry = getpwnam(name);
	if (!entry)
		return weir_error_set(p->error, -EINVAL, "line %u: there is no user %s", p->line,
				      name);
	*uid = entry->pw_uid;
	return 0;
}

static int rule_new(struct share_config *config, struct parser *p, struct share_rule **out)
{
	struct share_rule *rules;

	if (config->nr_rules == SHARE_CONFIG_RULES_MAX)
		return weir_error_set(p->error, -EINVAL,
				      "line %u: at most %d user and cgroup lines", p->line,
				      SHARE_CONFIG_RULES_MAX);
	rules = realloc(config->rules, (config->nr_rules + 1) * sizeof(*rules));
	if (!rules)
		return weir_error_set(p->error, -ENOMEM, "out of memory");
	config->rules = rules;
	*out = &rules[config->nr_rules++];
	memset(*out, 0, sizeof(**out));
	return 0;
}

static int parse_rule(struct share_config *config, struct parser *p, bool is_user)
{
	const char *name = next_word(p);
	struct share_rule *rule = NULL;
	int rc;

	if (!name)
		return weir_error_set(p->error, -EINVAL, "line %u: %s without a name", p->line,
				      is_user ? "user" : "cgroup");
	rc = rule_new(config, p, &rule);
	if (rc)
		return rc;
	if (is_user) {
		rule->kind = RULE_USER;
		rc = parse_user(p, name, &rule->uid);
	} else if (*name != '/' || strlen(name) >= sizeof(rule->cgroup)) {
		rc = weir_error_set(p->error, -EINVAL,
				    "line %u: cgroup %s: give the path, beginning with /", p->line,
				    name);
	} else {
		strcpy(rule->cgroup, name);
	}
	return rc ? rc : parse_terms(p, &rule->terms);
}

static int parse_segment(const struct parser *p, const char *word, struct weir_mux_class *class)
{
	uint64_t bytes = 0;
	int rc = parse_size(p, "segment", word, &bytes);

	if (rc)
		return rc;
	if (bytes < SEGMENT_MIN || bytes > SEGMENT_MAX)
		return weir_error_set(p->error, -EINVAL, "line %u: segment %s: must be 1K to 64K",
				      p->line, word);
	class->segment_bytes = (uint32_t)bytes;
	return 0;
}

static int parse_class_term(struct parser *p, const char *term, struct weir_mux_class *class)
{
	const char *word = next_word(p);

	if (!word)
		return weir_error_set(p->error, -EINVAL, "line %u: %s: the value is missing",
				      p->line, term);
	if (!strcmp(term, "level"))
		return parse_number(p, term, word, 0, LEVEL_MAX, &class->level);
	if (!strcmp(term, "weight"))
		return parse_number(p, term, word, 1, WEIGHT_MAX, &class->weight);
	if (!strcmp(term, "depth"))
		return parse_number(p, term, word, 1, DEPTH_MAX, &class->depth);
	if (!strcmp(term, "segment"))
		return parse_segment(p, word, class);
	if (!strcmp(term, "pass") && !strcmp(word, "any")) {
		class->pass_bytes_max = 0;
		return 0;
	}
	if (!strcmp(term, "pass"))
		return parse_size(p, term, word, &class->pass_bytes_max);
	if (!strcmp(term, "tos"))
		return parse_number(p, term, word, 0, TOS_MAX, &class->tos);
	return weir_error_set(p->error, -EINVAL,
			      "line %u: %s: not one of tos, level, weight, segment, depth and pass",
			      p->line, term);
}

/* Adds classes up to @nr; each is a copy of the one before. */
static void class_have(struct share_config *config, unsigned int nr)
{
	for (; config->nr_classes <= nr; config->nr_classes++)
		config->classes[config->nr_classes] = config->classes[config->nr_classes - 1];
}

static int parse_class(struct share_config *config, struct parser *p)
{
	const char *name = next_word(p), *term = next_word(p);
	unsigned int nr;
	int rc;

	if (!term)
		return weir_error_set(p->error, -EINVAL,
				      "line %u: class: give a number and terms: "
				      "class 0 tos 104",
				      p->line);
	rc = parse_number(p, "class", name, 0, CLASS_MAX, &nr);
	if (!rc)
		class_have(config, nr);
	for (; !rc && term; term = next_word(p))
		rc = parse_class_term(p, term, &config->classes[nr]);
	return rc;
}

static int parse_idle(struct share_config *config, struct parser *p)
{
	const char *word = next_word(p);
	double seconds;

	if (word && !strcmp(word, "any") && !next_word(p)) {
		config->idle_ns = UINT64_MAX;
		return 0;
	}
	if (!word || next_word(p) || !number_parse_double(word, IDLE_MIN, IDLE_MAX, &seconds))
		return weir_error_set(p->error, -EINVAL,
				      "line %u: idle: give 0.1 to 86400 seconds, "
				      "or any",
				      p->line);
	config->idle_ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int parse_line(struct share_config *config, struct parser *p)
{
	const char *word = next_word(p);

	if (!word)
		return 0;
	if (!strcmp(word, "default"))
		return parse_terms(p, &config->terms);
	if (!strcmp(word, "user"))
		return parse_rule(config, p, true);
	if (!strcmp(word, "cgroup"))
		return parse_rule(config, p, false);
	if (!strcmp(word, "class"))
		return parse_class(config, p);
	if (!strcmp(word, "idle"))
		return parse_idle(config, p);
	return weir_error_set(p->error, -EINVAL,
			      "line %u: %s: a line must begin with default, user, "
			      "cgroup, class or idle",
			      p->line, word);
}

static void config_init(struct share_config *config)
{
	*config = (struct share_config){ 0 };
	memcpy(config->classes, weir_mux_default_classes, sizeof(weir_mux_default_classes));
	config->nr_classes = WEIR_MUX_DEFAULT_CLASSES;
}

int share_config_parse(const char *text, size_t length, struct share_config *config,
		       struct weir_error *error)
{
	struct parser p = { .error = error };
	char *copy = strndup(text, length), *rest = copy, *line;
	int rc = copy ? 0 : weir_error_set(error, -ENOMEM, "out of memory");

	config_init(config);
	if (!rc && strlen(copy) != length)
		rc = weir_error_set(error, -EINVAL, "not a text file");
	while (!rc && (line = strsep(&rest, "\n")) != NULL) {
		p.at = line;
		p.line++;
		rc = parse_line(config, &p);
	}
	free(copy);
	if (rc)
		share_config_fini(config);
	return rc;
}

static int load(FILE *file, const char *path, struct share_config *config, struct weir_error *error)
{
	struct weir_error why = { "" };
	char *text = malloc(FILE_MAX);
	size_t length;
	int rc;

	if (!text)
		return weir_error_set(error, -ENOMEM, "out of memory");
	length = fread(text, 1, FILE_MAX, file);
	if (ferror(file))
		rc = weir_error_set(error, -EIO, "%s: %s", path, strerror(errno));
	else if (length == FILE_MAX)
		rc = weir_error_set(error, -EINVAL, "%s: longer than 1 MiB", path);
	else
		rc = share_config_parse(text, length, config, &why);
	if (rc && why.text[0])
		weir_error_set(error, rc, "%s: %.256s", path, why.text);
	free(text);
	return rc;
}

int share_config_load(const char *path, struct share_config *config, struct weir_error *error)
{
	FILE *file;
	int rc;

	config_init(config);
	if (!path)
		return 0;
	file = fopen(path, "re");
	if (!file) {
		rc = -errno;
		return weir_error_set(error, rc, "%s: %s", path, strerror(-rc));
	}
	rc = load(file, path, config, error);
	fclose(file);
	return rc;
}

void share_config_fini(struct share_config *config)
{
	free(config->rules);
	*config = (struct share_config){ 0 };
}
