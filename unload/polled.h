/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the program polls. */
#ifndef UNLOAD_POLLED_H
#define UNLOAD_POLLED_H

struct device;

/* Puts ours in the place of the program's device's function. */
void polled_take_over(struct device *device);

#endif
