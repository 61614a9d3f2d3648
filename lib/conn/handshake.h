/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The library's host of the handshake, whose states are in core/link/handshake.h: MACs by
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

/*
 * As weir_handshake_received(), with setup.key's MAC if one is wanted; client: -ETIMEDOUT as
 * weir_handshake_write_mac().
 */
int weir_handshake_input(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			 size_t *out_length);

/* As weir_handshake_admit(), with the MAC: writes the WELCOME. */
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
 * @error: may be NULL
 *
 * Return: the negative errno if weir_session_open() documents it, otherwise -EPROTO.
 */
int weir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal,
				   struct weir_error *error);

void weir_handshake_nonce(uint8_t nonce[static WIRE_NONCE]);

#endif
