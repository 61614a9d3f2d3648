/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings passed by `weir run` in the environment. Invalid values are ignored. */
#ifndef WEIR_PRELOAD_UNLOAD_SETTINGS_H
#define WEIR_PRELOAD_UNLOAD_SETTINGS_H

#include <stdint.h>

#include "core/unload/path.h"

/* WEIR_UNLOAD: "measured", "frequency" or "always". */
enum weir_path_policy settings_policy(void);

/* WEIR_UNLOAD_HOT_PAGES: pages of 4 KiB that fit the cache of a peer's NIC. */
uint32_t settings_hot_pages(void);

/* WEIR_UNLOAD_KEY: file with the key shared with peers on other hosts, or NULL. */
const char *settings_key(void);

/* WEIR_UNLOAD_CPU: percent of a CPU for copies on behalf of peers, 1 to 100. */
uint32_t settings_cpu_percent(void);

/* WEIR_UNLOAD_PATIENCE_MS: how long a target with pending writes may make no progress, in ms. */
uint64_t settings_stall_timeout_ns(void);

#endif
