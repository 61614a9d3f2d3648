/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What weir run hands down, in the environment. What it would not say is as if it said nothing. */
#ifndef WEIR_PRELOAD_UNLOAD_SETTINGS_H
#define WEIR_PRELOAD_UNLOAD_SETTINGS_H

#include <stdint.h>

#include "core/unload/path.h"

/* WEIR_UNLOAD: "measured", "frequency" or "always". */
enum weir_path_policy settings_policy(void);

/* WEIR_UNLOAD_HOT_PAGES: pages of 4 KiB that a peer's NIC has room for. */
uint32_t settings_hot_pages(void);

/* WEIR_UNLOAD_KEY: the file of the key that peers on other hosts have, too; NULL: there is none. */
const char *settings_key(void);

/* WEIR_UNLOAD_CPU: percent of a processor that may go into copying for peers, 1 to 100. */
uint32_t settings_cpu_percent(void);

/* For how long a target may copy nothing that it has; in ms in WEIR_UNLOAD_PATIENCE_MS. */
uint64_t settings_patience_ns(void);

#endif
