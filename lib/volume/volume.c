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
#include "lib/conn/encryption.h"
#include "lib/span/span.h"
#include "lib/volume/coded/coded.h"
#include "lib/volume/donor_list.h"
#include "lib/volume/maintain.h"
#include "lib/volume/memory.h"
#include "lib/volume/pool.h"
#include "lib/volume/rebuild.h"
#include "lib/volume/request.h"
#include "lib/volume/resync.h"
#include "lib/volume/target.h"

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
		weir_volume_resync_continue(container_of(event, struct weir_volume_resync, event));
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

/* Checks the options, and fills in defaults. */
static int check_options(struct weir_volume_options *o, struct weir_error *error)
{
	int rc = weir_encryption_check(o->encryption, o->key, error);

	if (rc)
		return rc;
	if (!o->volume) {
		if (!o->timeout_ns)
			o->timeout_ns = WEIR_VOLUME_TIMEOUT_NS;
		return weir_volume_donor_list_check(o, error);
	}
	if (o->donors || o->nr_donors || o->bytes || o->copies)
		return weir_error_set(error, -EINVAL,
				      "volume %s: the pool says its donors, bytes and copies",
				      o->volume);
	o->nr_donors = WEIR_VOLUME_DONORS_MAX;
	return 0;
}

static struct weir_volume *volume_alloc(const struct weir_volume_options *o)
{
	struct weir_volume *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->options = *o;
	v->layout = o->volume ? &weir_volume_mapped : &weir_volume_donor_list;
	v->bytes = o->bytes;
	weir_order_init(&v->order, o->bytes);
	weir_list_init(&v->pending);
	weir_list_init(&v->active);
	weir_list_init(&v->memory_waiters);
	weir_inbox_init(&v->inbox);
	weir_inbox_init(&v->done);
	v->targets = calloc(o->nr_donors, sizeof(*v->targets));
	v->device = o->device ? strdup(o->device) : NULL;
	v->options.device = v->device;
	if (weir_volume_resync_init(v) && v->targets && (v->device || !o->device))
		return v;
	weir_volume_resync_fini(v);
	free(v->device);
	free(v->targets);
	free(v);
	return NULL;
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

static int start_volume(const struct weir_volume_options *given,
			const struct weir_volume_rebuild *rebuild, const bool *files_stop,
			struct weir_volume **volume, struct weir_error *error)
{
	struct weir_volume_options options = *given;
	struct weir_session_tuning tuning;
	struct weir_volume *v;
	int rc = check_options(&options, error);

	if (!rc)
		rc = weir_sized_in(&tuning, sizeof(tuning), options.tuning, "weir_session_tuning",
				   error);
	if (rc)
		return rc;
	v = volume_alloc(&options);
	if (!v)
		return weir_error_set(error, -ENOMEM, "out of memory");
	(void)weir_span_open(NULL); /* without memory there are none */
	v->tuning = tuning;
	v->options.tuning = &v->tuning;
	v->rebuild = rebuild;
	if (rebuild) /* behind what this donor serves meanwhile */
		v->tuning.class_nr = WEIR_CLASS_BULK;
	v->is_files = files_stop;
	v->stops = rebuild ? rebuild->stops : files_stop;
	rc = weir_volume_checksum_new_key(&v->checksum_key);
	if (rc)
		weir_error_set(error, rc, "no random numbers");
	else
		rc = options.volume ? weir_volume_pool_open(v, error) :
				      weir_volume_donor_list_open(v, error);
	if (!rc)
		rc = start_threads(v, error);
	if (rc)
		weir_volume_close(v);
	else
		*volume = v;
	return rc;
}

int weir_volume_start(const struct weir_volume_options *given,
		      const struct weir_volume_rebuild *rebuild, struct weir_volume **volume,
		      struct weir_error *error)
{
	return start_volume(given, rebuild, NULL, volume, error);
}

static int open_volume(const struct weir_volume_options *given, const bool *files_stop,
		       struct weir_volume **volume, struct weir_error *error)
{
	struct weir_volume *v;
	int rc = start_volume(given, NULL, files_stop, &v, error);

	if (rc)
		return rc;
	if (v->pool)
		rc = weir_volume_pool_wait_open(v, error);
	if (rc)
		weir_volume_close(v);
	else
		*volume = v;
	return rc;
}

int weir_volume_open(const struct weir_volume_options *given, struct weir_volume **volume,
		     struct weir_error *error)
{
	struct weir_volume_options options;
	int rc = weir_sized_in(&options, sizeof(options), given, "weir_volume_options", error);

	return rc ? rc : open_volume(&options, NULL, volume, error);
}

int weir_volume_open_files(const struct weir_volume_options *options, const bool *stops,
			   struct weir_volume **volume, struct weir_error *error)
{
	return open_volume(options, stops, volume, error);
}

/* Requests at donors end by their sessions' timeouts. */
static void wait_for_requests(struct weir_volume *v)
{
	bool any = true;

	while (any) {
		weir_volume_lock(v);
		weir_volume_pieces_resume(v, true);
		any = !weir_list_is_empty(&v->pending) || weir_volume_resync_is_busy(v);
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
	v->layout->stop(v);
	__atomic_store_n(&v->is_over, true, __ATOMIC_SEQ_CST);
	weir_volume_wake(&v->serve);
	if (v->has_server)
		pthread_join(v->server, NULL);
	for (unsigned int i = 0; i < v->nr_targets; i++)
		weir_volume_target_close(&v->targets[i]);
	weir_volume_pool_close(v);
	weir_volume_coded_fini(v);
	weir_volume_memory_fini(v);
	weir_volume_resync_fini(v);
	free(v->device);
	free(v->targets);
	sodium_memzero(&v->checksum_key, sizeof(v->checksum_key));
	free(v);
	weir_span_close();
}

/* Of a pool, a target may be free. */
static unsigned int count_targets(const struct weir_volume *v)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < v->nr_targets; i++)
		count += v->targets[i].address != NULL;
	return count;
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
		.data = v->coded ? v->coded->layout.data : 1,
		.donors = count_targets(v),
		.donors_up = count_up(v),
		.extent_bytes = weir_volume_extent_bytes(v),
		.extents = v->core.nr_extents,
		.whole = census.whole,
		.lean = census.lean,
		.lost = census.lost,
		.copied_bytes = v->core.copied * WEIR_VOLUME_PAGE_BYTES,
		.failovers = v->failovers,
		.mismatches = v->mismatches,
		.repaired_bytes = v->core.repaired * WEIR_VOLUME_PAGE_BYTES,
		.missed_writes = v->missed_writes,
		.sessions = v->sessions,
	};
	weir_volume_unlock(v);
	return weir_sized_out(given, size, &info, sizeof(info));
}
