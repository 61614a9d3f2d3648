/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions' counters, for people and for programs. */
#ifndef WEIR_APPS_INSPECT_SESSION_PRINT_H
#define WEIR_APPS_INSPECT_SESSION_PRINT_H

#include "apps/inspect/session_list.h"
#include "apps/common/json.h"

/* One session a line; nothing if there is none. */
void session_print_table(const struct session_list *find);

/* All that there is, and what each number means. @entries: as for cache_pressure_of(). */
void session_print_detail(const struct session_list *find, uint64_t entries);

/* The member "sessions" of an open object. @entries: as for cache_pressure_of(). */
void session_print_json(const struct session_list *find, uint64_t entries, struct json *json);

#endif
