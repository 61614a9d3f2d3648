/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GPU memory by way of the CUDA driver, loaded on first use with dlopen(3).
 *
 * Context of all functions: any thread; they may sleep. Each object is externally serialised.
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
 * @base: the driver's address
 * @at: @base aligned to WEIR_CUDA_ALIGN: a GPU address, not readable by the CPU
 */
struct weir_cuda_memory {
	uint64_t base;
	char *at;
};

#define WEIR_CUDA_ALIGN 65536u

/**
 * weir_cuda_open() - load the driver and hold a GPU's primary context
 * @gpu: GPU number, from 0
 * @cuda: receives the object; end it with weir_cuda_close()
 *
 * Return: 0; -ENODEV no driver, or no such GPU; -ENOMEM.
 */
int weir_cuda_open(unsigned int gpu, struct weir_cuda **cuda, struct weir_error *error);
void weir_cuda_close(struct weir_cuda *cuda);

/* Allocates zeroed memory. Return: 0; -ENOMEM. */
int weir_cuda_alloc(struct weir_cuda *cuda, size_t bytes, struct weir_cuda_memory *memory,
		    struct weir_error *error);
void weir_cuda_free(struct weir_cuda *cuda, struct weir_cuda_memory *memory);

/* Copies between GPU and host memory in any direction; complete on return. Return: 0; -EIO. */
int weir_cuda_copy(struct weir_cuda *cuda, void *to, const void *from, size_t bytes);

/*
 * Return: a dma-buf of the memory, to be closed by the caller; -EOPNOTSUPP the driver makes
 * none.
 */
int weir_cuda_dmabuf(struct weir_cuda *cuda, const struct weir_cuda_memory *memory, size_t bytes);

/* Makes other devices' writes to GPU memory visible to the GPU. Return: 0; -EIO. */
int weir_cuda_flush(struct weir_cuda *cuda);

#endif
