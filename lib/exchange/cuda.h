/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A GPU's memory, through the CUDA driver, which is loaded when it is first wanted: nothing is
 * linked to it.
 *
 * Context of all: any thread; they may sleep. One object is one caller's at a time.
 */
#ifndef WEIR_LIB_EXCHANGE_CUDA_H
#define WEIR_LIB_EXCHANGE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>

struct weir_cuda;

/**
 * struct weir_cuda_memory - memory of a GPU
 * @base: what the driver gave
 * @at: within that, aligned to WEIR_CUDA_ALIGN: an address of the GPU, not to be read by the CPU
 */
struct weir_cuda_memory {
	uint64_t base;
	char *at;
};

#define WEIR_CUDA_ALIGN 65536u

/**
 * weir_cuda_open() - load the driver and hold a GPU's primary context
 * @gpu: which, from 0
 * @cuda: end it with weir_cuda_close()
 *
 * Return: 0; -ENODEV there is no driver, or no such GPU; -ENOMEM.
 */
int weir_cuda_open(unsigned int gpu, struct weir_cuda **cuda, struct weir_error *error);
void weir_cuda_close(struct weir_cuda *cuda);

/* Memory of zeros. Return: 0; -ENOMEM. */
int weir_cuda_alloc(struct weir_cuda *cuda, size_t bytes, struct weir_cuda_memory *memory,
		    struct weir_error *error);
void weir_cuda_free(struct weir_cuda *cuda, struct weir_cuda_memory *memory);

/* Copies; each end is the GPU's or the host's. Done when it returns. Return: 0; -EIO. */
int weir_cuda_copy(struct weir_cuda *cuda, void *to, const void *from, size_t bytes);

/* Return: a dma-buf of it, which the caller closes; -EOPNOTSUPP the driver makes none. */
int weir_cuda_dmabuf(struct weir_cuda *cuda, const struct weir_cuda_memory *memory, size_t bytes);

/* What other devices have written to the GPU's memory is there for it to read. Return: 0; -EIO. */
int weir_cuda_flush(struct weir_cuda *cuda);

#endif
