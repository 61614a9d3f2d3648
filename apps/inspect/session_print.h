/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions' counters, for people and for programs. */
#ifndef WEIR_APPS_INSPECT_SESSION_PRINT_H
#define WEIR_APPS_INSPECT_SESSION_PRINT_H

#include "apps/inspect/session_list.h"
#include "apps/common/json.h"

/* One session a line; nothing if there is none. */
void show_table(const struct find *find);

/* All that there is, and what each number means. @entries: as for pressure_of(). */
void show_detail(const struct find *find, uint64_t entries);

/* The member "sessions" of an open object. @entries: as for pressure_of(). */
void show_json(const struct find *find, uint64_t entries, struct json *json);

#endif
