/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How members of a group meet, as messages of their exchanges, which have proved the key by then.
 *
 * Member 0 listens where all know. Each other one connects to it, says who it is and where it
 * listens itself, and is told where each listens; then it connects to those between member 0 and
 * itself, saying who it is. Little-endian.
 */
#ifndef WEIR_WIRE_GROUP_H
#define WEIR_WIRE_GROUP_H

#include <assert.h>
#include <stdint.h>

#define WIRE_GROUP_MAGIC 0x70756f7267726577ull /* "wergroup" */
#define WIRE_GROUP_ADDRESS 64 /* bytes of "address:port", filled up with NULs, one at least */

/**
 * struct wire_group_hello - the first message, of who has connected
 * @magic: WIRE_GROUP_MAGIC
 * @member: who it is; @size: how many there are
 * @address: where it listens
 *
 * Member 0 answers with @size addresses, its own empty.
 */
struct wire_group_hello {
	uint64_t magic;
	uint32_t member;
	uint32_t size;
	char address[WIRE_GROUP_ADDRESS];
};

static_assert(sizeof(struct wire_group_hello) == 80, "as the peer has it");

/**
 * wire_group_hello_check() - what a peer sent
 * @hello, @length: not trusted
 * @size: members that we know of
 * @above: it is a member above this one
 *
 * Return: 0; -EPROTO it makes no sense, or its group is another one.
 */
int wire_group_hello_check(const struct wire_group_hello *hello, uint64_t length, uint32_t size,
			   uint32_t above);

/* Return: 0; -EPROTO one of the @size addresses, of @length bytes in all, has no end. */
int wire_group_addresses_check(const char (*addresses)[WIRE_GROUP_ADDRESS], uint64_t length,
			       uint32_t size);

#endif
