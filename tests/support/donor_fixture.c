/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/support/donor_fixture.h"

struct weir_key key_a = { .length = 16, .bytes = "aaaaaaaaaaaaaaaa" };
struct weir_key key_b = { .length = 16, .bytes = "bbbbbbbbbbbbbbbb" };

const char *donor_host(void)
{
	const char *host = getenv("WEIR_TEST_ADDRESS");

	return host && host[0] ? host : "127.0.0.1";
}

bool donor_is_on_loopback(void)
{
	return !strncmp(donor_host(), "127.", 4);
}

const char *donor_any_port(void)
{
	static char listen[80];

	snprintf(listen, sizeof(listen), "%s:0", donor_host());
	return listen;
}

unsigned int donor_scaled(unsigned int n)
{
	const char *size = getenv("WEIR_TEST_SIZE");

	return size ? (unsigned int)(n * strtod(size, NULL)) : n;
}

static void on_log(void *arg, enum weir_log_level level, const char *line)
{
	(void)arg;
	if (getenv("WEIR_TEST_VERBOSE"))
		fprintf(stderr, "# donor %d: %s\n", level, line);
}

void donor_fixture_start(struct donor_fixture *f, const struct weir_donor_options *options)
{
	static const struct weir_key *const keys[] = { &key_a, &key_b };
	struct weir_error error = { "" };

	memset(f, 0, sizeof(*f));
	if (options)
		f->options = *options;
	f->options.size = sizeof(f->options);
	if (!f->options.listen)
		f->options.listen = donor_any_port();
	if (!f->options.keys) {
		f->options.keys = keys;
		f->options.nr_keys = 2;
	}
	if (!f->options.memory_bytes)
		f->options.memory_bytes = 16 * MIB;
	if (!f->options.quota_bytes)
		f->options.quota_bytes = 8 * MIB;
	if (!f->options.on_log)
		f->options.on_log = on_log;
	if (weir_donor_open(&f->options, &f->donor, &error))
		fail_msg("%s", error.text);
	donor_fixture_info(f);
}

void donor_fixture_stop(struct donor_fixture *f)
{
	weir_donor_close(f->donor);
}

const struct weir_donor_info *donor_fixture_info(struct donor_fixture *f)
{
	weir_donor_info(f->donor, &f->info, sizeof(f->info));
	return &f->info;
}

uint64_t donor_fixture_reclaimed(struct raw_client *raw)
{
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_reclaim recall;
	struct wire_control_head head;

	assert_int_equal(raw_answer(raw, &head, body, SOON_MS), 0);
	assert_int_equal(head.kind, WIRE_CONTROL_RECLAIM);
	assert_int_equal(wire_control_reclaim_decode(body, head.length, &recall), 0);
	return recall.keep_bytes;
}
