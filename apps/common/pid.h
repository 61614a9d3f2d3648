/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_APPS_COMMON_PID_H
#define WEIR_APPS_COMMON_PID_H

#include <stdbool.h>
#include <sys/types.h>

/* A process's number as a user writes it; false when it can be none. */
bool pid_parse(const char *text, pid_t *pid);

#endif
