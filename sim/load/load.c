/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Dispatches to the driver of a load, and keeps the results common to all drivers. */
#include <errno.h>
#include <string.h>

#include "sim/load/load.h"

int sim_loads_start(struct sim_world *world, const struct sim_load_settings *load,
		    struct sim_loads **out)
{
	static const struct sim_load_kind *const kinds[] = {
		[SIM_DRIVER_VERBS] = &sim_verbs_load,	    [SIM_DRIVER_WEIR] = &sim_engine_load,
		[SIM_DRIVER_PINGPONG] = &sim_pingpong_load, [SIM_DRIVER_MUX] = &sim_mux_load,
		[SIM_DRIVER_EXCHANGE] = &sim_exchange_load,
	};

	return kinds[load->driver]->start(world, load, out);
}

void sim_loads_stop(struct sim_loads *loads)
{
	if (!loads)
		return;
	sim_zipf_fini(&loads->zipf);
	loads->kind->stop(loads);
}

const struct sim_tally *sim_loads_tally(struct sim_loads *loads)
{
	struct sim_tally *tally = &loads->tally;

	tally->empty_polls = tally->arms = tally->sleeps = tally->takes = tally->contended = 0;
	tally->window_waits = tally->peak_bytes = tally->unloaded = tally->bitmap_reads = 0;
	tally->send_work_ps = tally->take_work_ps = 0;
	loads->kind->collect(loads);
	return tally;
}

void sim_loads_forget(struct sim_loads *loads)
{
	memset(&loads->tally, 0, sizeof(loads->tally));
	loads->kind->forget(loads);
}

void sim_loads_count(struct sim_loads *loads, uint64_t begin_ps, uint64_t bytes)
{
	loads->tally.ops++;
	loads->tally.bytes += bytes;
	weir_histogram_add(&loads->tally.latency_ps, loads->world->clock.now_ps - begin_ps);
}

void sim_memory_in(struct sim_thread *self, const struct sim_load_settings *load, uint64_t bytes,
		   bool is_read)
{
	if (load->mr == SIM_MR_PRE && !is_read)
		sim_copy(self, bytes);
	else if (load->mr == SIM_MR_DYN)
		sim_reg_mr(self, bytes);
}

void sim_memory_out(struct sim_thread *self, const struct sim_load_settings *load, uint64_t bytes,
		    bool is_read)
{
	if (load->mr == SIM_MR_PRE && is_read)
		sim_copy(self, bytes);
	else if (load->mr == SIM_MR_DYN)
		sim_dereg_mr(self, bytes);
}
