/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The client's side of the proof of the key (docs/reference/protocol.md, wire/handshake.h): bytes
 * in, bytes out, a verdict.
 */
#ifndef WEIR_KERNEL_PROVE_H
#define WEIR_KERNEL_PROVE_H

#include <crypto/hash.h>

#include "kernel/weir/weir.h"
#include "wire/handshake.h"

struct key;

/**
 * struct weir_secret - what a session keeps of its key
 * @hmac: knows it
 * @key_id: names it to the donor
 */
struct weir_secret {
	struct crypto_shash *hmac;
	u64 key_id;
};

/* One end of a QP, as the verbs know it. */
struct weir_end {
	u8 gid[WIRE_GID];
	u32 qpn;
};

/**
 * struct weir_proof - one channel's handshake
 * @peer: the donor, for people; of who began it
 * @remote: what the QP is connected to
 * @welcome: the donor's, once it is done
 */
struct weir_proof {
	const struct weir_secret *secret;
	const char *peer;
	struct weir_end remote;
	bool done;
	struct wire_hello hello;
	struct wire_challenge challenge;
	struct wire_welcome welcome;
};

/* @key: NULL is the empty one. Return: 0; -EINVAL its length is no key's; -ENOMEM, -ENOENT. */
int weir_secret_init(struct weir_secret *secret, struct key *key, struct weir_error *error);
void weir_secret_fini(struct weir_secret *secret);

/* Begins one and writes the HELLO to @out. Return: its length. */
size_t weir_proof_begin(struct weir_proof *proof, const struct weir_secret *secret,
			const struct weir_end *local, const struct weir_end *remote, u64 session_id,
			u16 channel, u16 credits, void *out);

/**
 * weir_proof_input() - a message came
 * @out: room for WIRE_HANDSHAKE_MAX bytes
 * @out_length: receives how many of them to send; 0: @proof->done says that it is over
 *
 * Return: 0; -EKEYREJECTED; -EPROTO; -EPROTONOSUPPORT; what the donor refused with.
 */
int weir_proof_input(struct weir_proof *proof, const void *in, size_t in_length, void *out,
		     size_t *out_length, struct weir_error *error);

/* What @peer refused with, in words. Return: the negative errno. */
int weir_refusal_explain(const struct wire_refusal *refusal, const char *peer,
			 struct weir_error *error);

#endif
