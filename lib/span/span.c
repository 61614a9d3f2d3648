/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The records of spans, and their ids. */
#include "lib/span/span.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/rng.h"
#include "lib/base/clock.h"
#include "lib/base/freelist.h"
#include "lib/span/sender.h"

#define TRIES 256u /* while another thread takes a record, which lasts some instructions */

bool weir_span_is_on;

/**
 * struct weir_span_store - of this process
 * @lock: of open and close: guards @users and @records
 * @users: opens without a close
 * @records: WEIR_SPAN_RECORDS of them, or NULL
 * @unused, @ended: each record is in one of these, or under way
 * @random: state of the generator of ids; atomic
 * @dropped, @was_on: atomic
 */
static struct weir_span_store {
	pthread_mutex_t lock;
	unsigned int users;
	struct weir_span *records;
	struct weir_freelist unused;
	struct weir_inbox ended;
	struct weir_span_settings settings;
	uint64_t random;
	uint64_t dropped;
	bool was_on;
} store = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* With the lock held. */
static int start_store(void)
{
	struct weir_span *records = calloc(WEIR_SPAN_RECORDS, sizeof(*records));
	int rc = records ? 0 : -ENOMEM;

	if (!rc && getrandom(&store.random, sizeof(store.random), 0) != sizeof(store.random))
		store.random = weir_now_ns();
	store.unused = (struct weir_freelist){ 0 };
	weir_inbox_init(&store.ended);
	for (unsigned int i = 0; !rc && i < WEIR_SPAN_RECORDS; i++)
		weir_freelist_put(&store.unused, &records[i].node);
	if (!rc)
		rc = weir_span_sender_start(&store.settings);
	if (rc) {
		free(records);
		return rc;
	}
	store.records = records;
	__atomic_store_n(&store.was_on, true, __ATOMIC_RELAXED);
	__atomic_store_n(&weir_span_is_on, true, __ATOMIC_RELEASE);
	return 0;
}

int weir_span_open(struct weir_error *warning)
{
	int rc = 0;

	if (warning)
		*warning->text = '\0';
	pthread_mutex_lock(&store.lock);
	if (!store.users++) {
		weir_span_settings_read(&store.settings, secure_getenv, warning);
		if (*store.settings.endpoint)
			rc = start_store();
	}
	pthread_mutex_unlock(&store.lock);
	return rc;
}

void weir_span_close(void)
{
	pthread_mutex_lock(&store.lock);
	if (!--store.users && store.records) {
		__atomic_store_n(&weir_span_is_on, false, __ATOMIC_RELAXED);
		weir_span_sender_stop();
		free(store.records);
		store.records = NULL;
	}
	pthread_mutex_unlock(&store.lock);
}

/* Never 0. */
static uint64_t random_id(void)
{
	uint64_t state = __atomic_add_fetch(&store.random, 0x9e3779b97f4a7c15ull, __ATOMIC_RELAXED);
	uint64_t id = weir_rng_mix(state);

	return id ? id : 1;
}

static struct weir_span *take_record(void)
{
	struct weir_inbox_node *node = NULL;

	for (unsigned int i = 0; !node && i < TRIES; i++) {
		bool is_busy = __atomic_load_n(&store.unused.busy, __ATOMIC_RELAXED);

		node = weir_freelist_get_some(&store.unused, 1);
		if (!node && !is_busy && !__atomic_load_n(&store.unused.busy, __ATOMIC_RELAXED))
			break; /* it is empty */
	}
	if (!node)
		__atomic_add_fetch(&store.dropped, 1, __ATOMIC_RELAXED);
	return node ? container_of(node, struct weir_span, node) : NULL;
}

static struct weir_span *begin_span(const uint64_t trace[2], uint64_t parent, const char *name,
				    enum weir_span_kind kind)
{
	struct weir_span *span = take_record();

	if (!span)
		return NULL;
	span->trace[0] = trace[0];
	span->trace[1] = trace[1];
	span->id = random_id();
	span->parent = parent;
	span->name = name;
	span->kind = kind;
	span->nr_numbers = 0;
	span->text_key = NULL;
	span->begun_ns = weir_now_ns();
	return span;
}

struct weir_span *weir_span_begin_root(const char *name, enum weir_span_kind kind)
{
	const struct weir_span_settings *s = &store.settings;
	uint64_t trace[2];

	if (s->has_parent)
		return weir_span_settings_sample(s, s->trace) ?
			       begin_span(s->trace, s->parent, name, kind) :
			       NULL;
	trace[0] = random_id();
	trace[1] = random_id();
	return weir_span_settings_sample(s, trace) ? begin_span(trace, 0, name, kind) : NULL;
}

struct weir_span *weir_span_begin_child(const struct weir_span *parent, const char *name,
					enum weir_span_kind kind)
{
	return begin_span(parent->trace, parent->id, name, kind);
}

void weir_span_set_text(struct weir_span *span, const char *key, const char *text)
{
	span->text_key = key;
	snprintf(span->text, sizeof(span->text), "%s", text);
}

void weir_span_finish(struct weir_span *span, int status)
{
	span->status = status;
	span->ended_ns = weir_now_ns();
	weir_inbox_push(&store.ended, &span->node);
}

struct weir_inbox_node *weir_span_take_ended(void)
{
	return weir_inbox_take(&store.ended);
}

void weir_span_put_back(struct weir_span *span)
{
	weir_freelist_put(&store.unused, &span->node);
}

bool weir_span_counts(struct weir_span_counts *counts)
{
	*counts = (struct weir_span_counts){
		.dropped = __atomic_load_n(&store.dropped, __ATOMIC_RELAXED),
	};
	weir_span_sender_counts(counts);
	return __atomic_load_n(&store.was_on, __ATOMIC_RELAXED);
}
