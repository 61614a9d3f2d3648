/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who has a NIC's lock serves what comes through its inbox: the protocol of core/inbox.h.
 *
 * Whoever takes the lock takes what has come, so that under it all is submitted that was submitted
 * before; and whoever gives it back looks, and posts what is there to be posted. No thread waits
 * for the lock to submit: it leaves its request, and if another has the lock, that one serves it.
 *
 * A thread that serves touches the sessions that it finds requests of, and no other, not even the
 * one that it came for: once its request is served by somebody, that may be closed.
 */
#ifndef WEIR_LIB_SERVE_H
#define WEIR_LIB_SERVE_H

#include "lib/nic.h"

struct weir_request;
struct weir_session;

/* Takes the lock, and what has come. */
void weir_nic_lock(struct weir_nic *nic);

/* Gives the lock back, looks, and serves: others' completions are left to others. */
void weir_nic_unlock(struct weir_nic *nic);

/**
 * weir_serve() - leave a request, and serve unless somebody does
 * @nic: that of its session
 * @request: filled in; gone, once this returns
 * @session: whose. Its completions are polled for, and delivered, by whoever comes for it
 *
 * Inside a callback it only leaves it: whoever runs the callbacks comes round when they have
 * returned, and posts what they all have left.
 * Context: any thread; without nic->lock.
 */
void weir_serve(struct weir_nic *nic, struct weir_request *request, struct weir_session *session);

#endif
