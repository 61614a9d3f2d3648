/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An exchange registers a single mapping. The peer may write the mirror and the doorbell behind
 * it, and read the bits; the rest is closed. The mapping is a memfd's, so that a fork() cannot
 * separate the process's pages from the device's by copy-on-write.
 *
 * GPU memory holds only payload, since the CPU reads all else. A device that can reach GPU
 * memory gets a dma-buf, or registers by way of nvidia-peermem. For other devices the driver
 * copies slots to and from host memory, which is laid out as if there were no GPU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/exchange/memory.h"

#define PAGE 4096ull
#define BELL_BYTES 64u

static uint64_t round_to_pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static uint64_t bits_bytes(const struct weir_exchange *x)
{
	return 8ull *
	       (weir_slot_bitmap_words(x->options.slots) + weir_slot_bitmap_words(x->peer.slots));
}

static bool heads_are_apart(const struct weir_exchange *x)
{
	return x->pool.gpu_mr;
}

/* In this order: pool, the peer's bits, doorbell source, receives, returns. */
static uint64_t pool_bytes(const struct weir_exchange *x)
{
	return x->options.slots * x->pool.head_stride + bits_bytes(x) + sizeof(*x->ring) +
	       x->nr_recvs * WEIR_EXCHANGE_RECV_BYTES +
	       WEIR_EXCHANGE_RETURN_BUFFERS * sizeof(struct wire_exchange_freed);
}

static uint64_t mirror_bytes(const struct weir_exchange *x)
{
	return x->peer.slots * x->mirror.head_stride + BELL_BYTES;
}

static int map_memory(struct weir_exchange *x, uint64_t bytes)
{
	int fd = memfd_create("weir-exchange", MFD_CLOEXEC);

	if (fd < 0)
		return -ENOMEM;
	if (!ftruncate(fd, (off_t)bytes))
		x->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (x->memory == MAP_FAILED)
		x->memory = NULL;
	x->memory_bytes = bytes;
	return fd;
}

static int register_mr(struct weir_exchange *x, struct ibv_mr **mr, void *at, uint64_t bytes,
		       int access, struct weir_error *error)
{
	*mr = ibv_reg_mr(x->pd, at, bytes, access);
	return *mr ? 0 : weir_error_set_memlock(error, "an exchange's pool", bytes, -errno);
}

static int register_all(struct weir_exchange *x, struct weir_error *error)
{
	int rc = register_mr(x, &x->pool_mr, x->pool.heads, pool_bytes(x), IBV_ACCESS_LOCAL_WRITE,
			     error);

	if (!rc)
		rc = register_mr(x, &x->mirror_mr, x->mirror.heads, mirror_bytes(x),
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, error);
	if (!rc)
		rc = register_mr(x, &x->bits_mr, x->bits, bits_bytes(x), IBV_ACCESS_REMOTE_READ,
				 error);
	return rc;
}

/* Allocates all memory that is not registered. */
static int books_make(struct weir_exchange *x)
{
	uint32_t slots = x->options.slots, peers = x->peer.slots;
	size_t out = weir_slot_bitmap_tx_bytes(slots);

	x->books = calloc(1, (out + 7) / 8 * 8 + weir_slot_bitmap_rx_bytes(peers));
	x->arrivals = calloc(peers, sizeof(*x->arrivals));
	x->order = calloc(peers, sizeof(*x->order));
	x->spare = calloc(x->nr_recvs, sizeof(*x->spare));
	x->back = calloc(peers, sizeof(*x->back));
	if (!x->books || !x->arrivals || !x->order || !x->spare || !x->back)
		return -ENOMEM;
	weir_slot_bitmap_tx_init(&x->out, slots, x->bits, x->books);
	weir_slot_bitmap_rx_init(&x->in, peers, x->bits + weir_slot_bitmap_words(slots),
				 (char *)x->books + (out + 7) / 8 * 8);
	return 0;
}

/* Payload lies behind the header, or in the GPU. */
static void lay_out_data(struct weir_exchange_pool *pool)
{
	pool->data = pool->gpu_mr ? pool->gpu.at :
				    pool->heads + sizeof(struct wire_exchange_slot_head);
	pool->user = pool->gpu.at ? pool->gpu.at : pool->data;
}

static void lay_out(struct weir_exchange *x)
{
	x->pool.heads = x->memory;
	x->fresh = (uint64_t *)(x->pool.heads + x->options.slots * x->pool.head_stride);
	x->ring = (uint64_t *)((char *)x->fresh + bits_bytes(x));
	x->recvs = (char *)(x->ring + 1);
	x->return_buffers =
		(struct wire_exchange_freed *)(x->recvs + x->nr_recvs * WEIR_EXCHANGE_RECV_BYTES);
	x->return_buffers_free = (1u << WEIR_EXCHANGE_RETURN_BUFFERS) - 1;
	x->mirror.heads = x->memory + round_to_pages(pool_bytes(x));
	x->doorbell = (uint64_t *)(x->mirror.heads + x->peer.slots * x->mirror.head_stride);
	x->bits = (uint64_t *)(x->mirror.heads + round_to_pages(mirror_bytes(x)));
	lay_out_data(&x->pool);
	lay_out_data(&x->mirror);
}

static uint64_t gpu_bytes(const struct weir_exchange_pool *pool, uint32_t slots)
{
	return (slots * pool->stride + WEIR_CUDA_ALIGN - 1) / WEIR_CUDA_ALIGN * WEIR_CUDA_ALIGN;
}

/* Whether nvidia-peermem lets the device register GPU memory. */
static bool has_peermem(const struct ibv_device *device)
{
	return !access("/sys/module/nvidia_peermem", F_OK) && device->ibdev_path[0] &&
	       !access(device->ibdev_path, F_OK);
}

/* NULL: the device cannot reach the memory. */
static struct ibv_mr *register_gpu(struct weir_exchange *x, const struct weir_exchange_pool *pool,
				   uint64_t bytes, int access)
{
	int fd = weir_cuda_dmabuf(x->cuda, &pool->gpu, bytes);
	struct ibv_mr *mr = NULL;

	if (fd >= 0) {
		mr = ibv_reg_dmabuf_mr(x->pd, 0, bytes, (uintptr_t)pool->gpu.at, fd, access);
		close(fd);
	}
	if (!mr && has_peermem(x->id->verbs->device))
		mr = ibv_reg_mr(x->pd, pool->gpu.at, bytes, access);
	return mr;
}

/* Registers both pool and mirror or neither: reaching only one is useless. */
static int make_gpu(struct weir_exchange *x, struct weir_error *error)
{
	uint64_t out = gpu_bytes(&x->pool, x->options.slots);
	uint64_t in = gpu_bytes(&x->mirror, x->peer.slots);
	int rc = weir_cuda_alloc(x->cuda, out, &x->pool.gpu, error);

	if (!rc)
		rc = weir_cuda_alloc(x->cuda, in, &x->mirror.gpu, error);
	if (rc)
		return rc;
	x->pool.gpu_mr = register_gpu(x, &x->pool, out, 0);
	if (x->pool.gpu_mr)
		x->mirror.gpu_mr = register_gpu(x, &x->mirror, in,
						IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (x->pool.gpu_mr && !x->mirror.gpu_mr) {
		ibv_dereg_mr(x->pool.gpu_mr);
		x->pool.gpu_mr = NULL;
	}
	return 0;
}

/* Allocates everything outside the GPU. */
static int make_host(struct weir_exchange *x, struct weir_error *error)
{
	uint64_t bytes = round_to_pages(pool_bytes(x)) + round_to_pages(mirror_bytes(x)) +
			 round_to_pages(bits_bytes(x));
	int fd = map_memory(x, bytes), rc;

	if (fd < 0 || !x->memory) {
		rc = weir_error_set(error, -ENOMEM, "no memory for pools of %llu bytes",
				    (unsigned long long)bytes);
	} else {
		lay_out(x);
		rc = register_all(x, error);
	}
	if (fd >= 0)
		close(fd);
	if (!rc && books_make(x))
		rc = weir_error_set(error, -ENOMEM, "out of memory");
	return rc;
}

int weir_exchange_memory_make(struct weir_exchange *x, struct weir_error *error)
{
	int rc;

	x->pool.stride = wire_exchange_slot_stride((uint32_t)x->options.slot_bytes);
	x->mirror.stride = wire_exchange_slot_stride(x->peer.slot_bytes);
	x->nr_recvs = weir_exchange_is_imm(x) ?
			      x->options.slots + x->peer.slots + 2 * WEIR_EXCHANGE_CHAIN :
			      WEIR_EXCHANGE_RECVS;
	rc = x->cuda ? make_gpu(x, error) : 0;
	if (rc)
		return rc;
	x->pool.head_stride = heads_are_apart(x) ? sizeof(struct wire_exchange_slot_head) :
						   x->pool.stride;
	x->mirror.head_stride = heads_are_apart(x) ? sizeof(struct wire_exchange_slot_head) :
						     x->mirror.stride;
	return make_host(x, error);
}

void weir_exchange_memory_free(struct weir_exchange *x)
{
	struct ibv_mr *mrs[] = { x->pool_mr, x->mirror_mr, x->bits_mr, x->pool.gpu_mr,
				 x->mirror.gpu_mr };
	unsigned int i;

	for (i = 0; i < sizeof(mrs) / sizeof(mrs[0]); i++)
		if (mrs[i])
			ibv_dereg_mr(mrs[i]);
	if (x->memory)
		munmap(x->memory, x->memory_bytes);
	if (x->cuda) {
		weir_cuda_free(x->cuda, &x->pool.gpu);
		weir_cuda_free(x->cuda, &x->mirror.gpu);
	}
	weir_cuda_close(x->cuda);
	free(x->books);
	free(x->arrivals);
	free(x->order);
	free(x->spare);
	free(x->back);
}

int weir_exchange_copy(struct weir_exchange *x, void *to, const void *from, size_t bytes)
{
	if (!x->cuda)
		memcpy(to, from, bytes);
	else if (weir_cuda_copy(x->cuda, to, from, bytes))
		return weir_exchange_fail(x, -EIO);
	return 0;
}

int weir_exchange_stage(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			unsigned int count)
{
	uint64_t at;
	int rc = 0;

	if (!weir_exchange_is_staged(x))
		return 0;
	for (; !rc && count; slots++, count--) {
		at = slots->number * x->pool.stride;
		rc = weir_exchange_copy(x, x->pool.data + at, x->pool.user + at, slots->length);
	}
	return rc;
}

/* The peer's read flushes earlier writes to host memory, but not to GPU memory. */
int weir_exchange_unstage(struct weir_exchange *x, const struct weir_exchange_slot *slots,
			  unsigned int count)
{
	uint64_t at;
	int rc = 0;

	if (!x->cuda || !count)
		return 0;
	if (!weir_exchange_is_staged(x))
		return weir_cuda_flush(x->cuda) ? weir_exchange_fail(x, -EIO) : 0;
	for (; !rc && count; slots++, count--) {
		at = slots->number * x->mirror.stride;
		rc = weir_exchange_copy(x, x->mirror.user + at, x->mirror.data + at, slots->length);
	}
	return rc;
}
