/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* WRs in flight: which the NIC signals, and what a completion says of the others. */
#include "core/link/in_flight.h"
#include "tests/support/engine_bench.h"

#define WRS 5
#define LOST (-ECONNRESET)

static struct weir_wr wrs[WRS];

/* A chain of WRs @from to @to. */
static struct weir_wr *chain(int from, int to)
{
	int i;

	for (i = from; i <= to; i++)
		wrs[i].next = i < to ? &wrs[i + 1] : NULL;
	return &wrs[from];
}

/* All WRs, posted one by one. */
static void post_all(struct weir_in_flight *f)
{
	int i;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < WRS; i++)
		assert_null(weir_in_flight_append(f, chain(i, i), 1));
}

static void some_are_signalled(void **state)
{
	static const struct {
		const char *sentence;
		const char *chains; /* each WR; a capital ends a chain */
		uint32_t interval;
		const char *signals;
	} cases[] = {
		{ "a WR alone is signalled", "A", 64, "1" },
		{ "of a chain the last is signalled", "aaaaA", 64, "00001" },
		{ "a long chain is signalled in between", "aaaaaaA", 3, "0010011" },
		{ "a short queue has all signalled", "aaA", 0, "111" },
		{ "a signal counts for the next chain", "aAaaA", 3, "01001" },
		{ "a chain without an end is signalled at intervals", "aaaaaa", 2, "010101" },
	};
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weir_in_flight f = { NULL };

		for (j = 0; cases[i].chains[j]; j++) {
			bool is_last = cases[i].chains[j] == 'A';

			if (weir_in_flight_signal(&f, is_last, cases[i].interval) !=
			    (cases[i].signals[j] == '1'))
				fail_msg("%s: WR %d", cases[i].sentence, (int)j);
		}
	}
}

static void refused_wrs_are_not_in_flight(void **state)
{
	struct weir_in_flight f = { NULL };
	int i;

	(void)state;
	assert_null(weir_in_flight_append(&f, chain(0, 1), 2));
	assert_ptr_equal(weir_in_flight_append(&f, chain(2, 4), 1), &wrs[3]);
	assert_int_equal(f.count, 3);
	for (i = 0; i < 3; i++)
		assert_ptr_equal(weir_in_flight_pop(&f), &wrs[i]);
	assert_int_equal(f.count, 0);
	assert_null(weir_in_flight_append(&f, chain(3, 4), 2));
	assert_ptr_equal(f.oldest, &wrs[3]);
}

static void a_completion_ends_all_before(void **state)
{
	static const struct {
		const char *sentence;
		int wr; /* -1: the drain WR */
		int status;
		int nr_ended;
		int ends[WRS];
	} cases[] = {
		{ "the oldest succeeds alone", 0, 0, 1, { 0 } },
		{ "WRs before a success have succeeded", 3, 0, 4, { 0, 0, 0, 0 } },
		{ "WRs before a failure have succeeded", 2, LOST, 3, { 0, 0, LOST } },
		{ "the oldest fails alone", 0, -EACCES, 1, { -EACCES } },
		{ "the newest ends all", 4, -EIO, 5, { 0, 0, 0, 0, -EIO } },
		{ "a flushed drain says that all have succeeded", -1, LOST, 5, { 0 } },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weir_wc wc = { NULL }, cqe = { NULL, cases[i].status, 7 };
		struct weir_in_flight f;
		int ended = 0;

		post_all(&f);
		if (cases[i].wr >= 0)
			cqe.wr = &wrs[cases[i].wr];
		for (; weir_in_flight_complete(&f, &cqe, &wc); ended++) {
			if (wc.wr != &wrs[ended] || wc.status != cases[i].ends[ended] ||
			    wc.verbs != (wc.wr == cqe.wr ? 7 : 0))
				fail_msg("%s: WR %d", cases[i].sentence, ended);
		}
		if (ended != cases[i].nr_ended || (int)f.count != WRS - ended)
			fail_msg("%s: %d ended", cases[i].sentence, ended);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SAYS("the last WR of a chain is signalled, and one now and then",
		     some_are_signalled),
		SAYS("WRs that the NIC refuses are not in flight", refused_wrs_are_not_in_flight),
		SAYS("a completion ends its WR and all WRs before", a_completion_ends_all_before),
	};

	return cmocka_run_group_tests_name("in_flight", tests, NULL, NULL);
}
