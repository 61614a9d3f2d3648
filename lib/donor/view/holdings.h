/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The holders of each part of a donor's memory: a copy for display. */
#ifndef WEIR_LIB_DONOR_VIEW_HOLDINGS_H
#define WEIR_LIB_DONOR_VIEW_HOLDINGS_H

#include <stddef.h>
#include <stdint.h>

enum weir_holding_kind {
	WEIR_HOLDING_CLIENT, /* a client that is connected created it */
	WEIR_HOLDING_LEFT, /* its creator has gone; its name keeps it */
	WEIR_HOLDING_APPLICATION, /* of the donor's application: a file system */
	WEIR_HOLDING_ZEROING, /* freed, and being zeroed */
};

/**
 * struct weir_holding - an extent of the memory
 * @client: weir_peer_id() of the client; 0: of another kind
 * @tenant: of the region
 * @offset, @bytes: its place in the memory
 */
struct weir_holding {
	enum weir_holding_kind kind;
	unsigned int tenant;
	uint64_t client;
	uint64_t offset, bytes;
};

/**
 * struct weir_holding_client - a client
 * @id: weir_peer_id()
 * @tenant: of the key that it has proven
 * @name: its address
 * @cipher: of its first channel; NULL: not encrypted, or broken now
 */
struct weir_holding_client {
	uint64_t id;
	unsigned int tenant;
	char name[64];
	const char *cipher;
};

/**
 * struct weir_holdings - all extents lent, and all clients
 * @extent: @nr_extents of them, in no order
 * @client: @nr_clients of them, by id
 * @bytes: length of the memory
 */
struct weir_holdings {
	struct weir_holding *extent;
	struct weir_holding_client *client;
	size_t nr_extents, nr_clients;
	uint64_t bytes;
};

struct weir_donor;

/*
 * weir_holdings_copy(): the caller owes a weir_holdings_free(). Context: the donor's thread.
 * Return: 0; -ENOMEM.
 */
int weir_holdings_copy(struct weir_holdings *holdings, struct weir_donor *donor);
void weir_holdings_free(struct weir_holdings *holdings);

#endif
