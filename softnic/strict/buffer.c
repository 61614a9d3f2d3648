// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "softnic/verbs/nic.h"
#include "buffer.h"

enum {
	CHUNK = 16 << 10, /* at least POISONED_MAX */
	SUMMED_MAX = 256 << 10, /* of a longer piece, half of this from each end */
	POISON = 0xa5,
};

static bool copy(bool to, uint64_t addr, void *bytes, uint64_t length)
{
	struct iovec here = { bytes, length }, there = { (void *)(uintptr_t)addr, length };

	return !copy_bytes(&nic.self, to, &here, 1, &there, 1);
}

static uint64_t add_to_sum(uint64_t sum, const uint8_t *bytes, uint64_t length)
{
	uint64_t word, i;

	for (i = 0; i + sizeof(word) <= length; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15;
		sum ^= sum >> 29;
	}
	for (; i < length; i++)
		sum = (sum ^ bytes[i]) * 0x9e3779b97f4a7c15;
	return sum;
}

static bool sum_range(uint64_t addr, uint64_t length, uint64_t *sum)
{
	uint8_t bytes[CHUNK];
	uint64_t n;

	for (; length; length -= n, addr += n) {
		n = length < CHUNK ? length : CHUNK;
		if (!copy(false, addr, bytes, n))
			return false;
		*sum = add_to_sum(*sum, bytes, n);
	}
	return true;
}

bool buffer_sum(uint64_t addr, uint64_t length, uint64_t *sum)
{
	const uint64_t half = SUMMED_MAX / 2;

	if (length <= SUMMED_MAX)
		return sum_range(addr, length, sum);
	return sum_range(addr, half, sum) && sum_range(addr + length - half, half, sum);
}

static bool copy_all(const struct strict_wr *wr, bool to, uint8_t *bytes, uint64_t length)
{
	uint64_t n;
	uint32_t i;

	for (i = 0; i < wr->num_sge && length; i++) {
		n = wr->sges[i].length < length ? wr->sges[i].length : length;
		if (n && !copy(to, wr->sges[i].addr, bytes, n))
			return false;
		bytes += n;
		length -= n;
	}
	return true;
}

bool buffer_load(const struct strict_wr *wr, uint8_t *bytes, uint64_t length)
{
	return copy_all(wr, false, bytes, length);
}

bool buffer_store(const struct strict_wr *wr, const uint8_t *bytes, uint64_t length)
{
	return copy_all(wr, true, (uint8_t *)bytes, length);
}

bool buffer_poison(const struct strict_wr *wr, uint64_t length)
{
	uint8_t bytes[CHUNK];

	memset(bytes, POISON, length);
	return buffer_store(wr, bytes, length);
}

bool buffer_is_poisoned(const struct strict_wr *wr, uint64_t length, uint64_t *changed)
{
	uint8_t bytes[CHUNK];
	uint64_t i, at = 0;
	uint32_t piece;

	*changed = 0;
	if (!buffer_load(wr, bytes, length))
		return false;
	for (i = 0; i < length && bytes[i] == POISON; i++)
		;
	for (piece = 0; piece < wr->num_sge && i >= at + wr->sges[piece].length; piece++)
		at += wr->sges[piece].length;
	if (i < length)
		*changed = wr->sges[piece].addr + (i - at);
	return i == length;
}
