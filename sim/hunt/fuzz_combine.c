/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The combining protocol of core/base/combine.h under a random schedule. A few threads push
 * requests and serve, one polls. Each step of a thread is one access to shared state, and any
 * thread may take the next step. When all threads have returned, each request must have been posted
 * once, those of one thread in order, and no thread may serve for ever.
 */
#include "core/base/combine.h"
#include "sim/hunt/hunt.h"

#define THREADS 5 /* the last one polls */
#define OBJECTS 3
#define REQUESTS 6 /* of a thread */
#define STEPS_MAX 20000

/* What a thread does next. */
enum combine_step { PUSH, LOCK, TRY, TAKE, POST, UNLOCK, LEAVE, RETURNED };

struct combine_request {
	struct weir_inbox_node node;
	int from, number;
};

/* An engine: its requests wait to be posted, a chain at a time. */
struct combine_object {
	struct weir_list active;
	uint32_t waiting;
};

struct combine_thread {
	enum combine_step step;
	bool has_more; /* as read before the unlock */
	int pushed, taken;
	struct combine_request requests[REQUESTS];
};

struct fuzz_combine {
	struct hunt *hunt;
	struct sim_rng rng;
	struct weir_combine combine;
	bool is_locked;
	struct combine_object objects[OBJECTS];
	struct combine_thread threads[THREADS];
	int count; /* requests of each thread */
	uint32_t posted;
};

static void push(struct fuzz_combine *f, struct combine_thread *thread)
{
	struct combine_request *request = &thread->requests[thread->pushed];

	request->from = (int)(thread - f->threads);
	request->number = thread->pushed++;
	weir_inbox_push(&f->combine.inbox, &request->node);
	thread->step = TRY;
}

/* A thread that cannot take the lock leaves; the poller waits instead. */
static void take_lock(struct fuzz_combine *f, struct combine_thread *thread)
{
	if (!f->is_locked) {
		f->is_locked = true;
		thread->step = TAKE;
	} else if (thread->step == TRY) {
		thread->step = thread->pushed < f->count ? PUSH : RETURNED;
	}
}

static void take(struct fuzz_combine *f, struct combine_thread *thread)
{
	struct weir_inbox_node *node = weir_inbox_take(&f->combine.inbox);

	for (; node; node = node->next) {
		struct combine_request *request = container_of(node, struct combine_request, node);
		struct combine_object *object = &f->objects[request->from % OBJECTS];

		hunt_expect(f->hunt, request->number == f->threads[request->from].taken++,
			    "request %d of thread %d is taken out of order", request->number,
			    request->from);
		object->waiting++;
		weir_combine_activate(&f->combine, &object->active);
	}
	thread->step = POST;
}

static void post_chain(struct fuzz_combine *f, struct combine_thread *thread)
{
	struct weir_list *link = weir_combine_next(&f->combine);
	struct combine_object *object;
	uint32_t chain;

	thread->step = UNLOCK;
	if (!link)
		return;
	object = container_of(link, struct combine_object, active);
	chain = 1 + (uint32_t)sim_rng_below(&f->rng, 2);
	chain = chain < object->waiting ? chain : object->waiting;
	object->waiting -= chain;
	f->posted += chain;
	if (object->waiting)
		weir_combine_activate(&f->combine, link);
}

static void step(struct fuzz_combine *f, struct combine_thread *thread)
{
	switch (thread->step) {
	case PUSH:
		push(f, thread);
		break;
	case LOCK:
	case TRY:
		take_lock(f, thread);
		break;
	case TAKE:
		take(f, thread);
		break;
	case POST:
		post_chain(f, thread);
		break;
	case UNLOCK:
		thread->has_more = weir_combine_has_more(&f->combine);
		f->is_locked = false;
		thread->step = LEAVE;
		break;
	case LEAVE:
		if (!weir_combine_may_leave(&f->combine.inbox, thread->has_more))
			thread->step = TRY;
		else
			thread->step = thread->pushed < f->count ? PUSH : RETURNED;
		break;
	case RETURNED:
		break;
	}
}

static void begin(struct fuzz_combine *f)
{
	int i;

	weir_combine_init(&f->combine);
	for (i = 0; i < OBJECTS; i++)
		weir_list_init(&f->objects[i].active);
	f->count = 1 + (int)sim_rng_below(&f->rng, REQUESTS);
	f->threads[THREADS - 1].step = LOCK;
	f->threads[THREADS - 1].pushed = f->count; /* pushes nothing */
}

void hunt_combine(struct hunt *h, uint64_t seed)
{
	struct fuzz_combine f = { .hunt = h };
	int steps, running = THREADS;

	sim_rng_init(&f.rng, seed, "combine", 0);
	begin(&f);
	for (steps = 0; running && steps < STEPS_MAX && !*h->why; steps++) {
		struct combine_thread *thread = &f.threads[sim_rng_below(&f.rng, THREADS)];

		if (thread->step == RETURNED)
			continue;
		step(&f, thread);
		running -= thread->step == RETURNED;
	}
	hunt_expect(h, !running, "%d threads serve for ever", running);
	hunt_expect(h, f.posted == (uint32_t)(f.count * (THREADS - 1)),
		    "all threads have returned, and %u requests are posted", f.posted);
	hunt_note(h, "combine", steps, f.posted, f.count);
}
