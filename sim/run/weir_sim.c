/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weir-sim: one run of the simulator. Settings in, "name=value" each; one JSON object out. The
 * output depends on the arguments and the profile only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/run/report.h"

struct sim_run {
	struct sim_settings settings;
	struct sim_world world;
	struct sim_loads *load, *background;
	struct sim_report report;
};

static void take_usage(const struct sim_run *run, struct sim_usage usage[2])
{
	uint32_t clients = (uint32_t)run->settings.clients;

	sim_usage_take(&usage[0], &run->world, 0, clients);
	sim_usage_take(&usage[1], &run->world, clients, run->world.nr_nodes - clients);
}

static int begin(struct sim_run *run)
{
	int rc = sim_world_init(&run->world, &run->settings);

	if (!rc)
		rc = sim_loads_start(&run->world, &run->settings.load, &run->load);
	if (!rc && run->settings.background.threads)
		rc = sim_loads_start(&run->world, &run->settings.background, &run->background);
	return rc;
}

static void measure(struct sim_run *run)
{
	struct sim_report *report = &run->report;

	sim_clock_run(&run->world.clock, run->settings.warmup_ps);
	sim_loads_forget(run->load);
	if (run->background)
		sim_loads_forget(run->background);
	take_usage(run, report->before);
	sim_clock_run(&run->world.clock, run->settings.warmup_ps + run->settings.run_ps / 2);
	report->half_ops = run->load->tally.ops;
	sim_clock_run(&run->world.clock, run->settings.warmup_ps + run->settings.run_ps);
	take_usage(run, report->after);
	report->run_ps = run->settings.run_ps;
	report->load = sim_loads_tally(run->load);
	report->background = run->background ? sim_loads_tally(run->background) : NULL;
	report->events = run->world.clock.happened;
	sim_report_print(stdout, report);
}

static void end(struct sim_run *run)
{
	sim_loads_stop(run->load);
	sim_loads_stop(run->background);
	sim_world_fini(&run->world);
	sim_settings_fini(&run->settings);
}

int main(int argc, char **argv)
{
	static struct sim_run run;
	char why[SIM_SETTINGS_WHY_BYTES];
	const char *profiles = getenv("WEIR_SIM_PROFILES");
	int rc;

	if (sim_settings_parse(&run.settings, profiles ? profiles : WEIR_SIM_PROFILES, argc - 1,
			       argv + 1, why)) {
		fprintf(stderr, "weir-sim: %s\n", why);
		return 2;
	}
	rc = begin(&run);
	if (rc)
		fprintf(stderr, "weir-sim: %s\n", strerror(-rc));
	else
		measure(&run);
	end(&run);
	return rc || fflush(stdout) ? 1 : 0;
}
