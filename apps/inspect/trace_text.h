/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A decision of the engine's, in words. */
#ifndef WEIR_APPS_INSPECT_TRACE_TEXT_H
#define WEIR_APPS_INSPECT_TRACE_TEXT_H

#include "core/base/trace.h"

#include <stdio.h>

/* What kind it is, in a word: "post". Lives for ever. */
const char *trace_text_kind(const struct weir_trace_record *record);

/* What the device said of what failed, in libibverbs' words; for one with @verbs. */
const char *trace_text_verbs(const struct weir_trace_record *record);

/* What was decided, and why: part of a line. */
void trace_text_print(FILE *out, const struct weir_trace_record *record);

#endif
