/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing a volume, and serving its events. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/combine.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/futex.h"
#include "lib/base/sized.h"
#include "lib/base/thread.h"
#include "lib/volume/maintain.h"
#include "lib/volume/memory.h"
#include "lib/volume/request.h"
#include "lib/volume/resync.h"
#include "lib/volume/target.h"

#define TIMEOUT_NS_DEFAULT (3 * WEIR_NS_PER_S)
#define COPIES_DEFAULT 2u
/* A thread that came to submit does not serve others for ever. */
#define ROUNDS_MAX 16u

static_assert(WEIR_VOLUME_COPIES_MAX == WEIR_EXTENTS_REPLICAS_MAX &&
		      WEIR_VOLUME_DONORS_MAX == WEIR_EXTENTS_DONORS_MAX,
	      "the API promises what the core can");
static_assert(WEIR_VOLUME_UNIT_PAGES <= WEIR_EXTENTS_CHUNK_PAGES, "one buffer serves a chunk");

static void handle_event(struct weir_inbox_node *node)
{
	struct weir_volume_event *event = container_of(node, struct weir_volume_event, node);

	switch (event->kind) {
	case WEIR_VOLUME_EVENT_REQUEST:
		weir_volume_request_admit(container_of(event, struct weir_volume_request, event));
		break;
	case WEIR_VOLUME_EVENT_PIECE:
		weir_volume_piece_continue(container_of(event, struct weir_volume_piece, event));
		break;
	case WEIR_VOLUME_EVENT_RESYNC:
		weir_volume_resync_continue(container_of(event, struct weir_volume, resync.event));
		break;
	}
}

/* With the lock held. */
static void handle_events(struct weir_volume *v)
{
	struct weir_inbox_node *node = weir_inbox_take(&v->inbox);

	while (node) {
		struct weir_inbox_node *next = node->next;

		handle_event(node);
		node = next;
	}
}

/* With the lock held. Return: true if more requests can start pieces. */
static bool serve_one(struct weir_volume *v)
{
	struct weir_list *link = v->active.next;

	if (weir_list_is_empty(&v->active))
		return false;
	weir_list_del(link);
	weir_volume_request_advance(weir_list_entry(link, struct weir_volume_request, active));
	return !weir_list_is_empty(&v->active);
}

/* Gives the lock back. Return: true if nothing is left to this thread after @rounds. */
static bool serve_and_unlock(struct weir_volume *v, unsigned int rounds)
{
	bool has_more;

	do {
		if (!rounds--) {
			weir_mutex_unlock(&v->lock);
			return false;
		}
		handle_events(v);
		has_more = serve_one(v);
		weir_mutex_unlock(&v->lock);
		if (weir_combine_may_leave(&v->inbox, has_more))
			return true;
	} while (weir_mutex_trylock(&v->lock));
	return true;
}

void weir_volume_unlock(struct weir_volume *v)
{
	bool is_served = serve_and_unlock(v, ROUNDS_MAX);

	if (!weir_volume_requests_dispatch(v, ROUNDS_MAX) || !is_served)
		weir_volume_wake(&v->serve);
}

static void *serve(void *arg)
{
	struct weir_volume *v = arg;
	bool is_over;

	do {
		uint32_t seen = __atomic_load_n(&v->serve, __ATOMIC_SEQ_CST);

		is_over = __atomic_load_n(&v->is_over, __ATOMIC_SEQ_CST);
		weir_volume_lock(v);
		serve_and_unlock(v, UINT_MAX);
		weir_volume_requests_dispatch(v, UINT_MAX);
		if (!is_over)
			weir_volume_sleep(&v->serve, seen, UINT64_MAX);
	} while (!is_over);
	return NULL;
}

void weir_volume_push(struct weir_volume *v, struct weir_volume_event *event)
{
	weir_inbox_push(&v->inbox, &event->node);
	if (weir_mutex_trylock(&v->lock))
		weir_volume_unlock(v);
}

void weir_volume_wake(uint32_t *word)
{
	__atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
	weir_futex_wake(word, INT_MAX);
}

void weir_volume_sleep(uint32_t *word, uint32_t seen, uint64_t deadline_ns)
{
	if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == seen)
		weir_futex_wait(word, seen, deadline_ns);
}

static int check_donors(const struct weir_volume_options *o, struct weir_error *error)
{
	if (!o->donors || o->nr_donors < 1 || o->nr_donors > WEIR_VOLUME_DONORS_MAX)
		return weir_error_set(error, -EINVAL, "a volume with %u donors: name 1 to %d",
				      o->nr_donors, WEIR_VOLUME_DONORS_MAX);
	for (unsigned int i = 0; i < o->nr_donors; i++) {
		for (unsigned int j = 0; j < i; j++) {
			if (!strcmp(o->donors[i], o->donors[j]))
				return weir_error_set(error, -EINVAL,
						      "%s is named twice: two copies there would "
						      "be lost together",
						      o->donors[i]);
		}
	}
	return 0;
}

/* Checks the options, and fills in defaults. */
static int check_options(struct weir_volume_options *o, struct weir_error *error)
{
	int rc = check_donors(o, error);

	if (rc)
		return rc;
	if (!o->copies)
		o->copies = o->nr_donors < COPIES_DEFAULT ? o->nr_donors : COPIES_DEFAULT;
	if (!o->timeout_ns)
		o->timeout_ns = TIMEOUT_NS_DEFAULT;
	if (!o->bytes)
		return weir_error_set(error, -EINVAL, "a volume of 0 bytes: set options.bytes");
	if (o->copies > WEIR_VOLUME_COPIES_MAX || o->copies > o->nr_donors)
		return weir_error_set(error, -EINVAL,
				      "%u copies at %u donors: at most %d, each at another donor",
				      o->copies, o->nr_donors, WEIR_VOLUME_COPIES_MAX);
	return 0;
}

static struct weir_volume *volume_alloc(const struct weir_volume_options *o)
{
	struct weir_volume *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->options = *o;
	v->bytes = o->bytes;
	weir_order_init(&v->order, o->bytes);
	weir_list_init(&v->pending);
	weir_list_init(&v->active);
	weir_list_init(&v->memory_waiters);
	weir_inbox_init(&v->inbox);
	weir_inbox_init(&v->done);
	v->resync.event.kind = WEIR_VOLUME_EVENT_RESYNC;
	v->resync.chunk = malloc((size_t)WEIR_EXTENTS_CHUNK_PAGES * WEIR_VOLUME_PAGE_BYTES);
	v->targets = calloc(o->nr_donors, sizeof(*v->targets));
	v->device = o->device ? strdup(o->device) : NULL;
	v->options.device = v->device;
	if (v->resync.chunk && v->targets && (v->device || !o->device))
		return v;
	free(v->resync.chunk);
	free(v->device);
	free(v->targets);
	free(v);
	return NULL;
}

static int open_targets(struct weir_volume *v, struct weir_error *error)
{
	int rc = 0;

	for (unsigned int i = 0; !rc && i < v->options.nr_donors; i++) {
		struct weir_volume_target *target = &v->targets[i];

		target->volume = v;
		target->address = strdup(v->options.donors[i]);
		if (!target->address)
			return weir_error_set(error, -ENOMEM, "out of memory");
		v->nr_targets++;
		rc = weir_volume_target_open(target, error);
	}
	return rc;
}

static int borrow_memory(struct weir_volume *v, struct weir_error *error)
{
	struct weir_error reason = { "" };
	struct weir_extents_census census;
	int rc = 0;

	for (unsigned int i = 0; !rc && i < v->nr_targets; i++) {
		weir_extents_donor_up(&v->core, (uint8_t)i);
		rc = weir_volume_memory_query_room(v, (uint8_t)i);
		if (rc)
			return weir_error_set(error, rc, "%s does not say how much it lends: %s",
					      v->targets[i].address, weir_strerror(rc));
	}
	rc = weir_volume_memory_fetch(v, &reason);
	if (!rc)
		return 0;
	census = weir_extents_census(&v->core);
	return weir_error_set(error, rc,
			      "the donors lend too little: %u of %u pieces of %llu MiB have all "
			      "copies. %s",
			      census.whole, v->core.nr_extents,
			      (unsigned long long)weir_volume_extent_bytes(v) >> 20, reason.text);
}

static int start_threads(struct weir_volume *v, struct weir_error *error)
{
	int rc = weir_thread_create(&v->server, "weir-serve", serve, v, error);

	v->has_server = !rc;
	if (rc)
		return rc;
	rc = weir_thread_create(&v->maintainer, "weir-volume", weir_volume_maintain, v, error);
	v->has_maintainer = !rc;
	return rc;
}

int weir_volume_open(const struct weir_volume_options *given, struct weir_volume **volume,
		     struct weir_error *error)
{
	struct weir_volume_options options;
	struct weir_volume *v;
	int rc = weir_sized_in(&options, sizeof(options), given, "weir_volume_options", error);

	if (!rc)
		rc = check_options(&options, error);
	if (rc)
		return rc;
	v = volume_alloc(&options);
	if (!v)
		return weir_error_set(error, -ENOMEM, "out of memory");
	rc = open_targets(v, error);
	if (!rc) {
		rc = weir_volume_memory_init(v);
		if (rc)
			weir_error_set(error, rc, "no memory for a volume of %llu bytes",
				       (unsigned long long)v->bytes);
	}
	if (!rc)
		rc = borrow_memory(v, error);
	if (!rc)
		rc = start_threads(v, error);
	if (rc)
		weir_volume_close(v);
	else
		*volume = v;
	return rc;
}

/* Requests at donors end by their sessions' timeouts. */
static void wait_for_requests(struct weir_volume *v)
{
	bool any = true;

	while (any) {
		weir_volume_lock(v);
		weir_volume_pieces_resume(v, true);
		any = !weir_list_is_empty(&v->pending) || v->resync.is_busy;
		weir_volume_unlock(v);
		if (any)
			poll(NULL, 0, 1);
	}
}

void weir_volume_close(struct weir_volume *v)
{
	if (!v)
		return;
	__atomic_store_n(&v->closing, true, __ATOMIC_SEQ_CST);
	weir_volume_kick(v);
	if (v->has_maintainer)
		pthread_join(v->maintainer, NULL);
	wait_for_requests(v);
	__atomic_store_n(&v->is_over, true, __ATOMIC_SEQ_CST);
	weir_volume_wake(&v->serve);
	if (v->has_server)
		pthread_join(v->server, NULL);
	for (unsigned int i = 0; i < v->nr_targets; i++)
		weir_volume_target_close(&v->targets[i]);
	weir_volume_memory_fini(v);
	free(v->resync.chunk);
	free(v->device);
	free(v->targets);
	free(v);
}

static unsigned int count_up(const struct weir_volume *v)
{
	unsigned int up = 0;

	for (unsigned int i = 0; i < v->nr_targets; i++)
		up += v->core.donor[i].state == WEIR_EXTENTS_DONOR_UP;
	return up;
}

int weir_volume_info(struct weir_volume *v, struct weir_volume_info *given, size_t size)
{
	struct weir_extents_census census;
	struct weir_volume_info info;

	weir_volume_lock(v);
	census = weir_extents_census(&v->core);
	info = (struct weir_volume_info){
		.bytes = v->bytes,
		.copies = v->core.replicas,
		.donors = v->nr_targets,
		.donors_up = count_up(v),
		.extent_bytes = weir_volume_extent_bytes(v),
		.extents = v->core.nr_extents,
		.whole = census.whole,
		.lean = census.lean,
		.lost = census.lost,
		.copied_bytes = v->core.copied * WEIR_VOLUME_PAGE_BYTES,
		.failovers = v->failovers,
		.mismatches = v->mismatches,
		.missed_writes = v->missed_writes,
		.sessions = v->sessions,
	};
	weir_volume_unlock(v);
	return weir_sized_out(given, size, &info, sizeof(info));
}
