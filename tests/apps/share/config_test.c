/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: weir share config; suites: share */
/* weir share's configuration: policies, and the errors for mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "apps/share/config.h"

static void parse(const char *text, struct share_config *config)
{
	struct weir_error error = { "" };

	if (share_config_parse(text, strlen(text), config, &error))
		fail_msg("%s", error.text);
}

static void an_empty_configuration_leaves_the_defaults(void **state)
{
	struct share_config config;
	struct share_policy terms;

	(void)state;
	parse("\n  # only this\n\n", &config);
	terms = share_config_policy(&config, 1000, "/a");
	assert_false(terms.is_denied);
	assert_int_equal(terms.weight, 1);
	assert_int_equal(terms.class_nr, 0);
	assert_int_equal(terms.connections, 1024);
	assert_int_equal(terms.peers, 64);
	assert_int_equal(terms.memory_bytes, 1 << 30);
	assert_int_equal(terms.rate_bytes_s, 0);
	share_config_fini(&config);
}

static void terms_missing_in_a_line_come_from_default(void **state)
{
	struct share_config config;
	struct share_policy terms;

	(void)state;
	parse("default weight 2 class 1 peers 3 rate 1M # all\n"
	      "user 7 class 0 connections 9 memory 1G\n",
	      &config);
	terms = share_config_policy(&config, 7, "/");
	assert_int_equal(terms.weight, 2);
	assert_int_equal(terms.class_nr, 0);
	assert_int_equal(terms.connections, 9);
	assert_int_equal(terms.peers, 3);
	assert_int_equal(terms.memory_bytes, 1 << 30);
	assert_int_equal(terms.rate_bytes_s, 1 << 20);
	terms = share_config_policy(&config, 8, "/");
	assert_int_equal(terms.class_nr, 1);
	share_config_fini(&config);
}

static void a_user_or_a_cgroup_line_is_a_party(void **state)
{
	struct share_config config;

	(void)state;
	parse("user 7 weight 2\ncgroup /a weight 3\ncgroup /b weight 3\n", &config);
	assert_true(share_config_policy(&config, 7, "/").group_id ==
		    share_config_policy(&config, 7, "/x").group_id);
	assert_true(share_config_policy(&config, 7, "/").group_id !=
		    share_config_policy(&config, 8, "/").group_id);
	assert_true(share_config_policy(&config, 7, "/a/x").group_id ==
		    share_config_policy(&config, 8, "/a").group_id);
	assert_true(share_config_policy(&config, 7, "/a").group_id !=
		    share_config_policy(&config, 7, "/b").group_id);
	assert_true(share_config_policy(&config, 7, "/a").group_id !=
		    share_config_policy(&config, 7, "/").group_id);
	share_config_fini(&config);
}

static void the_longest_matching_cgroup_applies(void **state)
{
	struct share_config config;

	(void)state;
	parse("user 7 weight 2\ncgroup /a weight 3\ncgroup /a/b/ weight 4\ncgroup /ab deny\n",
	      &config);
	assert_int_equal(share_config_policy(&config, 7, "/c").weight, 2);
	assert_int_equal(share_config_policy(&config, 7, "/a").weight, 3);
	assert_int_equal(share_config_policy(&config, 7, "/a/bc").weight, 3);
	assert_int_equal(share_config_policy(&config, 7, "/a/b").weight, 4);
	assert_int_equal(share_config_policy(&config, 7, "/a/b/c").weight, 4);
	assert_true(share_config_policy(&config, 7, "/ab/x").is_denied);
	assert_false(share_config_policy(&config, 7, "/abc").is_denied);
	share_config_fini(&config);
}

static void classes_have_types_of_service(void **state)
{
	struct share_config config;

	(void)state;
	parse("class 1 tos 32\nclass 0 tos 104", &config);
	assert_int_equal(config.classes[0].tos, 104);
	assert_int_equal(config.classes[1].tos, 32);
	assert_int_equal(config.nr_classes, 2);
	share_config_fini(&config);
}

static void classes_are_those_of_a_mux_without_options_until_lines_say_otherwise(void **state)
{
	struct share_config config;

	(void)state;
	parse("", &config);
	assert_int_equal(config.nr_classes, 2);
	assert_int_equal(config.classes[0].level, 0);
	assert_int_equal(config.classes[1].level, 1);
	assert_int_equal(config.classes[1].pass_bytes_max, 1 << 20);
	share_config_fini(&config);
	parse("class 1 segment 16K pass 4M depth 8\nclass 3 weight 5 pass any tos 8\n"
	      "class 0 level 0 segment 1K",
	      &config);
	assert_int_equal(config.nr_classes, 4);
	assert_int_equal(config.classes[0].segment_bytes, 1024);
	assert_int_equal(config.classes[1].segment_bytes, 16384);
	assert_int_equal(config.classes[1].depth, 8);
	assert_int_equal(config.classes[1].pass_bytes_max, 4 << 20);
	assert_int_equal(config.classes[2].segment_bytes, 16384);
	assert_int_equal(config.classes[2].weight, 0);
	assert_int_equal(config.classes[3].level, 1);
	assert_int_equal(config.classes[3].weight, 5);
	assert_int_equal(config.classes[3].tos, 8);
	assert_int_equal(config.classes[3].pass_bytes_max, 0);
	share_config_fini(&config);
}

static void idle_queue_pairs_are_kept_for_the_configured_time(void **state)
{
	struct share_config config;

	(void)state;
	parse("default weight 1", &config);
	assert_int_equal(config.idle_ns, 0);
	share_config_fini(&config);
	parse("idle 60 # a minute\n", &config);
	assert_int_equal(config.idle_ns, 60000000000);
	share_config_fini(&config);
	parse("idle 0.25", &config);
	assert_int_equal(config.idle_ns, 250000000);
	share_config_fini(&config);
	parse("idle any", &config);
	assert_true(config.idle_ns == UINT64_MAX);
	share_config_fini(&config);
}

static void a_user_line_takes_a_name(void **state)
{
	struct share_config config;

	(void)state;
	parse("user root weight 5", &config);
	assert_int_equal(share_config_policy(&config, 0, "/").weight, 5);
	share_config_fini(&config);
}

static void mistakes_are_reported_with_the_line(void **state)
{
	static const struct {
		const char *text, *ready;
	} wrong[] = {
		{ "everybody weight 1", "line 1: everybody" },
		{ "class 8 tos 1", "line 1: class 8" },
		{ "class 0 tos 256", "line 1: tos 256" },
		{ "class 0", "class 0 tos 104" },
		{ "class 0 tos", "tos: the value is missing" },
		{ "class 0 tos 1 2", "2: the value is missing" },
		{ "class 0 rate 1M", "rate: not one of tos, level" },
		{ "class 0 weight 0", "weight 0: must be 1 to 1024" },
		{ "class 0 level 256", "level 256: must be 0 to 255" },
		{ "class 0 depth 65", "depth 65: must be 1 to 64" },
		{ "class 0 segment 1", "segment 1: must be 1K to 64K" },
		{ "class 0 segment 65K", "segment 65K: must be 1K to 64K" },
		{ "class 0 segment long", "segment long: not a size" },
		{ "class 0 pass 0", "pass 0: not a size" },
		{ "idle", "idle: give 0.1 to 86400 seconds" },
		{ "idle 0", "idle: give 0.1" },
		{ "idle -1", "idle: give 0.1" },
		{ "idle nan", "idle: give 0.1" },
		{ "idle 86401", "idle: give 0.1" },
		{ "idle 5s", "idle: give 0.1" },
		{ "idle 5 s", "idle: give 0.1" },
		{ "idle any 5", "idle: give 0.1" },
		{ "default\nuser", "line 2: user without a name" },
		{ "cgroup", "line 1: cgroup without a name" },
		{ "cgroup a deny", "line 1: cgroup a" },
		{ "user nobody-of-this-name deny", "there is no user nobody-of-this-name" },
		{ "user 4294967295 deny", "user 4294967295" },
		{ "default weight", "weight: the value is missing" },
		{ "default weight 0", "weight 0: must be 1 to 1024" },
		{ "default weight 1025", "weight 1025" },
		{ "default weight -1", "weight -1" },
		{ "default weight 1x", "weight 1x" },
		{ "default class 8", "class 8: must be 0 to 7" },
		{ "default connections 65536", "connections 65536" },
		{ "default memory much", "memory much: not a size" },
		{ "default rate 0", "rate 0: not a size" },
		{ "default colour 3", "line 1: colour" },
	};
	struct share_config config;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct weir_error error = { "" };

		assert_int_equal(share_config_parse(wrong[i].text, strlen(wrong[i].text), &config,
						    &error),
				 -EINVAL);
		if (!strstr(error.text, wrong[i].ready))
			fail_msg("\"%s\": \"%s\"", wrong[i].text, error.text);
		assert_null(config.rules);
	}
	assert_int_equal(share_config_parse("default\0deny", 12, &config, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_configuration_leaves_the_defaults),
		cmocka_unit_test(terms_missing_in_a_line_come_from_default),
		cmocka_unit_test(a_user_or_a_cgroup_line_is_a_party),
		cmocka_unit_test(the_longest_matching_cgroup_applies),
		cmocka_unit_test(classes_have_types_of_service),
		cmocka_unit_test(
			classes_are_those_of_a_mux_without_options_until_lines_say_otherwise),
		cmocka_unit_test(idle_queue_pairs_are_kept_for_the_configured_time),
		cmocka_unit_test(a_user_line_takes_a_name),
		cmocka_unit_test(mistakes_are_reported_with_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
