/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Injecting faults into a process that has the software device open.
 */
#ifndef WEIR_SOFTNIC_CONTROL_CONTROL_H
#define WEIR_SOFTNIC_CONTROL_CONTROL_H

#include <sys/types.h>

#include "option.h"

/**
 * softnic_control_set_faults() - set the faults of a process of this user
 * @pid: the process, in the PID namespace of the caller
 * @options: the options marked in @options->given are set
 *
 * Context: Any thread; waits up to half a second for each answer.
 * Return: 0, or
 *	-ESRCH     no such process has the device open;
 *	-ETIMEDOUT the process does not answer, for example because it is stopped;
 *	another negative errno.
 */
int softnic_control_set_faults(pid_t pid, const struct softnic_options *options);

#endif
