/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Faults caused in a process that runs, and what an end sees of them.
 */
#ifndef WEIR_TESTS_SOFTNIC_CONTROL_FAULT_FIXTURE_H
#define WEIR_TESTS_SOFTNIC_CONTROL_FAULT_FIXTURE_H

#include "tests/support/verbs_puppet.h"

/* Has a process meet what NAME=VALUE,... says: 0 or a negative errno. */
int fault(pid_t pid, const char *text);

/* Ourselves. It holds when this returns. */
void cause(const char *text);

/* Waits for the next asynchronous event, which must be of that type. */
void expect_event(struct endpoint *e, enum ibv_event_type type);

enum ibv_port_state port_state(struct endpoint *e);

#endif
