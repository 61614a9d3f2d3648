/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_LIB_VOLUME_MAINTAIN_H
#define WEIR_LIB_VOLUME_MAINTAIN_H

/*
 * The maintaining thread of the volume @arg: maintains its layout each second, after a kick, and
 * often while pieces wait.
 */
void *weir_volume_maintain(void *arg);

#endif
