/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Control messages of the mux, accepted and refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/mux.h"

struct sample {
	const char *sentence;
	struct wire_mux_control message;
	int expect;
};

static const struct sample samples[] = {
	{ "an OPEN", { WIRE_MUX_OPEN, 0, 7, 1, 4096, 0 }, 0 },
	{ "an OPEN of service 0", { WIRE_MUX_OPEN, 0, 0, 1, 4096, 0 }, 0 },
	{ "an OPEN without an id", { WIRE_MUX_OPEN, 0, 7, 0, 4096, 0 }, -EPROTO },
	{ "an OPEN with too small a window", { WIRE_MUX_OPEN, 0, 7, 1, 4095, 0 }, -EPROTO },
	{ "an OPEN with too large a window",
	  { WIRE_MUX_OPEN, 0, 7, 1, WIRE_MUX_WINDOW_MAX + 1, 0 },
	  -EPROTO },
	{ "an OPEN with a ring", { WIRE_MUX_OPEN, 0, 7, 1, 4096, 1, UINT32_MAX }, 0 },
	{ "an OPEN with a ring that cannot be", { WIRE_MUX_OPEN, 0, 7, 1, 4097, 1, 2 }, -EPROTO },
	{ "an OPEN with a ring beyond the end",
	  { WIRE_MUX_OPEN, 0, 7, 1, 4096, UINT64_MAX - 4095, 2 },
	  -EPROTO },
	{ "an OPEN with too large a key",
	  { WIRE_MUX_OPEN, 0, 7, 1, 4096, 1, 1ull << 32 },
	  -EPROTO },
	{ "an OPEN with a key and no ring", { WIRE_MUX_OPEN, 0, 7, 1, 4096, 0, 2 }, -EPROTO },
	{ "an OPEN with rights", { WIRE_MUX_OPEN, 1, 7, 1, 4096, 1, 2 }, -EPROTO },
	{ "an ACCEPT with a ring", { WIRE_MUX_ACCEPT, 0, 1, 2, 65536, 4096, 2 }, 0 },
	{ "an ACCEPT with a ring that cannot be",
	  { WIRE_MUX_ACCEPT, 0, 1, 2, 65537, 4096, 2 },
	  -EPROTO },
	{ "an ACCEPT", { WIRE_MUX_ACCEPT, 0, 1, 2, WIRE_MUX_WINDOW_MAX, 0 }, 0 },
	{ "an ACCEPT to nobody", { WIRE_MUX_ACCEPT, 0, 0, 2, 4096, 0 }, -EPROTO },
	{ "an ACCEPT by nobody", { WIRE_MUX_ACCEPT, 0, 1, 0, 4096, 0 }, -EPROTO },
	{ "an ACCEPT with too small a window", { WIRE_MUX_ACCEPT, 0, 1, 2, 0, 0 }, -EPROTO },
	{ "a REFUSE", { WIRE_MUX_REFUSE, 0, 1, 0, ECONNREFUSED, 0 }, 0 },
	{ "a REFUSE without a reason", { WIRE_MUX_REFUSE, 0, 1, 0, 0, 0 }, -EPROTO },
	{ "a REFUSE with no errno", { WIRE_MUX_REFUSE, 0, 1, 0, 4096, 0 }, -EPROTO },
	{ "a CREDIT", { WIRE_MUX_CREDIT, 0, 1, 0, 0, UINT64_MAX }, 0 },
	{ "a CREDIT for nobody", { WIRE_MUX_CREDIT, 0, 0, 0, 0, 1 }, -EPROTO },
	{ "a FIN", { WIRE_MUX_FIN, 0, 1, 0, 0, 0 }, 0 },
	{ "a FIN that says why", { WIRE_MUX_FIN, 0, 1, 0, ECONNRESET, 0 }, 0 },
	{ "a FIN for no reason that there is", { WIRE_MUX_FIN, 0, 1, 0, 4096, 0 }, -EPROTO },
	{ "a FIN with more in it", { WIRE_MUX_FIN, 0, 1, 0, 0, 1 }, -EPROTO },
	{ "what is not zero that shall be", { WIRE_MUX_FIN, 1, 1, 0, 0, 0 }, -EPROTO },
	{ "type 0", { 0, 0, 1, 0, 0, 0 }, -EPROTO },
	{ "a GRANT", { WIRE_MUX_GRANT, WIRE_MUX_MAY_READ, 1, 2, 3, 4096, 1 }, 0 },
	{ "a GRANT of all rights", { WIRE_MUX_GRANT, 3, 1, 2, 3, 4096, 1 }, 0 },
	{ "a GRANT without rights", { WIRE_MUX_GRANT, 0, 1, 2, 3, 4096, 1 }, -EPROTO },
	{ "a GRANT of a right that there is not",
	  { WIRE_MUX_GRANT, 4, 1, 2, 3, 4096, 1 },
	  -EPROTO },
	{ "a GRANT without a handle", { WIRE_MUX_GRANT, 1, 1, 0, 3, 4096, 1 }, -EPROTO },
	{ "a GRANT of nothing", { WIRE_MUX_GRANT, 1, 1, 2, 3, 4096, 0 }, -EPROTO },
	{ "a GRANT beyond the end",
	  { WIRE_MUX_GRANT, 1, 1, 2, 3, 4096, UINT64_MAX - 4095 },
	  -EPROTO },
	{ "a WITHDRAW", { WIRE_MUX_WITHDRAW, 0, 1, 2, 0, 0 }, 0 },
	{ "a WITHDRAW of no handle", { WIRE_MUX_WITHDRAW, 0, 1, 0, 0, 0 }, -EPROTO },
	{ "a WITHDRAWN", { WIRE_MUX_WITHDRAWN, 0, 1, 2, 0, 0 }, 0 },
	{ "a WITHDRAWN with more in it", { WIRE_MUX_WITHDRAWN, 0, 1, 2, 3, 0 }, -EPROTO },
	{ "a length where none belongs", { WIRE_MUX_FIN, 0, 1, 0, 0, 0, 1 }, -EPROTO },
	{ "a LEAVE", { WIRE_MUX_LEAVE, 0, 0, 0, 0, 0 }, 0 },
	{ "a LEFT", { WIRE_MUX_LEFT, 0, 0, 0, 0, 0 }, 0 },
	{ "a STAY", { WIRE_MUX_STAY, 0, 0, 0, 0, 0 }, 0 },
	{ "a LEAVE to a connection", { WIRE_MUX_LEAVE, 0, 1, 0, 0, 0 }, -EPROTO },
	{ "a LEFT from a connection", { WIRE_MUX_LEFT, 0, 0, 1, 0, 0 }, -EPROTO },
	{ "a STAY that says why", { WIRE_MUX_STAY, 0, 0, 0, 1, 0 }, -EPROTO },
	{ "a LEAVE of a position", { WIRE_MUX_LEAVE, 0, 0, 0, 0, 1 }, -EPROTO },
	{ "a type that does not exist", { WIRE_MUX_STAY + 1, 0, 0, 0, 0, 0 }, -EPROTO },
};

static void decodes(void **state)
{
	const struct sample *sample = *state;
	char shifted[sizeof(struct wire_mux_control) + 1];
	struct wire_mux_control out;

	memcpy(shifted + 1, &sample->message, sizeof(sample->message));
	memset(&out, 0xee, sizeof(out));
	assert_int_equal(wire_mux_control_decode(shifted + 1, sizeof(out), &out), sample->expect);
	if (!sample->expect)
		assert_memory_equal(&out, &sample->message, sizeof(out));
}

static void other_lengths_are_refused(void **state)
{
	struct wire_mux_control fin = { WIRE_MUX_FIN, 0, 1, 0, 0, 0 }, out;
	size_t length;

	(void)state;
	for (length = 0; length < sizeof(fin); length++)
		assert_int_equal(wire_mux_control_decode(&fin, length, &out), -EPROTO);
	assert_int_equal(wire_mux_control_decode(&fin, sizeof(fin) + 1, &out), -EPROTO);
}

#define NR_SAMPLES (sizeof(samples) / sizeof(*samples))

int main(void)
{
	struct CMUnitTest tests[NR_SAMPLES + 1] = {
		{ "other lengths are refused", other_lengths_are_refused, NULL, NULL, NULL },
	};
	size_t i;

	for (i = 0; i < NR_SAMPLES; i++)
		tests[i + 1] = (struct CMUnitTest){ samples[i].sentence, decodes, NULL, NULL,
						    (void *)&samples[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
