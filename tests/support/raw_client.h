/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An end of bare verbs with one channel, which may misbehave in any way and sends whatever the
 * test wants. It connects as a client, or listens like a donor.
 */
#ifndef WEIR_TESTS_SUPPORT_RAW_CLIENT_H
#define WEIR_TESTS_SUPPORT_RAW_CLIENT_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/conn/handshake.h"
#include "wire/control.h"
#include "core/link/credit.h"

#define RAW_RECVS 34
#define RAW_CREDITS 32
#define RAW_DATA (1u << 20) /* bytes to read into and write from */

struct raw_client {
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char *recvs, *send, *data;
	bool is_up, is_flushed;
	unsigned int arrived[RAW_RECVS], lengths[RAW_RECVS];
	unsigned int nr_arrived;
	struct wire_handshake_refusal refusal; /* of a REJ */
	uint8_t cookie[WIRE_COOKIE]; /* of a REJ */
	uint8_t mux[WIRE_MUX_ID]; /* content of HELLO; raw_connect() clears it */
	struct weir_handshake handshake;
	struct weir_credit credit;
	int tags;
};

/* Retransmissions by this end and by the donor: 7, unless a test is short of time. */
extern unsigned int raw_retries;

/* The address to connect from, or NULL. */
extern const char *raw_source;

/* All return 0 or a negative errno. -ECONNRESET: the donor has closed the connection. */

/* Connect with @data in the REQ. -ECONNREFUSED: a REJ; see @refusal. */
int raw_connect(struct raw_client *raw, const char *address, const void *data, size_t length);

/* Listen at @host on any port, and store the address in @address. */
int raw_listen(struct raw_client *raw, const char *host, char *address, size_t size);
/* Wait for a caller and accept. Neither end proves anything. */
int raw_accept(struct raw_client *raw);

/* The REQ of an honest client. */
struct wire_handshake_connect raw_request(const struct weir_key *key, uint64_t session_id,
					  uint16_t channel);

/* Send the bytes and wait for the completion. */
int raw_send(struct raw_client *raw, const void *data, size_t length);

/* Wait for a message. @data has room for WIRE_CONTROL_MESSAGE_BYTES. -ETIMEDOUT. */
int raw_receive(struct raw_client *raw, void *data, size_t *length, int timeout_ms);

/* Do the handshake, from HELLO on, on a connection. */
int raw_prove(struct raw_client *raw, const struct weir_key *key, uint64_t session_id,
	      uint16_t channel);

/* Connect, prove the key, and become ready. */
int raw_open(struct raw_client *raw, const char *address, const struct weir_key *key);
int raw_open_channel(struct raw_client *raw, const char *address, const struct weir_key *key,
		     uint64_t session_id, uint16_t channel);

/* Send a control message, within the credits. */
int raw_message(struct raw_client *raw, enum wire_control_kind kind, uint64_t tag, const void *body,
		size_t length);
/* The next message other than a bare credit. @body: room for WIRE_CONTROL_BODY_MAX. */
int raw_answer(struct raw_client *raw, struct wire_control_head *head, void *body, int timeout_ms);

/* A blocking CONTROL_CALL. Return: the status of the answer, or a local error. */
int raw_call(struct raw_client *raw, struct wire_control_request request, const char *name,
	     void *body, size_t *length);
int raw_create(struct raw_client *raw, const char *name, uint64_t length, uint32_t flags,
	       struct wire_control_region *region);
int raw_region_open(struct raw_client *raw, const char *name, uint32_t flags,
		    struct wire_control_region *region);
int raw_region_open_fenced(struct raw_client *raw, const char *name, uint64_t epoch,
			   struct wire_control_region *region);
int raw_region_close(struct raw_client *raw, uint64_t hold);
int raw_region_delete(struct raw_client *raw, const char *name);

/* One-sided, from or to @raw->data. Return: 0, or -EACCES and so on: the QP is dead then. */
int raw_write(struct raw_client *raw, uint64_t remote, uint32_t rkey, uint32_t length);
int raw_read(struct raw_client *raw, uint64_t remote, uint32_t rkey, uint32_t length);
/* Like raw_write(), but consumes a receive at the donor. */
int raw_write_imm(struct raw_client *raw, uint64_t remote, uint32_t rkey, uint32_t length);
/* Add @add to eight bytes. */
int raw_add(struct raw_client *raw, uint64_t remote, uint32_t rkey, uint64_t add);

/* Vanish as in a power failure: no answers any more, and no goodbye. */
void raw_vanish(struct raw_client *raw);

/* Wait until the connection is gone, at most @timeout_ms. Return: whether it is gone. */
bool raw_is_cut_off(struct raw_client *raw, int timeout_ms);

void raw_close(struct raw_client *raw);

#endif
