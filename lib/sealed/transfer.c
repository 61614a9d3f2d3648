/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes. A call is cut into chunks, and each moves its slots by one request. The oldest
 * chunk is decrypted, or the next one encrypted, while the others move.
 *
 * Reads take no lock. Requests of one session that overlap take effect in order, so a read beside
 * this handle's write finds the old slot or the new one. The floors of a read are those of before
 * its submission: a generation that another thread learns later proves nothing about its slots.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <weir/memory.h>

#include "lib/base/error.h"
#include "lib/client/memory/region.h"
#include "lib/client/request/request.h"
#include "lib/client/request/waiter.h"
#include "lib/client/session.h"
#include "lib/sealed/sealed.h"

#define READS_AGAIN 9 /* looks at a slot that another client may be writing */
#define AGAIN_US 100u /* before the first of them; each pause is twice the one before */

enum chunk_step {
	CHUNK_READ, /* slots are being read, for the caller */
	CHUNK_FETCH, /* slots are being read, because a write needs to know them */
	CHUNK_WRITE, /* slots are being written */
};

/**
 * struct sealed_chunk - some neighbouring blocks of a call
 * @waiter: of its request
 * @step: an enum chunk_step
 * @slots: a buffer of the pool
 * @block, @count: blocks of the chunk
 * @generation: of reads, the floors; of writes, those of the new slots
 */
struct sealed_chunk {
	struct weir_waiter waiter;
	enum chunk_step step;
	struct weir_slot *slots;
	uint64_t block;
	unsigned int count;
	uint64_t generation[WEIR_SEALED_CHUNK];
};

/**
 * struct sealed_transfer - a call
 * @offset, @end: bytes of data, from and up to which
 * @buf: the caller's memory for @offset
 * @next: first block without a chunk; @last: last block
 * @chunks: those in flight, from @oldest on
 * @status: the first failure
 */
struct sealed_transfer {
	struct weir_sealed *sealed;
	struct weir_error *error;
	uint64_t offset, end;
	uint8_t *buf;
	bool is_write;
	uint64_t next, last;
	struct sealed_chunk chunks[WEIR_SEALED_AT_ONCE];
	unsigned int oldest, nr;
	int status;
};

/* The part of a block that the caller wants. */
struct sealed_part {
	uint8_t *buf;
	size_t begin, length;
};

static struct sealed_part part_of(const struct sealed_transfer *t, uint64_t block)
{
	uint64_t start = block * WEIR_SEALED_BLOCK;
	uint64_t from = start > t->offset ? start : t->offset;
	uint64_t to = t->end - start > WEIR_SEALED_BLOCK ? start + WEIR_SEALED_BLOCK : t->end;

	return (struct sealed_part){ t->buf + (from - t->offset), from - start, to - from };
}

static bool is_whole(const struct sealed_part *part)
{
	return part->length == WEIR_SEALED_BLOCK;
}

static int transfer_refuse(struct sealed_transfer *t, uint64_t block, int rc)
{
	struct weir_sealed *s = t->sealed;

	if (rc == -EBADMSG) {
		__atomic_fetch_add(&s->altered, 1, __ATOMIC_RELAXED);
		return weir_error_set(t->error, rc,
				      "block %llu of the sealed region is not what a holder of the "
				      "key wrote there: altered, torn by a write that was cut "
				      "short, or sealed with another key or name",
				      (unsigned long long)block);
	}
	if (rc == -ESTALE) {
		__atomic_fetch_add(&s->rolled_back, 1, __ATOMIC_RELAXED);
		return weir_error_set(t->error, rc,
				      "block %llu of the sealed region is older than one that this "
				      "client has seen there: the donor has put an old block back",
				      (unsigned long long)block);
	}
	return weir_error_set(t->error, rc,
			      "block %llu of the sealed region is sealed by AES-256-GCM, and this "
			      "CPU has no AES instructions",
			      (unsigned long long)block);
}

/* Submits the request of a chunk. */
static int chunk_submit(struct sealed_transfer *t, struct sealed_chunk *c, enum chunk_step step,
			unsigned int from, unsigned int count)
{
	struct weir_sealed *s = t->sealed;
	const struct weir_iov iov = {
		.addr = c->slots + from,
		.length = (size_t)count * WEIR_SEALED_SLOT,
		.memory = weir_pool_memory(s->pool),
	};

	c->waiter = (struct weir_waiter)WEIR_WAITER_INIT;
	c->step = step;
	return weir_request_move_wait(s->region, step == CHUNK_WRITE ? WEIR_OP_WRITE : WEIR_OP_READ,
				      (c->block + from) * WEIR_SEALED_SLOT, &iov, 1, &c->waiter);
}

static int chunk_wait(struct sealed_transfer *t, struct sealed_chunk *c)
{
	struct weir_session *session = t->sealed->region->session;

	weir_waiter_wait(&c->waiter, session, &session->op_idle_time, UINT64_MAX);
	if (c->waiter.request)
		return weir_request_release(c->waiter.request, c->waiter.status);
	return c->waiter.status;
}

static int chunk_decrypt(struct sealed_transfer *t, struct sealed_chunk *c, unsigned int i,
			 uint8_t *text, uint64_t *generation)
{
	const struct weir_slot_place place = { 0, c->block + i };
	const struct weir_slot *slot = &c->slots[i];

	return weir_slot_open(t->sealed->keys, &place, &slot->trailer, slot->text,
			      WEIR_SEALED_BLOCK, text, generation);
}

/*
 * Another client's write moves a slot in pieces, and a read beside it sees both sides. Looks again
 * until such a write must be over.
 */
static int chunk_look_again(struct sealed_transfer *t, struct sealed_chunk *c, unsigned int i,
			    uint8_t *text, uint64_t *generation)
{
	unsigned int pause_us = AGAIN_US;
	int rc = -EBADMSG;

	for (int n = 0; n < READS_AGAIN && rc == -EBADMSG; n++, pause_us *= 2) {
		usleep(pause_us);
		rc = chunk_submit(t, c, c->step, i, 1);
		if (!rc)
			rc = chunk_wait(t, c);
		if (!rc)
			rc = chunk_decrypt(t, c, i, text, generation);
	}
	return rc;
}

/* Decrypts slot @i. Return: 0; a status of the request; or an error for transfer_refuse(). */
static int chunk_open(struct sealed_transfer *t, struct sealed_chunk *c, unsigned int i,
		      uint8_t *text)
{
	struct weir_sealed *s = t->sealed;
	uint64_t block = c->block + i, generation;
	int rc = chunk_decrypt(t, c, i, text, &generation);

	if (rc == -EBADMSG && !s->region->exclusive)
		rc = chunk_look_again(t, c, i, text, &generation);
	if (!rc && generation < c->generation[i]) {
		memset(text, 0, WEIR_SEALED_BLOCK);
		rc = -ESTALE;
	}
	if (!rc)
		weir_sealed_saw(s, block, generation);
	return rc;
}

static bool is_verdict(int rc)
{
	return rc == -EBADMSG || rc == -ESTALE || rc == -EOPNOTSUPP;
}

static int chunk_deliver(struct sealed_transfer *t, struct sealed_chunk *c)
{
	uint8_t text[WEIR_SEALED_BLOCK];
	struct sealed_part part;
	unsigned int i;
	int rc;

	for (i = 0; i < c->count; i++) {
		part = part_of(t, c->block + i);
		rc = chunk_open(t, c, i, is_whole(&part) ? part.buf : text);
		if (rc)
			return is_verdict(rc) ? transfer_refuse(t, c->block + i, rc) : rc;
		if (!is_whole(&part))
			memcpy(part.buf, text + part.begin, part.length);
	}
	return 0;
}

static void chunk_seal(struct sealed_transfer *t, struct sealed_chunk *c, unsigned int i,
		       const uint8_t *text)
{
	struct weir_sealed *s = t->sealed;
	struct weir_slot *slot = &c->slots[i];
	const struct weir_slot_place place = { 0, c->block + i };

	c->generation[i] = weir_slot_generation(&s->latest, weir_sealed_floor(s, place.block));
	slot->trailer = (struct weir_slot_trailer){
		.counter = __atomic_fetch_add(&s->counter, 1, __ATOMIC_RELAXED),
		.generation = c->generation[i],
		.cipher = s->cipher,
		.length = WEIR_SEALED_BLOCK,
	};
	memcpy(slot->trailer.writer, s->writer, sizeof(s->writer));
	weir_slot_seal(s->keys, &place, &slot->trailer, text, slot->text);
}

/* Whether a write needs to know slot @i first. */
static bool needs_fetch(const struct sealed_transfer *t, const struct sealed_chunk *c,
			unsigned int i)
{
	struct sealed_part part = part_of(t, c->block + i);

	return !is_whole(&part) || !weir_sealed_floor(t->sealed, c->block + i);
}

/*
 * Learns the generation of slot @i, which a write replaces. An altered slot teaches nothing: then
 * the clock alone makes the next generation greater.
 */
static void chunk_learn(struct sealed_transfer *t, struct sealed_chunk *c, unsigned int i)
{
	uint8_t text[WEIR_SEALED_BLOCK];
	uint64_t generation;

	if (!chunk_decrypt(t, c, i, text, &generation))
		weir_sealed_saw(t->sealed, c->block + i, generation);
}

/* Seals slot @i of a write. If needs_fetch(), it holds what the donor has. */
static int chunk_fill(struct sealed_transfer *t, struct sealed_chunk *c, unsigned int i)
{
	struct sealed_part part = part_of(t, c->block + i);
	uint8_t text[WEIR_SEALED_BLOCK];
	int rc;

	if (is_whole(&part)) {
		if (needs_fetch(t, c, i))
			chunk_learn(t, c, i);
		chunk_seal(t, c, i, part.buf);
		return 0;
	}
	rc = chunk_open(t, c, i, text);
	if (rc)
		return is_verdict(rc) ? transfer_refuse(t, c->block + i, rc) : rc;
	memcpy(text + part.begin, part.buf, part.length);
	chunk_seal(t, c, i, text);
	return 0;
}

static int chunk_write(struct sealed_transfer *t, struct sealed_chunk *c)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < c->count && !rc; i++)
		rc = chunk_fill(t, c, i);
	return rc ? rc : chunk_submit(t, c, CHUNK_WRITE, 0, c->count);
}

static int chunk_start(struct sealed_transfer *t, struct sealed_chunk *c)
{
	unsigned int i, from = WEIR_SEALED_CHUNK, to = 0;

	for (i = 0; i < c->count; i++) {
		c->generation[i] = weir_sealed_floor(t->sealed, c->block + i);
		if (t->is_write && needs_fetch(t, c, i)) {
			from = from < i ? from : i;
			to = i + 1;
		}
	}
	if (!t->is_write)
		return chunk_submit(t, c, CHUNK_READ, 0, c->count);
	if (to)
		return chunk_submit(t, c, CHUNK_FETCH, from, to - from);
	return chunk_write(t, c);
}

/* Ends the request of a chunk. Return: 0: the chunk is done; 1: another request moves; an error. */
static int chunk_step(struct sealed_transfer *t, struct sealed_chunk *c)
{
	int rc = chunk_wait(t, c);
	unsigned int i;

	if (rc)
		return rc;
	if (c->step == CHUNK_READ)
		return t->status ? t->status : chunk_deliver(t, c);
	if (c->step == CHUNK_FETCH) {
		rc = t->status ? t->status : chunk_write(t, c);
		return rc ? rc : 1;
	}
	for (i = 0; i < c->count; i++)
		weir_sealed_saw(t->sealed, c->block + i, c->generation[i]);
	return 0;
}

static void transfer_fail(struct sealed_transfer *t, int status)
{
	if (t->status)
		return;
	t->status = status;
	if (!is_verdict(status))
		weir_error_set(t->error, status, "the donor's memory cannot be reached: %s",
			       weir_strerror(status));
}

/* Starts chunks while there are blocks, places and buffers. A call without any waits for one. */
static void transfer_start(struct sealed_transfer *t)
{
	struct weir_sealed *s = t->sealed;
	struct weir_slot *slots;
	struct sealed_chunk *c;
	uint64_t left;
	int rc;

	while (!t->status && t->next <= t->last && t->nr < WEIR_SEALED_AT_ONCE) {
		slots = t->nr ? weir_pool_get(s->pool) : weir_pool_get_wait(s->pool);
		if (!slots)
			return;
		c = &t->chunks[(t->oldest + t->nr) % WEIR_SEALED_AT_ONCE];
		left = t->last - t->next + 1;
		c->slots = slots;
		c->block = t->next;
		c->count = left < WEIR_SEALED_CHUNK ? (unsigned int)left : WEIR_SEALED_CHUNK;
		t->next += c->count;
		rc = chunk_start(t, c);
		if (rc) {
			weir_pool_put(s->pool, slots);
			transfer_fail(t, rc);
			return;
		}
		t->nr++;
	}
}

static int transfer_run(struct sealed_transfer *t)
{
	struct sealed_chunk *c;
	int rc;

	for (transfer_start(t); t->nr; transfer_start(t)) {
		c = &t->chunks[t->oldest];
		do {
			rc = chunk_step(t, c);
		} while (rc > 0);
		if (rc)
			transfer_fail(t, rc);
		weir_pool_put(t->sealed->pool, c->slots);
		t->oldest = (t->oldest + 1) % WEIR_SEALED_AT_ONCE;
		t->nr--;
	}
	return t->status;
}

static int transfer_init(struct sealed_transfer *t, struct weir_sealed *sealed, uint64_t offset,
			 const void *buf, size_t length, struct weir_error *error)
{
	uint64_t bytes = sealed->blocks * WEIR_SEALED_BLOCK;

	if (!length || offset > bytes || length > bytes - offset)
		return weir_error_set(error, -EINVAL,
				      "%zu bytes at %llu are not in a sealed region of %llu bytes",
				      length, (unsigned long long)offset,
				      (unsigned long long)bytes);
	t->sealed = sealed;
	t->error = error;
	t->offset = offset;
	t->end = offset + length;
	t->buf = (uint8_t *)buf; /* a write only reads it */
	t->next = offset / WEIR_SEALED_BLOCK;
	t->last = (t->end - 1) / WEIR_SEALED_BLOCK;
	t->oldest = t->nr = 0;
	t->status = 0;
	return 0;
}

int weir_sealed_read(struct weir_sealed *sealed, uint64_t offset, void *buf, size_t length,
		     struct weir_error *error)
{
	struct sealed_transfer t;
	int rc = transfer_init(&t, sealed, offset, buf, length, error);

	if (rc)
		return rc;
	t.is_write = false;
	return transfer_run(&t);
}

int weir_sealed_write(struct weir_sealed *sealed, uint64_t offset, const void *buf, size_t length,
		      struct weir_error *error)
{
	struct weir_sealed_range range;
	struct sealed_transfer t;
	int rc = transfer_init(&t, sealed, offset, buf, length, error);

	if (rc)
		return rc;
	t.is_write = true;
	range.first = t.next;
	range.last = t.last;
	weir_sealed_range_enter(sealed, &range);
	rc = transfer_run(&t);
	weir_sealed_range_leave(sealed, &range);
	return rc;
}
