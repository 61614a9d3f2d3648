/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The library's host of the handshake, whose states are in core/link/handshake.h: primitives by
 * libsodium, failures in words.
 *
 * The caller keeps the time: it ends a handshake that takes longer than WEIR_HANDSHAKE_NS.
 */
#ifndef WEIR_LIB_CONN_HANDSHAKE_H
#define WEIR_LIB_CONN_HANDSHAKE_H

#include <weir/error.h>

#include "core/link/handshake.h"
#include "lib/conn/key.h"

#define WEIR_HANDSHAKE_NS 5000000000ull

extern const struct weir_noise_crypto weir_handshake_crypto;

/* The versions that this process speaks: WIRE_VERSIONS. Only tests of negotiation change it. */
extern struct wire_handshake_versions weir_handshake_versions;

/**
 * weir_handshake_secrets() - fill in primitives, psk and fresh secrets
 * @key: NULL is the empty key
 * @is_client: otherwise, without an identity, get one for this connection alone
 */
void weir_handshake_secrets(struct weir_handshake_setup *setup, const struct weir_key *key,
			    bool is_client);

/*
 * A handshake in memory for keys, before weir_handshake_client() or weir_handshake_donor().
 * Return: NULL: out of memory.
 */
struct weir_handshake *weir_handshake_new(void);
/* Wipes and frees. @h may be NULL. */
void weir_handshake_free(struct weir_handshake *h);

/* As weir_handshake_received(), with the device's view of its encryption. */
int weir_handshake_input(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			 size_t *out_length);

/* As weir_handshake_admit(), with the device's view of its encryption. */
void weir_handshake_welcome(struct weir_handshake *h, const struct wire_handshake_welcome *welcome,
			    void *out, size_t *out_length);

/**
 * weir_handshake_explain() - describe the failure of a handshake or of its connection
 * @status: of the failure
 * @peer: begins the sentence
 *
 * Return: @status.
 */
int weir_handshake_explain(const struct weir_handshake *h, int status, const char *peer,
			   struct weir_error *error);

/**
 * weir_handshake_refusal_explain() - turn a refusal into the client's error
 * @refusal: decoded
 * @version: that this end has asked for
 * @error: may be NULL
 *
 * Return: the negative errno if weir_session_open() documents it, otherwise -EPROTO.
 */
int weir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal, uint16_t version,
				   struct weir_error *error);

void weir_handshake_random(void *bytes, size_t length);

#endif
