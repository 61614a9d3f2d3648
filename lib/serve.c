/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions with something to post stand in nic->fed. One chain is posted at a time, and the lock
 * given back, so that another thread may go on with the rest; who posted it goes on if none does.
 */
#include "lib/clock.h"
#include "lib/deliver.h"
#include "lib/pump.h"
#include "lib/request.h"
#include "lib/serve.h"
#include "lib/session.h"

/* A thread that only came to submit does not deliver for ever what others submit. */
#define ROUNDS_MAX 16

/* What follows down to serve(): with nic->lock held. */
static void feed(struct weir_nic *nic, struct weir_request *request)
{
	struct weir_session *session = request->session;

	if (weir_list_is_empty(&session->fed))
		weir_list_add_tail(&nic->fed, &session->fed);
	weir_request_admit(request);
}

static void take(struct weir_nic *nic)
{
	struct weir_inbox_node *node = weir_inbox_take(&nic->inbox), *next;

	for (; node; node = next) {
		next = node->next;
		feed(nic, container_of(node, struct weir_request, node));
	}
}

/* One session's turn. It may give the lock up in between. */
static void serve_first(struct weir_nic *nic, const struct weir_session *mine)
{
	struct weir_session *session = weir_list_entry(nic->fed.next, struct weir_session, fed);

	weir_list_del(&session->fed);
	if (weir_pump_chain(session)) {
		weir_list_add_tail(&nic->fed, &session->fed);
	} else if (session == mine) {
		weir_pump_poll(session, weir_now_ns());
		weir_pump_part(session);
		weir_deliver_locked(session);
	} else {
		weir_pump_part(session);
		weir_deliver_later(session);
	}
}

/* Gives the lock back. Returns whether there is work for whoever has it. */
static bool unlock_and_look(struct weir_nic *nic)
{
	bool more = !weir_list_is_empty(&nic->fed);

	pthread_mutex_unlock(&nic->lock);
	return more || !weir_inbox_is_empty(&nic->inbox);
}

/* When it fails, who has the lock looks when it is given back. */
static bool try_lock(struct weir_nic *nic)
{
	if (pthread_mutex_trylock(&nic->lock))
		return false;
	take(nic);
	return true;
}

/* Serves while there is work, and nobody else does. Gives the lock back. */
static void serve(struct weir_nic *nic, const struct weir_session *mine)
{
	int rounds = 0;

	do {
		if (!weir_list_is_empty(&nic->fed))
			serve_first(nic, rounds++ < ROUNDS_MAX ? mine : NULL);
	} while (unlock_and_look(nic) && try_lock(nic));
}

void weir_nic_lock(struct weir_nic *nic)
{
	pthread_mutex_lock(&nic->lock);
	take(nic);
}

void weir_nic_unlock(struct weir_nic *nic)
{
	if (unlock_and_look(nic) && try_lock(nic))
		serve(nic, NULL);
}

/* Who finds the lock free needs not pass by the inbox: it has just taken all that came before. */
void weir_serve(struct weir_nic *nic, struct weir_request *request, struct weir_session *session)
{
	bool inside = weir_deliver_nic() == nic;

	if (!inside && try_lock(nic)) {
		feed(nic, request);
		serve(nic, session);
		return;
	}
	weir_inbox_push(&nic->inbox, &request->node);
	if (!inside && try_lock(nic))
		serve(nic, session);
}
