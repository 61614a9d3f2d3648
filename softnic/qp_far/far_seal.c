// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "softnic/control/config.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp_far/far_seal.h"
#include "softnic/qp_far/far_timer.h"
#include "softnic/seal/secret.h"

enum { ENCRYPT_NEVER, ENCRYPT_IF_ASKED, ENCRYPT_ALWAYS };

static uint64_t mode(void)
{
	return config_get()->value[OPTION_ENCRYPT];
}

void far_seal_load(void)
{
	if (mode() != ENCRYPT_NEVER)
		seal_ciphers();
}

void far_seal_load_early(void)
{
	if (mode() == ENCRYPT_ALWAYS)
		seal_ciphers();
}

/* The number of another device's queue pair may hold any slot. */
static bool peer_may_be_softnic(uint32_t dest_qpn)
{
	return udp_port_is_softnic(udp_socket_port_of_qpn(dest_qpn));
}

void far_seal_fini(struct far *f)
{
	if (!f->agree)
		return;
	agree_fini(f->agree);
	if (f->has_keys)
		secret_free(f->agree, sizeof(*f->agree));
	else
		free(f->agree);
	f->agree = NULL;
}

/*
 * A user may lock little memory, so an agreement lies there only while it has keys: not before it
 * is asked for, and not in clear text.
 */
static bool move(struct far *f, bool has_keys)
{
	struct agree *to = has_keys ? secret_alloc(sizeof(*to)) : malloc(sizeof(*to));

	if (!to)
		return false;
	*to = *f->agree;
	far_seal_fini(f);
	f->agree = to;
	f->has_keys = has_keys;
	return true;
}

static bool may_encrypt(const struct far *f)
{
	return f->agree->state == AGREE_OPEN && mode() != ENCRYPT_NEVER && seal_ciphers();
}

/* Without a random secret this end refuses encryption, and says so to a peer that offers it. */
static void arm(struct far *f)
{
	uint8_t secret[SEAL_KEY_BYTES], ciphers = 0;

	if (f->agree->is_armed)
		return;
	if (may_encrypt(f) && getrandom(secret, sizeof(secret), 0) == sizeof(secret) &&
	    move(f, true))
		ciphers = seal_ciphers();
	agree_arm(f->agree, ciphers, secret);
	explicit_bzero(secret, sizeof(secret));
}

int far_seal_init(struct qp *qp, struct far *f, const struct ibv_qp_attr *attr)
{
	const struct agree_config config = {
		.qpn = qp->ibv.qp_num,
		.dest_qpn = attr->dest_qp_num,
		.receive_psn = attr->rq_psn,
	};

	f->agree = malloc(sizeof(*f->agree));
	if (!f->agree)
		return -ENOMEM;
	agree_init(f->agree, &config);
	if (mode() != ENCRYPT_ALWAYS || !peer_may_be_softnic(attr->dest_qp_num))
		return 0;
	arm(f);
	agree_ask(f->agree, softnic_loop_now_ns());
	return 0;
}

void far_seal_start(struct qp *qp)
{
	agree_start(qp->far->agree, qp->attr.sq_psn, softnic_loop_now_ns());
}

/* Only a softnic understands the agreement's messages, and it hears its own port. */
bool far_seal_may_send(struct qp *qp)
{
	struct agree *a = qp->far->agree;
	struct agree_message m;

	while (agree_output(a, &m, softnic_loop_now_ns())) {
		struct udp_path path = qp->far->path;

		path.to.port = udp_socket_port_of_qpn(qp->attr.dest_qp_num);
		agree_encode(&m, send_room());
		send_packet(&path, AGREE_MESSAGE_BYTES);
	}
	if (a->state == AGREE_CLEAR && qp->far->has_keys)
		move(qp->far, false);
	return !agree_must_wait(qp->far->agree);
}

bool far_seal_output(struct qp *qp, uint64_t now_ns)
{
	struct far *f = qp->far;
	bool is_sealed = f->agree->state == AGREE_SEALED;
	uint8_t *at = send_room();
	uint64_t path;
	size_t size = roce_qp_output(&f->roce, at + (is_sealed ? SEAL_HEADER_BYTES : 0), &path,
				     now_ns);

	if (!size)
		return false;
	if (!is_sealed) {
		send_packet(&f->path, size);
		return true;
	}
	send_sealed(&f->path, seal_close(&f->agree->seal, qp->attr.dest_qp_num, at, size));
	count(sealed, 1);
	return true;
}

/* From the first sealed packet on, the peer's own port is known. */
static void note_peer(struct qp *qp)
{
	if (qp->far->agree->state != AGREE_SEALED)
		return;
	qp->far->is_known = true;
	qp->far->path.to.port = udp_socket_port_of_qpn(qp->attr.dest_qp_num);
}

void far_seal_message(struct qp *qp, const struct agree_message *m)
{
	arm(qp->far);
	agree_input(qp->far->agree, m, softnic_loop_now_ns());
	note_peer(qp);
}

/* The tag stands where the decoder expects the ICRC. */
bool far_seal_open(struct qp *qp, const struct udp_packet *packet, struct roce_packet *decoded)
{
	uint8_t *bytes = (uint8_t *)packet->bytes; /* the receive buffer is ours */
	size_t size = agree_open(qp->far->agree, bytes, packet->size);

	if (!size) {
		count(forged, 1);
		return false;
	}
	note_peer(qp);
	return roce_packet_decode(decoded, bytes + SEAL_HEADER_BYTES, size + ROCE_ICRC_BYTES) ==
		       ROCE_ACCEPTED &&
	       decoded->dest_qpn == qp->ibv.qp_num;
}

void softnic_seal_ask(struct ibv_qp *ibv)
{
	struct qp *qp = to_qp(ibv);

	if (load_acquire(&qp->far))
		far_seal_load();
	pthread_mutex_lock(&qp->lock);
	if (far_is_connected(qp) && peer_may_be_softnic(qp->attr.dest_qp_num)) {
		arm(qp->far);
		agree_ask(qp->far->agree, softnic_loop_now_ns());
		far_timer_set(qp);
	}
	pthread_mutex_unlock(&qp->lock);
}

const char *softnic_seal_state(struct ibv_qp *ibv, uint8_t *session, int *can)
{
	struct qp *qp = to_qp(ibv);
	const char *name = NULL;
	const struct agree *a;

	*can = 0;
	if (load_acquire(&qp->far))
		far_seal_load();
	pthread_mutex_lock(&qp->lock);
	if (far_is_connected(qp)) {
		a = qp->far->agree;
		*can = mode() != ENCRYPT_NEVER && seal_ciphers();
		name = seal_cipher_name(a->state == AGREE_SEALED ? a->seal.cipher : SEAL_NONE);
		if (a->state == AGREE_SEALED)
			memcpy(session, a->session, sizeof(a->session));
	}
	pthread_mutex_unlock(&qp->lock);
	return name;
}
