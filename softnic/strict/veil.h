/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data of reads and receives arrive in a veil: memory of the device. The program's own memory
 * holds poison meanwhile, and gets the data when the completion is polled.
 */
#ifndef WEIR_SOFTNIC_STRICT_VEIL_H
#define WEIR_SOFTNIC_STRICT_VEIL_H

#include "wr.h"

/**
 * veil_put_on() - let a WR store into a veil
 * @wr: a read or receive; its list may be accessed, or nothing changes
 * @with_poison: fill the program's memory with poison
 *
 * Context: The lock of wr.h is held.
 */
void veil_put_on(struct strict_wr *wr, bool with_poison);

/** veil_key() - the key by which a protection domain reaches veils; 0: none */
uint32_t veil_key(uint32_t pd);

/** veil_lift() - give the program's memory back as it was, or with the data that are there */
void veil_lift(struct strict_wr *wr);

/**
 * veil_deliver() - store the data of a completed WR into the program's memory
 * @length: bytes that arrived; 0 if the WR failed
 * @has_succeeded: only then is memory that was touched too early a finding
 *
 * Return: false if the memory is no longer registered, or not mapped: nothing is stored.
 */
bool veil_deliver(struct strict_wr *wr, uint64_t length, bool has_succeeded);

#endif
