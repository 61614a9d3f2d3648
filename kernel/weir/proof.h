/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The client's side of the proof of the key: docs/reference/protocol.md, wire/handshake.h. Bytes
 * in; bytes
 * and a verdict out.
 */
#ifndef WEIR_KERNEL_WEIR_PROOF_H
#define WEIR_KERNEL_WEIR_PROOF_H

#include <crypto/hash.h>

#include "kernel/weir/weir.h"
#include "wire/handshake.h"

struct key;

/**
 * struct kweir_secret - what a session keeps of its key
 * @hmac: keyed with the key
 * @key_id: names the key to the donor
 */
struct kweir_secret {
	struct crypto_shash *hmac;
	u64 key_id;
};

/* One end of a QP, as the verbs report. */
struct kweir_qp_addr {
	u8 gid[WIRE_GID];
	u32 qpn;
};

/**
 * struct kweir_proof - one channel's handshake
 * @peer: name of the donor for messages; borrowed from the caller of kweir_proof_begin()
 * @remote: the QP at the other end of ours
 * @welcome: the donor's WELCOME, once @done
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

/* @key: NULL is the empty key. Return: 0; -EINVAL bad length of the key; -ENOMEM, -ENOENT. */
int kweir_secret_init(struct kweir_secret *secret, struct key *key, struct kweir_error *error);
void kweir_secret_fini(struct kweir_secret *secret);

/* Starts a handshake and writes the HELLO to @out. Return: the length of the HELLO. */
size_t kweir_proof_begin(struct kweir_proof *proof, const struct kweir_secret *secret,
			 const struct kweir_qp_addr *local, const struct kweir_qp_addr *remote,
			 u64 session_id, u16 channel, u16 credits, void *out);

/**
 * kweir_proof_input() - handle a message
 * @out: room for WIRE_HANDSHAKE_MAX bytes
 * @out_length: receives how many bytes of @out to send; 0: the handshake may be over, see
 *	@proof->done
 *
 * Return: 0; -EKEYREJECTED; -EPROTO; -EPROTONOSUPPORT; the errno of the donor's refusal.
 */
int kweir_proof_input(struct kweir_proof *proof, const void *in, size_t in_length, void *out,
		      size_t *out_length, struct kweir_error *error);

/* Puts the refusal of @peer into words. Return: the negative errno. */
int kweir_proof_explain_refusal(const struct wire_handshake_refusal *refusal, const char *peer,
				struct kweir_error *error);

#endif
