/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is registered, in the host and in a GPU. */
#ifndef WEIR_LIB_EXCHANGE_MEMORY_H
#define WEIR_LIB_EXCHANGE_MEMORY_H

#include "lib/exchange/exchange.h"

/* Takes and registers all memory; @x->peer says how large its pool is. Return: 0; -ENOMEM. */
int weir_exchange_memory_make(struct weir_exchange *x, struct weir_error *error);
void weir_exchange_memory_free(struct weir_exchange *x);

/* Copies what the user has, or is to have. Return: 0; or @x->status, if the GPU cannot. */
int weir_exchange_copy(struct weir_exchange *x, void *to, const void *from, size_t bytes);

/* Slots that were filled are where the device reads them. Return: as weir_exchange_copy(). */
int weir_exchange_stage(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			unsigned int count);

/* Slots that were taken are where the user reads them. Return: as weir_exchange_copy(). */
int weir_exchange_unstage(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count);

#endif
