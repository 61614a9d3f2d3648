/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Telling a process that has the software device open what shall go wrong from now on.
 */
#ifndef WEIR_SOFTNIC_CONTROL_CONTROL_H
#define WEIR_SOFTNIC_CONTROL_CONTROL_H

#include <sys/types.h>

#include "option.h"

/**
 * softnic_fault() - set faults of a process of this user
 * @pid: which, as this process sees it
 * @options: those that are given are set
 *
 * Context: Any thread; waits up to half a second for each answer.
 * Return: 0, -ESRCH if no such process has the device open, -ETIMEDOUT if it does not answer
 * (it is stopped), or another negative errno.
 */
int softnic_fault(pid_t pid, const struct softnic_options *options);

#endif
