/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sessions' counters, for people and for programs. */
#ifndef WEIR_APPS_SHOW_H
#define WEIR_APPS_SHOW_H

#include "apps/find.h"
#include "apps/json.h"

/* One session a line; nothing if there is none. */
void show_table(const struct find *find);

/* All that there is, and what each number means. */
void show_detail(const struct find *find);

/* The member "sessions" of an open object. */
void show_json(const struct find *find, struct json *json);

#endif
