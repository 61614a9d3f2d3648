/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's host of the handshake, whose states are in core/link/handshake.h: the key, its MACs,
 * failures in words.
 */
#ifndef WEIR_KERNEL_WEIR_HANDSHAKE_H
#define WEIR_KERNEL_WEIR_HANDSHAKE_H

#include <crypto/hash.h>

#include "core/link/handshake.h"
#include "kernel/weir/weir.h"

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

/* @key: NULL is the empty key. Return: 0; -EINVAL bad length of the key; -ENOMEM, -ENOENT. */
int kweir_secret_init(struct kweir_secret *secret, struct key *key, struct kweir_error *error);
void kweir_secret_fini(struct kweir_secret *secret);

/**
 * kweir_handshake_input() - weir_handshake_received(), with the MAC if one is wanted
 * @peer: the donor's name, for @error
 *
 * Return: as weir_handshake_received(), with the reason in @error.
 */
int kweir_handshake_input(struct weir_handshake *h, const struct kweir_secret *secret,
			  const char *peer, const void *in, size_t in_length, void *out,
			  size_t *out_length, struct kweir_error *error);

/* Puts the refusal of @peer into words. Return: the negative errno. */
int kweir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal, const char *peer,
				    struct kweir_error *error);

#endif
