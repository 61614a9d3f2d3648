/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the program polls. */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_POLL_CQ_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_POLL_CQ_H

struct unload_device;

/* Puts ours in the place of the program's device's function. */
void poll_cq_hook(struct unload_device *device);

#endif
