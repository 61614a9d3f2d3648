/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connecting end of a connection: from an address to a connected QP, closed to RDMA.
 *
 *	weir_dialer_resolve()		a device and a route
 *	weir_qp_create() of d->id	d->qp; the caller posts receives
 *	weir_dialer_connect()
 *	weir_proof_run()		or the caller's own handshake
 *
 * Each step blocks until it succeeds, fails, is cancelled or is late. A step that fails explains
 * the failure in d->error.
 *
 * Context of all: the thread that connects.
 */
#ifndef WEIR_LIB_CONN_DIALER_H
#define WEIR_LIB_CONN_DIALER_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>
#include "wire/handshake.h"

/* A peer slow to post receives is still alive: the 7 of verbs. */
#define WEIR_DIALER_RNR_FOR_EVER 7

/**
 * struct weir_dialer_again - what the next attempt learns from a refusal; zero at first
 * @version: to ask for; 0: the newest
 * @offered: the version in the refusal
 * @cookie: of the refusal: lib/conn/cookie.h
 * @had_cookie: an attempt has brought a cookie
 */
struct weir_dialer_again {
	uint16_t version, offered;
	uint8_t cookie[WIRE_COOKIE];
	bool had_cookie;
};

/**
 * struct weir_dialer - an attempt to connect
 * @peer: the address, for errors
 * @device: name of the only device allowed; NULL: any
 * @tos: type of service; 0: the default
 * @deadline_ns: end of the attempt
 * @check: asked every @check_ms whether to go on: 0, or the status and the reason that end the
 *	attempt; NULL: never ends early
 * @arg: for @check
 * @error: receives the reason of a failure; may be NULL
 * @cm: event channel of @id alone
 * @id: from weir_dialer_resolve() on
 * @qp: set by the caller before weir_dialer_connect()
 * @checked_ns: time of the last @check
 * @again: what the listener's last refusal asks for in the REQ of another attempt
 *
 * The caller sets the fields down to @error, and owes weir_dialer_close() even after a failure,
 * unless another object takes @cm, @id and @qp.
 */
struct weir_dialer {
	const char *peer, *device;
	uint8_t tos;
	uint64_t deadline_ns;
	int (*check)(void *arg, struct weir_error *error);
	void *arg;
	unsigned int check_ms;
	struct weir_error *error;

	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	uint64_t checked_ns;
	struct weir_dialer_again again;
};

/**
 * weir_dialer_resolve() - find a device and a route
 *
 * Return: 0; -ENODEV no device, or another than @device; -EHOSTUNREACH no route; -ENOMEM;
 * -EINVAL the device refuses @tos; or as weir_dialer_check().
 */
int weir_dialer_resolve(struct weir_dialer *d, const struct sockaddr *address);

/**
 * weir_dialer_connect() - connect @qp, which has receives posted
 * @data, @length: private data of the REQ
 * @reads: concurrent reads in each direction
 * @rnr_retry: retries when the peer has no receive posted
 *
 * Return: 0; -ECONNREFUSED nobody listens; -EAGAIN rejected for now; -EHOSTUNREACH; the status of
 * the peer's refusal; or as weir_dialer_check().
 */
int weir_dialer_connect(struct weir_dialer *d, const void *data, size_t length, uint8_t reads,
			uint8_t rnr_retry);

/**
 * weir_dialer_step() - take one event, without blocking
 *
 * Return: 1 the @wanted event; 0 no event; or the error that another event means.
 */
int weir_dialer_step(struct weir_dialer *d, enum rdma_cm_event_type wanted);

/* Return: 0 to go on; -ETIMEDOUT; or the status of d->check. */
int weir_dialer_check(struct weir_dialer *d);

/**
 * weir_dialer_hand_over() - move the connected id to a channel shared with other ids
 *
 * On success only @id and @qp remain. Return: 0 or a negative errno.
 */
int weir_dialer_hand_over(struct weir_dialer *d, struct rdma_event_channel *cm);

/* The version for the REQ. */
uint16_t weir_dialer_version(const struct weir_dialer_again *again);

/**
 * weir_dialer_tries_again() - whether an attempt that ended with @rc is worth another one at once
 *
 * The listener has given a cookie, or speaks only an older version that this end speaks, too. Each
 * attempt has an id and a QP of its own, and the @again of the one before.
 */
bool weir_dialer_tries_again(struct weir_dialer_again *again, int rc);

/* Disconnects, and destroys @qp, @id and @cm, as far as they exist. Another attempt may follow. */
void weir_dialer_close(struct weir_dialer *d);

#endif
