/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib host gone; devices: softnic; timeout: 180 */
/* A donor's host that vanishes, and requests of another session that wait for the same window. */
#include <stdlib.h>

#include "tests/support/libweir_fixture.h"
#include "softnic/control/control.h"

#define WINDOW (256u << 10)
#define PIECE (64u << 10)
#define PIECES (4 * WINDOW / PIECE) /* four windows' worth */
#define TIMEOUT_NS (6 * SECOND_NS)

struct party {
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
};

static void join(struct party *p)
{
	const struct weir_session_options options = { .timeout_ns = TIMEOUT_NS,
						      TUNING(.window_bytes = WINDOW) };

	donor_process_start(&p->donor, "2097152", NULL);
	p->session = session_to(&p->donor, &options);
	p->region = region_of(p->session, PIECES * PIECE);
}

static void close_party(struct party *p)
{
	weir_region_close(p->region);
	weir_session_close(p->session);
}

/* Requests to it stay in flight, and fail when their retries run out. */
static void go_without_a_word(const struct party *p)
{
	struct softnic_options faults;

	option_defaults(&faults);
	faults.given = 1u << OPTION_PORT_DOWN_AFTER | 1u << OPTION_PORT_DOWN_MS;
	faults.value[OPTION_PORT_DOWN_AFTER] = 0;
	faults.value[OPTION_PORT_DOWN_MS] = 3600000;
	assert_int_equal(softnic_control_set_faults(p->donor.pid, &faults), 0);
}

static void write_pieces(struct party *p, void *bytes, struct completion_tally *tally)
{
	const struct weir_completion completion = { .done = tally_done, .arg = tally };
	const struct weir_iov iov = { bytes, PIECE, NULL };
	unsigned int i;

	for (i = 0; i < PIECES; i++)
		assert_int_equal(weir_write_async(p->region, (uint64_t)i * PIECE, &iov, 1,
						  &completion, NULL),
				 0);
}

static void who_is_gone_does_not_keep_the_window(void **state)
{
	struct party gone, well;
	struct completion_tally lost = { 0 };
	char *bytes = calloc(1, PIECE);
	uint64_t took_ns;

	assert_non_null(bytes);
	(void)state;
	join(&gone);
	join(&well);
	go_without_a_word(&gone);
	write_pieces(&gone, bytes, &lost);
	took_ns = now_ns();
	assert_int_equal(weir_write(well.region, 0, bytes, PIECE), 0);
	took_ns = now_ns() - took_ns;
	assert_true(took_ns > TIMEOUT_NS / 4 && took_ns < TIMEOUT_NS / 10 * 9);
	donor_process_kill(&gone.donor);
	tally_wait(&lost, PIECES);
	assert_int_not_equal(lost.status, 0);
	close_party(&gone);
	close_party(&well);
	donor_process_stop(&well.donor);
	free(bytes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_gone_does_not_keep_the_window),
	};

	fixture_runs_on("softnic");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
