/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SIGINT and SIGTERM as a flag that loops can poll. */
#ifndef WEIR_APPS_COMMON_STOP_H
#define WEIR_APPS_COMMON_STOP_H

#include <stdbool.h>

/* From now on both signals interrupt sleeps and set the flag; a second signal kills. */
void stop_on_signals(void);
bool stop_requested(void);

/* Sleeps until the time is over or a stop is requested. */
void stop_or_sleep(double seconds);

#endif
