/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory registered in the host and in a GPU. */
#ifndef WEIR_LIB_EXCHANGE_MEMORY_H
#define WEIR_LIB_EXCHANGE_MEMORY_H

#include "lib/exchange/exchange.h"

/* Allocates and registers all memory, for the pool size in @x->peer. Return: 0; -ENOMEM. */
int weir_exchange_memory_make(struct weir_exchange *x, struct weir_error *error);
void weir_exchange_memory_free(struct weir_exchange *x);

/* Copies user data, perhaps to or from a GPU. Return: 0; @x->status if the GPU fails. */
int weir_exchange_copy(struct weir_exchange *x, void *to, const void *from, size_t bytes);

/* Copies filled slots to where the device reads. Return: as weir_exchange_copy(). */
int weir_exchange_stage(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			unsigned int count);

/* Copies arrived slots to where the user reads. Return: as weir_exchange_copy(). */
int weir_exchange_unstage(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count);

#endif
