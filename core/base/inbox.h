/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The inbox: where requests from all threads meet before anybody holds a lock (RDMAbox,
 * section IV-A). The first thread there serves all; those that come later find their
 * request taken and return, instead of standing in line for the lock.
 *
 * One inbox belongs to one lock of the host, the one over all engines of a NIC. The host
 * keeps the protocol; tests/model/inbox.pml is its proof:
 *
 *	submit(node):
 *		weir_inbox_push(inbox, node);
 *		serve();
 *
 *	serve():
 *		while (there is work && trylock) {
 *			weir_inbox_take(): submit each to its engine, in order;
 *			post one chain;
 *			more = some engine has more to post;
 *			unlock;
 *		}
 *	there is work: @more, as seen under the lock that this thread has just given back,
 *		or !weir_inbox_is_empty(), looked at after it was given back.
 *
 * Whoever holds the lock for another reason (to poll, to close) ends as serve() does: it
 * unlocks, looks, and serves while there is work. So a thread whose trylock failed may
 * leave: the one that made it fail looks again after its unlock. And one that posts a
 * chain and unlocks lets another thread take the rest, and goes on only if none did.
 */
#ifndef WEIR_CORE_BASE_INBOX_H
#define WEIR_CORE_BASE_INBOX_H

#include "core/base/platform.h"

/**
 * struct weir_inbox_node - embedded in what is pushed
 * @next: the next in what weir_inbox_take() returned
 */
struct weir_inbox_node {
	struct weir_inbox_node *next;
};

/**
 * struct weir_inbox - what has been pushed and not been taken
 * @newest: the last one pushed, or NULL; each @next leads to the one pushed before it
 */
struct weir_inbox {
	struct weir_inbox_node *newest;
};

/**
 * weir_inbox_init() - an empty inbox
 * @inbox: to be initialised
 *
 * Context: before any other thread knows it.
 */
void weir_inbox_init(struct weir_inbox *inbox);

/**
 * weir_inbox_push() - something comes
 * @inbox: the inbox
 * @node: *kept until* it is taken, and served, which another thread may do at once: the
 *	caller touches it no more, unless it knows otherwise that it lives
 *
 * The caller now owes a look at the lock: serve(), above.
 *
 * Context: Any thread or interrupt; never sleeps; lock-free.
 */
void weir_inbox_push(struct weir_inbox *inbox, struct weir_inbox_node *node);

/**
 * weir_inbox_push_all() - several come, with one step: who takes one of them takes all
 * @inbox: the inbox
 * @newest: the last of them, linked by @next down to the first
 * @oldest: the first
 *
 * Otherwise as weir_inbox_push().
 */
void weir_inbox_push_all(struct weir_inbox *inbox, struct weir_inbox_node *newest,
			 struct weir_inbox_node *oldest);

/**
 * weir_inbox_may_have() - whether there is something to take for who holds the lock
 * @inbox: the inbox
 *
 * What is being pushed meanwhile may be missed: whoever holds the lock looks again, with
 * weir_inbox_is_empty(), when he has given it back.
 *
 * Context: with the lock held; never sleeps.
 * Return: true, at least when a push had returned before this was called.
 */
static inline bool weir_inbox_may_have(const struct weir_inbox *inbox)
{
	return weir_atomic_load(&inbox->newest);
}

/**
 * weir_inbox_take() - take all that has come
 * @inbox: the inbox
 *
 * Context: with the lock held, so that what one thread took is served before what another
 *	takes later; never sleeps.
 * Return: the first that came, chained by @next to the last, or NULL. When one push
 *	returned before another began, it comes first.
 */
struct weir_inbox_node *weir_inbox_take(struct weir_inbox *inbox);

/**
 * weir_inbox_is_empty() - whether nothing waits for whoever has just unlocked
 * @inbox: the inbox
 *
 * True means more than that it was empty: a push that this did not see is ordered after
 * it, and so after the caller's unlock, so that the pusher's trylock fails only for
 * somebody who holds the lock still, and will look when he gives it back.
 *
 * Context: Any thread, after its unlock; never sleeps.
 * Return: false when there is something to take.
 */
bool weir_inbox_is_empty(struct weir_inbox *inbox);

#endif
