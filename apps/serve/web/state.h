/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The state of a donor as JSON, for its page and for programs. */
#ifndef WEIR_APPS_SERVE_WEB_STATE_H
#define WEIR_APPS_SERVE_WEB_STATE_H

#include <stdio.h>

struct weir_donor;

/*
 * Writes an object. Counters in it only grow. Without memory or descriptors a part is missing for
 * once. Context: any thread but the donor's.
 */
void state_write(FILE *out, struct weir_donor *donor);

#endif
