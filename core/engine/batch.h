/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What to post next: merges the ready requests, and chains them into batches. */
#ifndef WEIR_CORE_ENGINE_BATCH_H
#define WEIR_CORE_ENGINE_BATCH_H

#include "core/engine/engine.h"

/**
 * weir_batch_next() - the next batch, if anything can be posted
 * @e: the engine
 * @out: becomes the post; untouched when there is none
 *
 * Afterwards the engine stands in its window's line if, and only if, the window alone
 * stops it.
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: true when there is a batch.
 */
bool weir_batch_next(struct weir_engine *e, struct weir_action *out);

#endif
