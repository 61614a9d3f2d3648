/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Chooses what to post next: merges ready requests into WRs and chains WRs into batches. */
#ifndef WEIR_CORE_ENGINE_BATCH_H
#define WEIR_CORE_ENGINE_BATCH_H

#include "core/engine/engine.h"

/**
 * weir_batch_next() - take the next batch, if anything can be posted
 * @e: the engine
 * @out: receives the post; untouched if there is none
 *
 * Afterwards the engine waits for the window if, and only if, the window alone stops it.
 *
 * Context: Any; never sleeps. Externally serialised.
 * Return: true if there is a batch.
 */
bool weir_batch_next(struct weir_engine *e, struct weir_action *out);

#endif
