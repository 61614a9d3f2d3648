/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_APPS_METRICS_NEGOTIATE_H
#define WEIR_APPS_METRICS_NEGOTIATE_H

#include "apps/metrics/exposition.h"

/**
 * metrics_negotiate() - choose the format of an answer
 * @accept: the request's header Accept, or NULL
 *
 * Return: the format of the highest weight. Of several the one that says most: protocol buffers
 * before OpenMetrics before text. Text if none is acceptable.
 */
enum exposition_format metrics_negotiate(const char *accept);

#endif
