/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How members of a group connect: messages of their exchanges, which have proven the key before.
 * Member 0 listens at an address known to all. Every other member connects to member 0, announces
 * its number and address, and receives the addresses of all. Then it connects to each member
 * numbered between 0 and itself and announces its number. Little-endian.
 */
#ifndef WEIR_WIRE_GROUP_H
#define WEIR_WIRE_GROUP_H

#include <assert.h>
#include <stdint.h>

#define WIRE_GROUP_MAGIC 0x70756f7267726577ull /* "wergroup" */
#define WIRE_GROUP_ADDRESS 64 /* bytes of "address:port", padded with at least one NUL */

/**
 * struct wire_group_hello - the first message of the connecting member
 * @magic: WIRE_GROUP_MAGIC
 * @member: its number; @size: of the group
 * @address: listening address of @member
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
 * wire_group_hello_check() - check a peer's hello
 * @hello, @length: not trusted
 * @size: our group's number of members
 * @above: the peer's number must be greater
 *
 * Return: 0; -EPROTO malformed, or from another group.
 */
int wire_group_hello_check(const struct wire_group_hello *hello, uint64_t length, uint32_t size,
			   uint32_t above);

/* Return: 0; -EPROTO @length is wrong for @size addresses, or an address has no NUL. */
int wire_group_addresses_check(const char (*addresses)[WIRE_GROUP_ADDRESS], uint64_t length,
			       uint32_t size);

#endif
