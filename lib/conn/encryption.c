/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/symbol.h"
#include "lib/conn/encryption.h"

/* As softnic/qp_far/far_seal.h declares them. */
static struct {
	void (*ask)(struct ibv_qp *qp);
	const char *(*state)(struct ibv_qp *qp, uint8_t *session, int *can);
} device;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_all(void)
{
	weir_symbol_find("softnic_seal_ask", &device.ask);
	weir_symbol_find("softnic_seal_state", &device.state);
}

static const char *state_of(struct ibv_qp *qp, uint8_t session[static WIRE_SESSION], int *can)
{
	*can = 0;
	pthread_once(&once, find_all);
	return qp && device.state ? device.state(qp, session, can) : NULL;
}

void weir_encryption_ask(struct ibv_qp *qp)
{
	pthread_once(&once, find_all);
	if (qp && device.ask)
		device.ask(qp);
}

int weir_encryption_check(uint64_t encryption, bool has_key, struct weir_error *error)
{
	if (encryption > WEIR_ENCRYPTION_REQUIRED)
		return weir_error_set(error, -EINVAL,
				      "there is no encryption number %llu: at most %u",
				      (unsigned long long)encryption, WEIR_ENCRYPTION_REQUIRED);
	if (encryption != WEIR_ENCRYPTION_REQUIRED)
		return 0;
	if (!has_key)
		return weir_error_set(error, -EINVAL,
				      "encryption is required, but there is no key");
	pthread_once(&once, find_all);
	if (!device.ask)
		return weir_error_set(error, -ENODEV,
				      "encryption is required, but only softnic encrypts: "
				      "use the device softnic");
	return 0;
}

const char *weir_encryption_cipher(struct ibv_qp *qp)
{
	uint8_t session[WIRE_SESSION];
	int can;

	return state_of(qp, session, &can);
}

void weir_encryption_bind(struct weir_handshake_setup *setup)
{
	const char *cipher;
	int can;

	if (!setup->qp)
		return;
	cipher = state_of(setup->qp, setup->session, &can);
	setup->encrypts = can && setup->key; /* without a key, nothing was asked for */
	setup->is_encrypted = cipher && strcmp(cipher, "none");
}
