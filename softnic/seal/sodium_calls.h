/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions of libsodium that encryption uses, loaded when the first connection asks for it.
 *
 * softnic is preloaded into programs of all kinds. So it must not bring a library into programs
 * that encrypt nothing, and its wheel must run on hosts without libsodium. The distribution's
 * static libsodium is not position-independent and cannot become part of softnic.
 */
#ifndef WEIR_SOFTNIC_SEAL_SODIUM_CALLS_H
#define WEIR_SOFTNIC_SEAL_SODIUM_CALLS_H

#include <sodium.h>
#include <stdbool.h>

/* X(function): all of them exist since libsodium 1.0.9. */
#define SODIUM_CALLS(X)                                     \
	X(sodium_init)                                      \
	X(crypto_scalarmult)                                \
	X(crypto_scalarmult_base)                           \
	X(crypto_generichash)                               \
	X(crypto_verify_32)                                 \
	X(crypto_aead_aes256gcm_is_available)               \
	X(crypto_aead_aes256gcm_beforenm)                   \
	X(crypto_aead_aes256gcm_encrypt_afternm)            \
	X(crypto_aead_aes256gcm_decrypt_afternm)            \
	X(crypto_aead_chacha20poly1305_ietf_encrypt)        \
	X(crypto_aead_chacha20poly1305_ietf_decrypt)

struct sodium_calls {
#define SODIUM_FIELD(function) __typeof__(&function) function;
	SODIUM_CALLS(SODIUM_FIELD)
#undef SODIUM_FIELD
	bool has_aes;
};

/**
 * sodium_calls() - the functions
 *
 * Context: Any thread. The first call may read files.
 * Return: NULL if this host has no libsodium: nothing can be encrypted.
 */
const struct sodium_calls *sodium_calls(void);

#endif
