/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All that an exchange registers is one mapping, of which the peer may write to the mirror and the
 * bell behind it, may read the bits, and may not touch the rest. It is a file's, not the process's
 * own: a fork() then cannot come between the pages and the device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/exchange/exchange.h"

#define PAGE 4096ull
#define BELL_BYTES 64u

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static uint64_t bits_bytes(const struct weir_exchange *x)
{
	return 8ull * (weir_confirm_words(x->options.slots) + weir_confirm_words(x->peer.slots));
}

/* In this order: the pool, the peer's bits, the bell's ring, receives, gives. */
static uint64_t pool_bytes(const struct weir_exchange *x)
{
	return x->options.slots * x->stride + bits_bytes(x) + sizeof(*x->ring) +
	       x->nr_recvs * WEIR_EXCHANGE_RECV_BYTES +
	       WEIR_EXCHANGE_GIVES * sizeof(struct wire_gives);
}

static uint64_t mirror_bytes(const struct weir_exchange *x)
{
	return x->peer.slots * x->peer_stride + BELL_BYTES;
}

static int map(struct weir_exchange *x, uint64_t bytes)
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

static int enroll(struct weir_exchange *x, struct ibv_mr **mr, void *at, uint64_t bytes, int access,
		  struct weir_error *error)
{
	*mr = ibv_reg_mr(x->pd, at, bytes, access);
	return *mr ? 0 : weir_fail_memlock(error, "an exchange's pool", bytes, -errno);
}

static int enroll_all(struct weir_exchange *x, struct weir_error *error)
{
	int rc = enroll(x, &x->pool_mr, x->slots, pool_bytes(x), IBV_ACCESS_LOCAL_WRITE, error);

	if (!rc)
		rc = enroll(x, &x->mirror_mr, x->mirror, mirror_bytes(x),
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, error);
	if (!rc)
		rc = enroll(x, &x->bits_mr, x->bits, bits_bytes(x), IBV_ACCESS_REMOTE_READ, error);
	return rc;
}

/* Everything that is not registered. */
static int books_make(struct weir_exchange *x)
{
	uint32_t slots = x->options.slots, peers = x->peer.slots;
	size_t out = weir_confirm_out_bytes(slots);

	x->books = calloc(1, (out + 7) / 8 * 8 + weir_confirm_in_bytes(peers));
	x->arrivals = calloc(peers, sizeof(*x->arrivals));
	x->order = calloc(peers, sizeof(*x->order));
	x->spare = calloc(x->nr_recvs, sizeof(*x->spare));
	x->back = calloc(peers, sizeof(*x->back));
	if (!x->books || !x->arrivals || !x->order || !x->spare || !x->back)
		return -ENOMEM;
	weir_confirm_out_init(&x->out, slots, x->bits, x->books);
	weir_confirm_in_init(&x->in, peers, x->bits + weir_confirm_words(slots),
			     (char *)x->books + (out + 7) / 8 * 8);
	return 0;
}

static void place(struct weir_exchange *x)
{
	x->slots = x->memory;
	x->fresh = (uint64_t *)(x->slots + x->options.slots * x->stride);
	x->ring = (uint64_t *)((char *)x->fresh + bits_bytes(x));
	x->recvs = (char *)(x->ring + 1);
	x->gives = (struct wire_gives *)(x->recvs + x->nr_recvs * WEIR_EXCHANGE_RECV_BYTES);
	x->gives_free = (1u << WEIR_EXCHANGE_GIVES) - 1;
	x->mirror = x->memory + pages(pool_bytes(x));
	x->bell = (uint64_t *)(x->mirror + x->peer.slots * x->peer_stride);
	x->bits = (uint64_t *)(x->mirror + pages(mirror_bytes(x)));
}

int weir_exchange_memory_make(struct weir_exchange *x, struct weir_error *error)
{
	uint64_t bytes;
	int fd, rc;

	x->stride = wire_stride((uint32_t)x->options.slot_bytes);
	x->peer_stride = wire_stride(x->peer.slot_bytes);
	x->nr_recvs = weir_exchange_is_imm(x) ? x->options.slots + x->peer.slots +
							2 * WEIR_EXCHANGE_CHAIN :
						WEIR_EXCHANGE_CHAIN;
	bytes = pages(pool_bytes(x)) + pages(mirror_bytes(x)) + pages(bits_bytes(x));
	fd = map(x, bytes);
	if (fd < 0 || !x->memory) {
		rc = weir_fail(error, -ENOMEM, "no memory for pools of %llu bytes",
			       (unsigned long long)bytes);
	} else {
		place(x);
		rc = enroll_all(x, error);
	}
	if (fd >= 0)
		close(fd);
	if (!rc && books_make(x))
		rc = weir_fail(error, -ENOMEM, "out of memory");
	return rc;
}

void weir_exchange_memory_free(struct weir_exchange *x)
{
	struct ibv_mr *mrs[] = { x->pool_mr, x->mirror_mr, x->bits_mr };
	unsigned int i;

	for (i = 0; i < sizeof(mrs) / sizeof(mrs[0]); i++)
		if (mrs[i])
			ibv_dereg_mr(mrs[i]);
	if (x->memory)
		munmap(x->memory, x->memory_bytes);
	free(x->books);
	free(x->arrivals);
	free(x->order);
	free(x->spare);
	free(x->back);
}
