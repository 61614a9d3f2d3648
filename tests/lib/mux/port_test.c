/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux port; devices: softnic-slow; timeout: 120 */
/* Bytes in flight below the first level, to several muxes over one port. */
#include <poll.h>
#include <string.h>

#include "tests/lib/mux/ends.h"

#define OTHERS 4
#define SEGMENT 65536
#define RING (4 * SEGMENT)
#define MESSAGE (SEGMENT - 8) /* without the record */

struct stream {
	struct mux_end to;
	struct weir_mux_conn *near, *far;
	uint64_t received;
};

static char data[MESSAGE], got[MESSAGE];

/* Sends all that fits, and receives all that has arrived. */
static void stream_turn(struct stream *s)
{
	size_t length;

	while (!weir_mux_conn_send(s->near, data, sizeof(data), WEIR_MUX_CONN_DONTWAIT))
		;
	while (!weir_mux_conn_recv(s->far, got, sizeof(got), &length, WEIR_MUX_CONN_DONTWAIT))
		s->received += length;
}

static bool all_have(const struct stream *streams, uint64_t bytes)
{
	int i;

	for (i = 0; i < OTHERS; i++)
		if (streams[i].received < bytes)
			return false;
	return true;
}

/* With separate accounting, each remote had twice that in flight. */
static void an_urgent_message_waits_for_a_segment_per_remote(void **state)
{
	const struct weir_mux_conn_options options = { .size = sizeof(options),
						       .class_nr = WEIR_MUX_CLASS_NORMAL,
						       .ring_bytes = RING };
	const uint64_t deadline_ns = weir_now_ns() + PATIENCE_NS;
	struct stream streams[OTHERS] = { { .received = 0 } };
	struct weir_mux_conn *near, *far;
	struct weir_mux_info info;
	struct mux_end from;
	size_t length;
	int i;

	(void)state;
	end_open(&from, 0);
	for (i = 0; i < OTHERS; i++) {
		end_open(&streams[i].to, 0);
		streams[i].near = connect_with(&from, streams[i].to.address, &options);
		streams[i].far = accept_at(&streams[i].to);
	}
	near = connect_at(&from, streams[0].to.address, WEIR_MUX_CLASS_URGENT);
	far = accept_at(&streams[0].to);
	while (!all_have(streams, 100 * SEGMENT)) {
		assert_true(weir_now_ns() < deadline_ns);
		for (i = 0; i < OTHERS; i++)
			stream_turn(&streams[i]);
		weir_mux_conn_send(near, data, 100, WEIR_MUX_CONN_DONTWAIT);
		weir_mux_conn_recv(far, got, sizeof(got), &length, WEIR_MUX_CONN_DONTWAIT);
	}
	weir_mux_local_info(from.mux, &info);
	print_message("# %lu bytes ahead\n", (unsigned long)info.ahead_bytes_max);
	assert_in_range(info.ahead_bytes_max, 1, (OTHERS + 1) * SEGMENT);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
	for (i = 0; i < OTHERS; i++) {
		weir_mux_conn_close(streams[i].near);
		weir_mux_conn_close(streams[i].far);
	}
	/* The accounting returns to zero. */
	while (weir_counter_read(&from.mux->low_bytes) ||
	       weir_counter_read(&from.mux->low_remotes)) {
		assert_true(weir_now_ns() < deadline_ns);
		poll(NULL, 0, 1);
	}
	end_close(&from);
	for (i = 0; i < OTHERS; i++)
		end_close(&streams[i].to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_urgent_message_waits_for_a_segment_per_remote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
