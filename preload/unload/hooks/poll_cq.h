/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hook of ibv_poll_cq(). */
#ifndef WEIR_PRELOAD_UNLOAD_HOOKS_POLL_CQ_H
#define WEIR_PRELOAD_UNLOAD_HOOKS_POLL_CQ_H

struct unload_device;

/* Installs the hook in the table of the program's device. */
void poll_cq_hook(struct unload_device *device);

#endif
