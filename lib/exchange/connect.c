/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/conn/identity.h"
#include "lib/conn/proof.h"
#include "lib/conn/qp.h"
#include "lib/exchange/setup.h"

#define CHECK_MS 100 /* between two calls of the user's goes_on */
#define HEARS 3 /* CHALLENGE, WELCOME, and the peer's offer */

static int connect_qp(struct weir_exchange *x, struct weir_dialer *d)
{
	struct wire_exchange_connect connect = {
		.magic = WIRE_EXCHANGE_MAGIC,
		.version = WIRE_EXCHANGE_VERSION,
		.key_id = weir_key_id(x->options.key),
	};
	int rc = weir_exchange_create_qp(x, d->error);

	memcpy(connect.cookie, d->again.cookie, sizeof(connect.cookie));
	if (!rc)
		rc = weir_exchange_post_setup_recvs(x, HEARS, d->error);
	d->qp = x->qp;
	return rc ? rc : weir_dialer_connect(d, &connect, sizeof(connect), WEIR_EXCHANGE_READS_MAX,
					     WEIR_DIALER_RNR_FOR_EVER);
}

static int prove_key(struct weir_exchange *x, struct weir_dialer *d)
{
	struct weir_exchange_setup_state *g = x->setup;
	struct weir_proof proof = {
		.setup = { .key = x->options.key,
			   .takes_clear = x->options.encryption == WEIR_ENCRYPTION_AUTO,
			   .version = WIRE_EXCHANGE_PROOF,
			   .version_max = WIRE_EXCHANGE_PROOF,
			   .service.magic = WIRE_EXCHANGE_MAGIC },
		.recvs = g->in,
		.sends = g->out,
		.lkey = g->mr->lkey,
		.wr_id = WEIR_EXCHANGE_SETUP_WR,
		.access = WEIR_EXCHANGE_ACCESS,
	};

	weir_identity_pin(&proof.setup, x->options.peer_identity, x->options.key);
	return weir_proof_run(d, &proof);
}

static int wait_offer(struct weir_exchange *x, struct weir_dialer *d)
{
	struct ibv_wc wc;
	int rc = weir_proof_wait_message(d, &wc);

	return rc ? rc : weir_exchange_take_offer(x, x->setup->in[wc.wr_id - WEIR_PROOF_WR],
						  wc.byte_len, d->error);
}

static int check_goes_on(void *arg, struct weir_error *error)
{
	return weir_exchange_check_goes_on(arg, error);
}

static int try_address(struct weir_exchange *x, const struct sockaddr *address,
		       uint64_t deadline_ns, struct weir_dialer_again *again,
		       struct weir_error *error)
{
	struct weir_dialer d = {
		.peer = x->info.peer,
		.device = x->options.device,
		.deadline_ns = deadline_ns,
		.check = check_goes_on,
		.arg = &x->options,
		.check_ms = CHECK_MS,
		.error = error,
		.again = *again,
	};
	int rc = weir_dialer_resolve(&d, address);

	x->cm = d.cm;
	x->id = d.id;
	if (!rc)
		rc = connect_qp(x, &d);
	*again = d.again;
	if (!rc)
		rc = prove_key(x, &d);
	if (!rc)
		rc = weir_exchange_send_offer(x, error);
	if (!rc)
		rc = wait_offer(x, &d);
	if (!rc)
		rc = weir_exchange_start(x, error);
	return rc ? rc : weir_exchange_send_offer(x, error);
}

static int connect_once(const struct sockaddr *address, const struct weir_exchange_options *options,
			uint64_t deadline_ns, struct weir_dialer_again *again,
			struct weir_exchange **out, struct weir_error *error)
{
	struct weir_exchange *x;
	int rc = weir_exchange_new(options, &x, error);

	if (rc)
		return rc;
	weir_address_format(address, x->info.peer);
	rc = try_address(x, address, deadline_ns, again, error);
	x->is_started = !rc;
	if (rc)
		weir_exchange_close(x);
	else
		*out = x;
	return rc;
}

/*
 * A listener under load wants its cookie back. The version of the exchange fixes that of the proof,
 * so there is none to ask for instead.
 */
static int connect_at(const struct sockaddr *address, const struct weir_exchange_options *options,
		      uint64_t deadline_ns, struct weir_exchange **out, struct weir_error *error)
{
	struct weir_dialer_again again = { .version = WIRE_EXCHANGE_PROOF };
	int rc;

	do
		rc = connect_once(address, options, deadline_ns, &again, out, error);
	while (weir_dialer_tries_again(&again, rc));
	return rc;
}

int weir_exchange_connect(const char *peer, const struct weir_exchange_options *options,
			  struct weir_exchange **out, struct weir_error *error)
{
	struct weir_exchange_options filled;
	struct addrinfo *list, *at;
	uint64_t deadline_ns;
	int rc = weir_exchange_options_fill(&filled, options, error);

	if (!rc)
		rc = weir_address_resolve(peer, NULL, &list, error);
	if (rc)
		return rc;
	deadline_ns = weir_after_ns(weir_now_ns(), filled.timeout_ns);
	for (at = list; at; at = at->ai_next) {
		rc = connect_at(at->ai_addr, &filled, deadline_ns, out, error);
		if (!weir_address_should_try_next(rc))
			break;
	}
	freeaddrinfo(list);
	return rc;
}
