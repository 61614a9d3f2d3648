/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The thread that sends spans to the collector, and what it shares with the records. */
#ifndef WEIR_LIB_SPAN_SENDER_H
#define WEIR_LIB_SPAN_SENDER_H

#include "lib/span/settings.h"
#include "lib/span/span.h"

/* Starts the thread. @settings: kept until weir_span_sender_stop(). Return: 0; -ENOMEM. */
int weir_span_sender_start(const struct weir_span_settings *settings);

/* Sends the spans that have ended, and ends the thread. Context: sleeps, up to 4 s. */
void weir_span_sender_stop(void);

/* Adds to the counts of spans: those taken and refused. Context: any thread. */
void weir_span_sender_counts(struct weir_span_counts *counts);

/*
 * span.c: takes the ended spans, oldest first, chained. Each goes back by weir_span_put_back().
 * Context: the sender's thread.
 */
struct weir_inbox_node *weir_span_take_ended(void);
void weir_span_put_back(struct weir_span *span);

#endif
