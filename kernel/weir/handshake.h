/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's host of the handshake, whose states are in core/link/handshake.h: the key, the
 * primitives, failures in words.
 */
#ifndef WEIR_KERNEL_WEIR_HANDSHAKE_H
#define WEIR_KERNEL_WEIR_HANDSHAKE_H

#include "core/link/handshake.h"
#include "kernel/weir/weir.h"

struct key;

#define KWEIR_DONORS_MAX 64

/**
 * struct kweir_secret - what a session keeps of its key
 * @psk: the key as Noise takes it
 * @donors, @nr_donors: public keys of the donors to trust; none: any that knows the key
 * @key_id: names the key to the donor
 */
struct kweir_secret {
	u8 psk[WEIR_NOISE_KEY];
	u64 key_id;
	u8 donors[KWEIR_DONORS_MAX][WIRE_KEY];
	unsigned int nr_donors;
};

/* @key: NULL is the empty key. Return: 0; -EINVAL not a key; -EKEYREVOKED; -ENOMEM. */
int kweir_secret_init(struct kweir_secret *secret, struct key *key, struct kweir_error *error);
void kweir_secret_fini(struct kweir_secret *secret);

/* Fills in primitives, psk and fresh secrets. */
void kweir_handshake_secrets(struct weir_handshake_setup *setup, const struct kweir_secret *secret);

/**
 * kweir_handshake_input() - weir_handshake_received(), with failures in words
 * @peer: the donor's name, for @error
 *
 * Return: as weir_handshake_received(), with the reason in @error.
 */
int kweir_handshake_input(struct weir_handshake *h, const char *peer, const void *in,
			  size_t in_length, void *out, size_t *out_length,
			  struct kweir_error *error);

/* Puts the refusal of @peer into words. @version: asked for. Return: the negative errno. */
int kweir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal, u16 version,
				    const char *peer, struct kweir_error *error);

#endif
