/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SIGINT and SIGTERM as a question that loops may ask. */
#ifndef WEIR_APPS_COMMON_STOP_H
#define WEIR_APPS_COMMON_STOP_H

#include <stdbool.h>

/* From now on the two signals interrupt sleeps and are remembered; a second one kills. */
void stop_on_signals(void);
bool stop_requested(void);

/* Sleeps; ends early when asked to stop. */
void stop_or_sleep(double seconds);

#endif
