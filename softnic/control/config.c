// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The options of this process, from the environment variable WEIR_SOFTNIC.
 *
 * A program under test for a fault must not run without the fault. So an invalid option disables
 * the device.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "config.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct softnic_options options;
static const struct softnic_options *valid;

static void read_environment(void)
{
	const char *text = getenv("WEIR_SOFTNIC");
	char why[512];

	option_defaults(&options);
	if (!text || !option_parse(text, OPTION_DEVICES, &options, why, sizeof(why)))
		valid = &options;
	else
		fprintf(stderr, "softnic: WEIR_SOFTNIC: %s; no device until this is corrected\n",
			why);
}

const struct softnic_options *config_get(void)
{
	pthread_once(&once, read_environment);
	return valid;
}
