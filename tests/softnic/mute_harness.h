/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef MUTE_HARNESS_H
#define MUTE_HARNESS_H

#include <stdint.h>

/* Some slot of softnic's that was free; until the socket is closed, its holder never answers. */
uint32_t take_slot(int *fd);

#endif
