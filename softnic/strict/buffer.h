/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program's memory, read and written by the kernel: a page that is no longer mapped is an
 * error and no crash.
 */
#ifndef WEIR_SOFTNIC_STRICT_BUFFER_H
#define WEIR_SOFTNIC_STRICT_BUFFER_H

#include "wr.h"

/** buffer_sum() - sum up the bytes of a piece; of a long piece both ends; false: not readable */
bool buffer_sum(uint64_t addr, uint64_t length, uint64_t *sum);

/** buffer_load(), buffer_store() - copy the memory of a WR, at most @length bytes */
bool buffer_load(const struct strict_wr *wr, uint8_t *bytes, uint64_t length);
bool buffer_store(const struct strict_wr *wr, const uint8_t *bytes, uint64_t length);

/** buffer_poison() - fill the first @length bytes of a WR's memory with a pattern */
bool buffer_poison(const struct strict_wr *wr, uint64_t length);

/** buffer_is_poisoned() - is the pattern still there, in each of these bytes? */
bool buffer_is_poisoned(const struct strict_wr *wr, uint64_t length, uint64_t *changed);

#endif
