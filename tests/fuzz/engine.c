/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz the engine with sequences of events. The first six bytes choose the window, the channels
 * and the batching. Then each event is four bytes; the simulated host checks every step.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/engine_sim.h"

#define SETTINGS 6
#define EVENTS_MAX 1000
#define NEVER UINT64_MAX

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int statuses[] = { 0, 0, 0, 0, -ECONNRESET, -ENOTCONN, -EACCES, -EFAULT, -EIO };

struct fuzz_engine_run {
	struct engine_sim *sim;
	uint64_t now_ns;
	int submitted;
};

static void submit(struct fuzz_engine_run *run, int engine, const uint8_t *byte)
{
	int op = byte[1] % 6;
	bool in_pages = byte[0] & 1; /* where neighbours meet */
	uint64_t remote = in_pages ? 512ull * (byte[2] % 16) : 64ull * byte[2];
	uint32_t length = in_pages ? 512u * (1 + byte[3] % 2) : 1 + 97u * byte[3];
	uint64_t deadline_ns = byte[1] & 0x80 ? run->now_ns + 1 + byte[2] % 16 : NEVER;

	if (op == 2 || op == 3)
		length = 8;
	if (engine_sim_submit(run->sim, engine, op, remote, length, byte[1] >> 5 & 3, byte[0] & 2,
			      deadline_ns) >= 0)
		run->submitted++;
}

static void complete(struct fuzz_engine_run *run, int index, int status)
{
	struct engine_sim_event wr;
	int count = engine_sim_in_flight(run->sim, 0, &wr);

	if (!count)
		return;
	engine_sim_in_flight(run->sim, index % count, &wr);
	engine_sim_complete(run->sim, wr.wr, status);
}

static void step(struct fuzz_engine_run *run, const uint8_t *byte)
{
	int engine = byte[0] / 16 % SIM_ENGINES;

	switch (byte[0] % 16) {
	case 0:
		engine_sim_channel_up(run->sim, engine, byte[1] % SIM_CHANNELS);
		break;
	case 1:
		if (byte[2] & 1)
			engine_sim_channel_down(run->sim, engine, byte[1] % SIM_CHANNELS);
		else
			engine_sim_channel_broken(run->sim, engine, byte[1] % SIM_CHANNELS);
		break;
	case 2:
		engine_sim_cancel(run->sim, run->submitted - 1 - byte[1] % 16);
		break;
	case 3:
		run->now_ns += byte[1] % 16;
		engine_sim_expire(run->sim, run->now_ns);
		break;
	case 4:
		engine_sim_hold(run->sim, byte[1] % 2);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
	case 9:
		complete(run, byte[1], statuses[byte[2] % (sizeof(statuses) / sizeof(*statuses))]);
		break;
	default:
		submit(run, engine, byte);
	}
}

static void check(void)
{
	if (!engine_sim_broken())
		return;
	fprintf(stderr, "broken: %s\n", engine_sim_broken());
	abort();
}

static void complete_all(struct fuzz_engine_run *run)
{
	struct engine_sim_event wr;

	while (engine_sim_in_flight(run->sim, 0, &wr)) {
		complete(run, 0, 0);
		check();
	}
}

static void finish(struct fuzz_engine_run *run)
{
	int i;

	engine_sim_hold(run->sim, 0);
	complete_all(run);
	for (i = 0; i < SIM_ENGINES * SIM_CHANNELS; i++) {
		engine_sim_channel_down(run->sim, i / SIM_CHANNELS, i % SIM_CHANNELS);
		check();
		complete_all(run);
	}
	if (engine_sim_undone(run->sim)) {
		fprintf(stderr, "broken: every request is done in the end\n");
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_engine_run run = { 0 };
	size_t i;

	if (size < SETTINGS)
		return 0;
	run.sim = engine_sim_new((1 + data[0] % 32) * (uint64_t)SIM_FRAGMENT, 1 + data[1] % 32,
				 1 + data[2] % 8, data[4] % 32, data[5] & 1 ? 8 + data[5] % 25 : 0,
				 data[3]);
	if (data[5] & 2)
		engine_sim_move_window(run.sim);
	for (i = 0; i < SIM_ENGINES * SIM_CHANNELS; i++) {
		if (data[3] % SIM_CHANNELS >= (int)(i % SIM_CHANNELS))
			engine_sim_channel_up(run.sim, (int)i / SIM_CHANNELS,
					      (int)i % SIM_CHANNELS);
	}
	for (i = SETTINGS; i + 4 <= size && i / 4 <= EVENTS_MAX; i += 4) {
		step(&run, data + i);
		check();
		while (engine_sim_event(run.sim).type != SIM_NOTHING)
			;
	}
	finish(&run);
	engine_sim_free(run.sim);
	return 0;
}
