// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A poller walks the doorbells of its CQ without the lock that other threads take. A doorbell
 * is linked behind the first only when complete, and unlinked only under the poller's lock. The
 * engine must not wait for a poller, so it tries that lock and otherwise leaves the unlinking
 * to the poller.
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

struct shm_doorbell_page *doorbell_page_create(int *fd)
{
	struct shm_doorbell_page *doorbell_page = calloc(1, sizeof(*doorbell_page));
	void *map;

	if (doorbell_page &&
	    shared_create("softnic-bell", sizeof(*doorbell_page->shared), false, fd, &map)) {
		free(doorbell_page);
		doorbell_page = NULL;
	}
	if (!doorbell_page)
		return NULL;
	doorbell_page->shared = map;
	doorbell_page->users = 1;
	return doorbell_page;
}

static void put_page(struct shm_doorbell_page *doorbell_page)
{
	if (add_ordered(&doorbell_page->users, -1))
		return;
	munmap(doorbell_page->shared, sizeof(*doorbell_page->shared));
	free(doorbell_page);
}

/* Earlier arrivals belong to a CQ that had this index before. */
static void skip_arrivals(struct shared_cq *at)
{
	uint32_t arrivals = load_relaxed(&at->arrivals);

	store_relaxed(&at->told, arrivals);
	store_relaxed(&at->solicited_told, load_relaxed(&at->solicited));
	store_relaxed(&at->consumed, arrivals);
}

/* Under doorbells_lock: a new doorbell starts with the state of the CQ's own. */
static void copy_state(struct cq *cq, struct shared_cq *at)
{
	skip_arrivals(at);
	store_relaxed(&at->capacity, load_relaxed(&cq->doorbell.at->capacity));
	store_relaxed(&at->is_stamped, load_relaxed(&cq->doorbell.at->is_stamped));
	store_ordered(&at->armed, cq->armed);
}

static void start_counting(struct cq_doorbell *l)
{
	l->heard = l->seen = l->answered = load_relaxed(&l->at->arrivals);
	l->solicited_heard = l->solicited_seen = load_relaxed(&l->at->solicited);
}

int doorbell_attach(struct shm_doorbell_page *doorbell_page, struct cq *cq)
{
	struct cq_doorbell *l;

	for (l = doorbell_page->doorbells; l; l = l->next_of_page)
		if (l->cq == cq)
			return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct cq_doorbell){ .at = &doorbell_page->shared->cqs[cq->ibv.handle],
				   .doorbell_page = doorbell_page,
				   .cq = cq };
	add_ordered(&doorbell_page->users, 1);
	l->next_of_page = doorbell_page->doorbells;
	doorbell_page->doorbells = l;
	pthread_mutex_lock(&cq->doorbells_lock);
	copy_state(cq, l->at);
	start_counting(l);
	l->next = cq->doorbell.next;
	store_release(&cq->doorbell.next, l);
	pthread_mutex_unlock(&cq->doorbells_lock);
	return 0;
}

/* Under cq->lock: their uncounted arrivals pass to the CQ. */
static void free_ended(struct cq *cq)
{
	struct cq_doorbell **at, *l;

	pthread_mutex_lock(&cq->doorbells_lock);
	for (at = &cq->doorbell.next; (l = *at);) {
		if (!l->has_ended) {
			at = &l->next;
			continue;
		}
		cq->arrived += load_acquire(&l->at->arrivals) - l->heard;
		*at = l->next;
		put_page(l->doorbell_page);
		free(l);
	}
	pthread_mutex_unlock(&cq->doorbells_lock);
}

/* Rings the CQ's own doorbell so that a poller looks; frees the doorbells if the lock is free. */
void doorbell_detach_all(struct shm_doorbell_page *doorbell_page)
{
	struct cq_doorbell *l;
	struct cq *cq;

	while (doorbell_page->wakeups)
		wakeup_destroy(doorbell_page->wakeups);
	while ((l = doorbell_page->doorbells)) {
		doorbell_page->doorbells = l->next_of_page;
		cq = l->cq;
		pthread_mutex_lock(&cq->doorbells_lock);
		store_relaxed(&l->has_ended, true);
		pthread_mutex_unlock(&cq->doorbells_lock);
		/* the client may have completed without marking */
		ready_list_mark_all(cq->doorbell.at);
		add_ordered(&cq->doorbell.at->arrivals, 1);
		if (cq->ibv.channel && doorbell_was_rung(cq))
			comp_channel_fire(to_comp_channel(cq->ibv.channel), cq);
		if (!pthread_mutex_trylock(&cq->lock)) {
			free_ended(cq);
			pthread_mutex_unlock(&cq->lock);
		}
	}
	put_page(doorbell_page);
}

void doorbell_init(struct cq *cq)
{
	pthread_mutex_init(&cq->doorbells_lock, NULL);
	cq->doorbell =
		(struct cq_doorbell){ .at = &nic.doorbell_page->cqs[cq->ibv.handle], .cq = cq };
	start_counting(&cq->doorbell);
	skip_arrivals(cq->doorbell.at);
	store_relaxed(&cq->doorbell.at->armed, ARMED_NOT);
	store_relaxed(&cq->doorbell.at->capacity, cq->capacity);
}

void doorbell_fini(struct cq *cq)
{
	struct cq_doorbell **at, *l;

	pthread_mutex_lock(&nic.lock);
	for (l = cq->doorbell.next; l; l = l->next) {
		if (l->has_ended)
			continue;
		for (at = &l->doorbell_page->doorbells; *at != l; at = &(*at)->next_of_page)
			;
		*at = l->next_of_page;
		store_relaxed(&l->has_ended, true);
	}
	pthread_mutex_unlock(&nic.lock);
	free_ended(cq);
	pthread_mutex_destroy(&cq->doorbells_lock);
}

void doorbell_collect(struct cq *cq)
{
	struct cq_doorbell *l;
	uint32_t arrivals;

	for (l = &cq->doorbell; l; l = doorbell_next(l)) {
		l->solicited_heard = load_acquire(&l->at->solicited);
		arrivals = load_acquire(&l->at->arrivals);
		if (arrivals == l->heard)
			continue;
		cq->arrived += arrivals - l->heard;
		l->heard = arrivals;
		ready_list_collect(&cq->ready_list, l->at); /* their marks are there */
	}
}

void doorbell_ack(struct cq *cq, uint32_t waiting, bool all)
{
	bool has_ended = false;
	struct cq_doorbell *l;

	for (l = &cq->doorbell; l; l = doorbell_next(l)) {
		store_relaxed(&l->answered, l->heard - waiting);
		store_relaxed(&l->at->consumed, l->answered);
		if (all) {
			store_relaxed(&l->seen, l->heard);
			store_relaxed(&l->solicited_seen, l->solicited_heard);
		}
		has_ended |= load_relaxed(&l->has_ended);
	}
	if (has_ended)
		free_ended(cq);
}

/*
 * Whether there are completions of the kind armed for, neither polled nor reported by an event.
 * A completion that the last poll had no room for counts again, or a program that polls part
 * and sleeps would sleep for ever.
 */
static bool has_news(const struct cq_doorbell *l, bool solicited)
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

static void note_told(struct cq_doorbell *l)
{
	store_relaxed(&l->at->told, load_ordered(&l->at->arrivals));
	store_relaxed(&l->at->solicited_told, load_ordered(&l->at->solicited));
}

/*
 * Under doorbells_lock. One event reports all earlier arrivals. A client that cleared its flag
 * has recorded itself which ones.
 */
static bool end_arms(struct cq *cq)
{
	struct cq_doorbell *l;

	if (cq->armed == ARMED_NOT)
		return false;
	store_relaxed(&cq->armed, ARMED_NOT);
	for (l = &cq->doorbell; l; l = l->next)
		if (swap_ordered(&l->at->armed, ARMED_NOT) != ARMED_NOT || !l->doorbell_page)
			note_told(l);
	return true;
}

bool doorbell_arm(struct cq *cq, uint32_t how)
{
	struct cq_doorbell *l, *news = NULL;

	pthread_mutex_lock(&cq->doorbells_lock);
	if (how > cq->armed) /* armed for any event stays so */
		store_relaxed(&cq->armed, how);
	for (l = &cq->doorbell; l; l = l->next)
		store_ordered(&l->at->armed, cq->armed);
	for (l = &cq->doorbell; l && !news; l = l->next)
		if (has_news(l, how == ARMED_SOLICITED) &&
		    swap_ordered(&l->at->armed, ARMED_NOT) != ARMED_NOT)
			news = l;
	if (news) {
		note_told(news);
		end_arms(cq);
	}
	pthread_mutex_unlock(&cq->doorbells_lock);
	return news;
}

bool doorbell_disarm(struct cq *cq)
{
	bool ended;

	pthread_mutex_lock(&cq->doorbells_lock);
	ended = end_arms(cq);
	pthread_mutex_unlock(&cq->doorbells_lock);
	return ended;
}

bool doorbell_was_rung(struct cq *cq)
{
	struct cq_doorbell *l;
	bool ended;

	pthread_mutex_lock(&cq->doorbells_lock);
	for (l = &cq->doorbell; l; l = l->next)
		if (load_ordered(&l->at->armed) == ARMED_NOT)
			break;
	ended = l && end_arms(cq);
	pthread_mutex_unlock(&cq->doorbells_lock);
	return ended;
}

void doorbell_resize(struct cq *cq)
{
	struct cq_doorbell *l;

	pthread_mutex_lock(&cq->doorbells_lock);
	for (l = &cq->doorbell; l; l = l->next)
		store_relaxed(&l->at->capacity, cq->capacity);
	pthread_mutex_unlock(&cq->doorbells_lock);
}
