// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A poller walks the lines of its queue without a lock that others take: a line is put
 * behind the first, complete, and is taken away only under the lock of the poller, too. The
 * engine, which must not wait for a poller, tries for that; else the poller does it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comp_channel.h"
#include "wakeup.h"
#include "cq.h"
#include "doorbell.h"
#include "softnic/verbs/nic.h"

struct bell *line_create_bell(int *fd)
{
	struct bell *bell = calloc(1, sizeof(*bell));
	void *map;

	if (bell && shared_create("softnic-bell", sizeof(*bell->shared), false, fd, &map)) {
		free(bell);
		bell = NULL;
	}
	if (!bell)
		return NULL;
	bell->shared = map;
	bell->users = 1;
	return bell;
}

static void put(struct bell *bell)
{
	if (add_ordered(&bell->users, -1))
		return;
	munmap(bell->shared, sizeof(*bell->shared));
	free(bell);
}

/* Whatever was rung there rang another queue. */
static void forget_past(struct shared_cq *at)
{
	uint32_t arrivals = load_relaxed(&at->arrivals);

	store_relaxed(&at->told, arrivals);
	store_relaxed(&at->solicited_told, load_relaxed(&at->solicited));
	store_relaxed(&at->consumed, arrivals);
}

/* Under lines_lock. A new one knows what the queue's own does. */
static void copy_state(struct cq *cq, struct shared_cq *at)
{
	forget_past(at);
	store_relaxed(&at->capacity, load_relaxed(&cq->line.at->capacity));
	store_relaxed(&at->is_stamped, load_relaxed(&cq->line.at->is_stamped));
	store_ordered(&at->armed, cq->armed);
}

static void begin_to_hear(struct line *l)
{
	l->heard = l->seen = l->answered = load_relaxed(&l->at->arrivals);
	l->solicited_heard = l->solicited_seen = load_relaxed(&l->at->solicited);
}

int line_join(struct bell *bell, struct cq *cq)
{
	struct line *l;

	for (l = bell->lines; l; l = l->next_of_bell)
		if (l->cq == cq)
			return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct line){ .at = &bell->shared->cqs[cq->ibv.handle], .bell = bell, .cq = cq };
	add_ordered(&bell->users, 1);
	l->next_of_bell = bell->lines;
	bell->lines = l;
	pthread_mutex_lock(&cq->lines_lock);
	copy_state(cq, l->at);
	begin_to_hear(l);
	l->next = cq->line.next;
	store_release(&cq->line.next, l);
	pthread_mutex_unlock(&cq->lines_lock);
	return 0;
}

/* What they rang unheard is the queue's. cq->lock held. */
static void forget_ended(struct cq *cq)
{
	struct line **at, *l;

	pthread_mutex_lock(&cq->lines_lock);
	for (at = &cq->line.next; (l = *at); ) {
		if (!l->has_ended) {
			at = &l->next;
			continue;
		}
		cq->arrived += load_acquire(&l->at->arrivals) - l->heard;
		*at = l->next;
		put(l->bell);
		free(l);
	}
	pthread_mutex_unlock(&cq->lines_lock);
}

/* It rings once more, so that a poller looks; and forgets what ended, if we must not. */
void line_end_all(struct bell *bell)
{
	struct line *l;
	struct cq *cq;

	while (bell->cords)
		cord_cut(bell->cords);
	while ((l = bell->lines)) {
		bell->lines = l->next_of_bell;
		cq = l->cq;
		pthread_mutex_lock(&cq->lines_lock);
		store_relaxed(&l->has_ended, true);
		pthread_mutex_unlock(&cq->lines_lock);
		source_mark_all(cq->line.at);	/* what it completed and did not mark */
		add_ordered(&cq->line.at->arrivals, 1);
		if (cq->ibv.channel && line_was_rung(cq))
			channel_fire(to_channel(cq->ibv.channel), cq);
		if (!pthread_mutex_trylock(&cq->lock)) {
			forget_ended(cq);
			pthread_mutex_unlock(&cq->lock);
		}
	}
	put(bell);
}

void line_begin(struct cq *cq)
{
	pthread_mutex_init(&cq->lines_lock, NULL);
	cq->line = (struct line){ .at = &nic.bell->cqs[cq->ibv.handle], .cq = cq };
	begin_to_hear(&cq->line);
	forget_past(cq->line.at);
	store_relaxed(&cq->line.at->armed, ARMED_NOT);
	store_relaxed(&cq->line.at->capacity, cq->capacity);
}

void line_leave(struct cq *cq)
{
	struct line **at, *l;

	pthread_mutex_lock(&nic.lock);
	for (l = cq->line.next; l; l = l->next) {
		if (l->has_ended)
			continue;
		for (at = &l->bell->lines; *at != l; at = &(*at)->next_of_bell)
			;
		*at = l->next_of_bell;
		store_relaxed(&l->has_ended, true);
	}
	pthread_mutex_unlock(&nic.lock);
	forget_ended(cq);
	pthread_mutex_destroy(&cq->lines_lock);
}

void line_hear(struct cq *cq)
{
	struct line *l;
	uint32_t arrivals;

	for (l = &cq->line; l; l = line_next(l)) {
		l->solicited_heard = load_acquire(&l->at->solicited);
		arrivals = load_acquire(&l->at->arrivals);
		cq->arrived += arrivals - l->heard;
		l->heard = arrivals;
	}
}

void line_answer(struct cq *cq, uint32_t waiting, bool all)
{
	bool has_ended = false;
	struct line *l;

	for (l = &cq->line; l; l = line_next(l)) {
		store_relaxed(&l->answered, l->heard - waiting);
		store_relaxed(&l->at->consumed, l->answered);
		if (all) {
			store_relaxed(&l->seen, l->heard);
			store_relaxed(&l->solicited_seen, l->solicited_heard);
		}
		has_ended |= load_relaxed(&l->has_ended);
	}
	if (has_ended)
		forget_ended(cq);
}

/*
 * Is there what was neither polled nor told of by an event, of the kind that is waited for? What a
 * poll had no room for is news again: who polls some and sleeps would sleep for ever.
 */
static bool is_news(const struct line *l, bool solicited)
{
	uint32_t arrivals = load_ordered(&l->at->arrivals), those = load_ordered(&l->at->solicited);
	bool again = load_relaxed(&l->cq->has_left_some);

	if (solicited && (those == load_relaxed(&l->solicited_seen) ||
			  (those == load_relaxed(&l->at->solicited_told) && !again)))
		return false;
	return arrivals != load_relaxed(&l->seen) &&
	       (int32_t)(arrivals - load_relaxed(&l->answered)) > 0 &&
	       ((int32_t)(arrivals - load_relaxed(&l->at->told)) > 0 || again);
}

static void tell(struct line *l)
{
	store_relaxed(&l->at->told, load_ordered(&l->at->arrivals));
	store_relaxed(&l->at->solicited_told, load_ordered(&l->at->solicited));
}

/*
 * Under lines_lock: an event tells of all that came before it. A guest that took its arm has
 * said itself when that was.
 */
static bool end_arm(struct cq *cq)
{
	struct line *l;

	if (cq->armed == ARMED_NOT)
		return false;
	store_relaxed(&cq->armed, ARMED_NOT);
	for (l = &cq->line; l; l = l->next)
		if (swap_ordered(&l->at->armed, ARMED_NOT) != ARMED_NOT || !l->bell)
			tell(l);
	return true;
}

bool line_arm(struct cq *cq, uint32_t how)
{
	struct line *l, *news = NULL;

	pthread_mutex_lock(&cq->lines_lock);
	if (how > cq->armed)	/* an arm for any event stays one */
		store_relaxed(&cq->armed, how);
	for (l = &cq->line; l; l = l->next)
		store_ordered(&l->at->armed, cq->armed);
	for (l = &cq->line; l && !news; l = l->next)
		if (is_news(l, how == ARMED_SOLICITED) &&
		    swap_ordered(&l->at->armed, ARMED_NOT) != ARMED_NOT)
			news = l;
	if (news) {
		tell(news);
		end_arm(cq);
	}
	pthread_mutex_unlock(&cq->lines_lock);
	return news;
}

bool line_fire(struct cq *cq)
{
	bool ended;

	pthread_mutex_lock(&cq->lines_lock);
	ended = end_arm(cq);
	pthread_mutex_unlock(&cq->lines_lock);
	return ended;
}

bool line_was_rung(struct cq *cq)
{
	struct line *l;
	bool ended;

	pthread_mutex_lock(&cq->lines_lock);
	for (l = &cq->line; l; l = l->next)
		if (load_ordered(&l->at->armed) == ARMED_NOT)
			break;
	ended = l && end_arm(cq);
	pthread_mutex_unlock(&cq->lines_lock);
	return ended;
}

void line_resize(struct cq *cq)
{
	struct line *l;

	pthread_mutex_lock(&cq->lines_lock);
	for (l = &cq->line; l; l = l->next)
		store_relaxed(&l->at->capacity, cq->capacity);
	pthread_mutex_unlock(&cq->lines_lock);
}
