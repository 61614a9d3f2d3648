/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <sodium.h>
#include <stdlib.h>

#include "lib/base/error.h"
#include "lib/conn/handshake.h"
#include "lib/conn/encryption.h"

static int answer_mac(struct weir_handshake *h, void *out, size_t *out_length)
{
	uint8_t bytes[WEIR_HANDSHAKE_TRANSCRIPT_MAX], mac[WIRE_MAC];
	struct iovec transcript = { bytes, 0 };

	if (h->wanted_mac)
		weir_encryption_bind(&h->setup);
	transcript.iov_len = weir_handshake_transcript(h, bytes);
	if (!transcript.iov_len)
		return 0;
	weir_key_mac(h->setup.key, &transcript, 1, mac);
	if (h->wanted_mac == WEIR_HANDSHAKE_MAC_VERIFY)
		return weir_handshake_verify_mac(h, mac, out, out_length);
	return weir_handshake_write_mac(h, mac, out, out_length);
}

int weir_handshake_input(struct weir_handshake *h, const void *in, size_t in_length, void *out,
			 size_t *out_length)
{
	int rc = weir_handshake_received(h, in, in_length, out, out_length);

	return rc ? rc : answer_mac(h, out, out_length);
}

void weir_handshake_welcome(struct weir_handshake *h, const struct wire_handshake_welcome *welcome,
			    void *out, size_t *out_length)
{
	weir_handshake_admit(h, welcome);
	answer_mac(h, out, out_length);
}

int weir_handshake_explain(const struct weir_handshake *h, int status, const char *peer,
			   struct weir_error *error)
{
	struct weir_error refusal;

	if (h->refusal.head.magic)
		weir_handshake_refusal_explain(&h->refusal, &refusal);
	return weir_error_set(error, status, "%s: %s", peer,
			      h->refusal.head.magic ? refusal.text :
			      h->why		    ? h->why :
						      weir_strerror(status));
}

int weir_handshake_refusal_explain(const struct wire_handshake_refusal *refusal,
				   struct weir_error *error)
{
	int status = weir_handshake_refusal_status(refusal);

	if (refusal->head.version != WIRE_VERSION)
		return weir_error_set(error, status,
				      "the other end speaks version %u of the protocol, this one "
				      "version %d: upgrade the older one",
				      refusal->head.version, WIRE_VERSION);
	if (status == -(int)refusal->status)
		return weir_error_set(error, status, "the other end refused: %s", refusal->text);
	return weir_error_set(error, status, "the other end refused: %s (errno %u)", refusal->text,
			      refusal->status);
}

void weir_handshake_nonce(uint8_t nonce[static WIRE_NONCE])
{
	if (sodium_init() < 0)
		abort(); /* no randomness, no proof */
	randombytes_buf(nonce, WIRE_NONCE);
}
