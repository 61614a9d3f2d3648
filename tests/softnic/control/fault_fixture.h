/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inject faults into a running process, and observe an end. */
#ifndef WEIR_TESTS_SOFTNIC_CONTROL_FAULT_FIXTURE_H
#define WEIR_TESTS_SOFTNIC_CONTROL_FAULT_FIXTURE_H

#include "tests/support/verbs_puppet.h"

/* Inject the faults NAME=VALUE,... into a process. Return: 0 or a negative errno. */
int fault(pid_t pid, const char *text);

/* Inject faults into this process; effective on return. */
void cause(const char *text);

/* Wait for the next asynchronous event, of type @type. */
void expect_event(struct endpoint *e, enum ibv_event_type type);

enum ibv_port_state port_state(struct endpoint *e);

#endif
