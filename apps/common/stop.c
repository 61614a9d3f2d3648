/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/common/stop.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t requested;

static void request(int signal)
{
	(void)signal;
	requested = 1;
}

void stop_on_signals(void)
{
	struct sigaction action = { .sa_handler = request, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool stop_requested(void)
{
	return requested;
}

void stop_or_sleep(double seconds)
{
	struct timespec left = {
		.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	/* A signal just before nanosleep() takes effect after the sleep: sleeps are short. */
	while (!requested && nanosleep(&left, &left))
		;
}
