/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Prints sessions' counters as text or JSON. */
#ifndef WEIR_APPS_INSPECT_SESSION_PRINT_H
#define WEIR_APPS_INSPECT_SESSION_PRINT_H

#include "apps/inspect/session_list.h"
#include "apps/common/json.h"

/* A line per session; nothing without sessions. */
void session_print_table(const struct session_list *find);

/* All counters, with explanations. @entries: as for cache_pressure_of(). */
void session_print_detail(const struct session_list *find, uint64_t entries);

/* Writes the member "sessions" into an open object. @entries: as for cache_pressure_of(). */
void session_print_json(const struct session_list *find, uint64_t entries, struct json *json);

#endif
