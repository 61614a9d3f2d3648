/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The public segments of the running programs, for code with knowledge of the layout.
 */
#ifndef WEIR_SOFTNIC_CONTROL_VISIT_H
#define WEIR_SOFTNIC_CONTROL_VISIT_H

#include "softnic/shm/shared.h"

/* @fd, a sealed memfd, and its mapping @pub are valid during the call. The owner may write. */
typedef void softnic_visitor(void *arg, pid_t pid, int fd, const struct shared_pub *pub);

/**
 * softnic_stat_visit() - visit every process of this user with the device open
 *
 * As softnic_stat(), a visit of the counters.
 */
int softnic_stat_visit(softnic_visitor *visit, void *arg, size_t *silent);

#endif
