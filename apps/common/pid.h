/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_APPS_COMMON_PID_H
#define WEIR_APPS_COMMON_PID_H

#include <stdbool.h>
#include <sys/types.h>

/* Parses a process id. Returns false if @text is not a valid one. */
bool pid_parse(const char *text, pid_t *pid);

/* Replaces what cannot be shown in a process's name, on a terminal or in JSON, by '?'. */
void pid_clean_comm(char *comm);

#endif
