/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Formats the engine's decisions as text. */
#ifndef WEIR_APPS_INSPECT_TRACE_TEXT_H
#define WEIR_APPS_INSPECT_TRACE_TEXT_H

#include "core/base/trace.h"

#include <stdio.h>

/* The kind as a word, such as "post". A constant string. */
const char *trace_text_kind(const struct weir_trace_record *record);

/* libibverbs' text for the device's error status; for records with @verbs. */
const char *trace_text_verbs(const struct weir_trace_record *record);

/* Prints decision and reason, without a newline. */
void trace_text_print(FILE *out, const struct weir_trace_record *record);

#endif
