/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib session; devices: softnic rxe; timeout: 180 */
/* Opening and closing sessions, and every way in which opening can fail. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/libweir_fixture.h"

static void refused(const char *donor, const struct weir_session_options *options, int status,
		    const char *word)
{
	struct weir_error error = { "" };
	struct weir_session *session;

	assert_int_equal(weir_session_open(donor, options, &session, &error), status);
	if (!strstr(error.text, word))
		fail_msg("'%s' does not speak of '%s'", error.text, word);
}

static void what_is_malformed_is_refused(void **in)
{
	struct weir_session_options many = { .size = sizeof(many), .channels = 17 };
	struct weir_session_options deep = { .size = sizeof(deep), TUNING(.depth = 5000) };
	struct weir_session_options narrow = { .size = sizeof(narrow),
					       TUNING(.window_bytes = 4096) };

	(void)in;
	refused("127.0.0.1:port", NULL, -EINVAL, "127.0.0.1:port");
	refused("", NULL, -EINVAL, "host");
	refused("127.0.0.1", &many, -EINVAL, "17");
	refused("127.0.0.1", &deep, -EINVAL, "5000");
	refused("127.0.0.1", &narrow, -EINVAL, "4096");
}

static void nobody_listens(void **in)
{
	char address[80];

	(void)in;
	snprintf(address, sizeof(address), "%s:1", fixture_address());
	refused(address, NULL, -ECONNREFUSED, address);
}

static void another_device_is_not_taken(void **in)
{
	struct weir_session_options options = { .size = sizeof(options), .device = "mlx5_77" };
	struct donor_process donor;

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	refused(donor.address, &options, -ENODEV, "mlx5_77");
	donor_process_stop(&donor);
}

/* A key in a new file; the caller unlinks @path. */
static struct weir_key *key_make(char *path)
{
	struct weir_key *key;

	strcpy(path, "/tmp/weir-test-key-XXXXXX");
	close(mkstemp(path));
	unlink(path);
	assert_int_equal(weir_key_create(path, NULL), 0);
	assert_int_equal(weir_key_load(path, &key, NULL), 0);
	return key;
}

static void the_key_decides(void **in)
{
	char right_path[40], wrong_path[40], argument[48];
	struct weir_key *right = key_make(right_path), *wrong = key_make(wrong_path);
	struct weir_session_options options = { .size = sizeof(options), .key = wrong };
	struct weir_session *session;
	struct weir_region *region;
	struct donor_process donor;

	(void)in;
	snprintf(argument, sizeof(argument), "key=%s", right_path);
	donor_process_start(&donor, "1048576", argument, NULL);
	refused(donor.address, &options, -EKEYREJECTED, "key");
	refused(donor.address, NULL, -EKEYREJECTED, "key");
	options.key = right;
	session = session_to(&donor, &options);
	region = region_of(session, 4096);
	weir_region_close(region);
	weir_session_close(session);
	donor_process_stop(&donor);
	weir_key_free(right);
	weir_key_free(wrong);
	unlink(right_path);
	unlink(wrong_path);
}

static void a_donor_takes_so_many_clients(void **in)
{
	struct weir_session_options options = { .size = sizeof(options), .key = fixture_key() };
	struct weir_session *first;
	struct donor_process donor;

	(void)in;
	donor_process_start(&donor, "1048576", "clients=1", NULL);
	first = session_to(&donor, NULL);
	refused(donor.address, &options, -EDQUOT, "client");
	weir_session_close(first);
	donor_process_stop(&donor);
}

static int open_descriptors(void)
{
	int fd, count = 0;

	for (fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void sessions_come_and_go(void **in)
{
	struct weir_session_options options = { .channels = 3 };
	uint64_t deadline_ns = now_ns() + 60 * SECOND_NS;
	struct donor_process donor;
	int i, before = 0;

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	for (i = 0; i < 30; i++) {
		options.no_thread = i % 2;
		weir_session_close(session_to(&donor, &options));
		if (i == 9)
			/* the device keeps some descriptors after first use */
			before = open_descriptors();
	}
	/* A parallel softnic test may probe the device, and hold a descriptor for a moment. */
	while (open_descriptors() > before) {
		assert_true(now_ns() < deadline_ns);
		usleep(200);
	}
	donor_process_stop(&donor);
}

/* A close ends requests in flight and requests that wait. */
static void close_ends_what_is_in_flight(void **in)
{
	/* Waiting requests end because of the close, however slow the device is. */
	struct weir_session_options options = { .timeout_ns = 600 * SECOND_NS,
						TUNING(.window_bytes = 1 * MIB) };
	struct completion_tally tally = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &tally };
	struct weir_session *session;
	struct weir_region *region;
	struct donor_process donor;
	struct weir_iov iov;
	struct weir_memory *memory;
	char *bytes = calloc(1, 4 * MIB);
	int i;

	(void)in;
	donor_process_start(&donor, "8388608", NULL);
	session = session_to(&donor, &options);
	region = region_of(session, 4 * MIB);
	assert_int_equal(weir_memory_register(session, bytes, 4 * MIB, &memory, NULL), 0);
	iov = (struct weir_iov){ bytes, 4 * MIB, memory };
	for (i = 0; i < 200; i++)
		assert_int_equal(weir_write_async(region, 0, &iov, 1, &completion, NULL), 0);
	weir_session_close(session); /* also closes the region */
	assert_int_equal(tally.done, 200);
	/* The last status is possible on a slow device that was cut off in mid-work. */
	assert_true(tally.status == 0 || tally.status == -ECANCELED || tally.status == -ECONNRESET);
	donor_process_stop(&donor);
	free(bytes);
}

static void the_verbs_are_open(void **in)
{
	struct weir_session *session;
	struct donor_process donor;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char bytes[64];

	(void)in;
	donor_process_start(&donor, "1048576", NULL);
	session = session_to(&donor, NULL);
	assert_int_equal(weir_session_verbs(session, 1, &pd, &cq, &qp), 0);
	assert_ptr_equal(qp->pd, pd);
	assert_ptr_equal(qp->send_cq, cq);
	mr = ibv_reg_mr(pd, bytes, sizeof(bytes), 0);
	assert_non_null(mr);
	ibv_dereg_mr(mr);
	assert_int_equal(weir_session_verbs(session, 2, &pd, &cq, &qp), -EINVAL);
	weir_session_close(session);
	donor_process_stop(&donor);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_malformed_is_refused),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(another_device_is_not_taken),
		cmocka_unit_test(the_key_decides),
		cmocka_unit_test(a_donor_takes_so_many_clients),
		cmocka_unit_test(sessions_come_and_go),
		cmocka_unit_test(close_ends_what_is_in_flight),
		cmocka_unit_test(the_verbs_are_open),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
