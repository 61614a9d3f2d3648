/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The client's side of the proof of the key: docs/reference/protocol.md, wire/handshake.h. Bytes in, bytes
 * out, a verdict.
 */
#ifndef WEIR_KERNEL_WEIR_PROOF_H
#define WEIR_KERNEL_WEIR_PROOF_H

#include <crypto/hash.h>

#include "kernel/weir/weir.h"
#include "wire/handshake.h"

struct key;

/**
 * struct kweir_secret - what a session keeps of its key
 * @hmac: knows it
 * @key_id: names it to the donor
 */
struct kweir_secret {
	struct crypto_shash *hmac;
	u64 key_id;
};

/* One end of a QP, as the verbs know it. */
struct kweir_qp_addr {
	u8 gid[WIRE_GID];
	u32 qpn;
};

/**
 * struct kweir_proof - one channel's handshake
 * @peer: the donor, for people; of who began it
 * @remote: what the QP is connected to
 * @welcome: the donor's, once it is done
 */
struct kweir_proof {
	const struct kweir_secret *secret;
	const char *peer;
	struct kweir_qp_addr remote;
	bool done;
	struct wire_handshake_hello hello;
	struct wire_handshake_challenge challenge;
	struct wire_handshake_welcome welcome;
};

/* @key: NULL is the empty one. Return: 0; -EINVAL its length is no key's; -ENOMEM, -ENOENT. */
int kweir_secret_init(struct kweir_secret *secret, struct key *key, struct kweir_error *error);
void kweir_secret_fini(struct kweir_secret *secret);

/* Begins one and writes the HELLO to @out. Return: its length. */
size_t kweir_proof_begin(struct kweir_proof *proof, const struct kweir_secret *secret,
			 const struct kweir_qp_addr *local, const struct kweir_qp_addr *remote,
			 u64 session_id, u16 channel, u16 credits, void *out);

/**
 * kweir_proof_input() - a message came
 * @out: room for WIRE_HANDSHAKE_MAX bytes
 * @out_length: receives how many of them to send; 0: @proof->done says that it is over
 *
 * Return: 0; -EKEYREJECTED; -EPROTO; -EPROTONOSUPPORT; what the donor refused with.
 */
int kweir_proof_input(struct kweir_proof *proof, const void *in, size_t in_length, void *out,
		      size_t *out_length, struct kweir_error *error);

/* What @peer refused with, in words. Return: the negative errno. */
int kweir_proof_explain_refusal(const struct wire_handshake_refusal *refusal, const char *peer,
				struct kweir_error *error);

#endif
