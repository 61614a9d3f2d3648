/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What to post next: merges the ready requests, and chains them into batches. */
#ifndef WEIR_CORE_BATCH_H
#define WEIR_CORE_BATCH_H

#include "core/engine.h"

/**
 * weir_batch_lone() - post the one request that is ready, if it is the only one
 * @e: the engine
 * @out: becomes the post; untouched when this is a case for weir_batch_next()
 *
 * It has no neighbours to look for. Going out whole, at once, it pays for nothing that only
 * company needs: no plan, no place in line, no note of a decision.
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: true when there is something to post.
 */
bool weir_batch_lone(struct weir_engine *e, struct weir_action *out);

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
