/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connects may take as long as the timeout, so they run in separate threads while the RPC thread
 * goes on. The threads are per party, few and rate-limited: futile connects, from however many
 * processes of a user, take no more of the daemon than that.
 */
#include "apps/share/connect_rate.h"
#include "apps/share/daemon.h"

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct share_connect {
	struct weir_list link;
	struct share_tenant *tenant;
	uint64_t deadline_ns; /* from the request on, since waiting in the queue counts */
	struct weir_mux_ipc_request ask;
};

/**
 * struct share_connect_queue - CONNECT requests of a party
 * @link: in share->connect_queues; lives as long as the daemon
 * @group_id: as in share_policy
 * @paid_ns: see share_connect_rate_take()
 * @is_pacing: a worker waits for the rate limit
 * @changed: other workers wait here for the pacing worker
 *
 * Guarded by share->lock.
 */
struct share_connect_queue {
	struct weir_list link;
	struct share_daemon *share;
	uint64_t group_id;
	struct weir_list calls;
	unsigned int nr_workers;
	uint64_t paid_ns;
	bool is_pacing;
	pthread_cond_t changed;
};

/* The request was answered or dropped. With share->lock held. */
static void call_free(struct share_connect *call)
{
	call->tenant->connecting--;
	pthread_cond_broadcast(&call->tenant->share->changed);
	free(call);
}

/* Fills in the options and checks the class. */
static int options_fill(struct share_tenant *tenant, const struct weir_mux_ipc_request *ask,
			struct weir_mux_conn_options *options, struct weir_error *error)
{
	const unsigned int last = tenant->share->mux->options.nr_classes - 1;
	unsigned int first;

	pthread_mutex_lock(&tenant->share->lock);
	first = share_tenant_class(tenant);
	pthread_mutex_unlock(&tenant->share->lock);
	*options = (struct weir_mux_conn_options){
		.class_nr = ask->class_nr,
		.weight = ask->weight,
		.ring_bytes = ask->length,
	};
	if (ask->class_nr == WEIR_MUX_IPC_CLASS_DEFAULT)
		options->class_nr = last;
	if (options->class_nr < first)
		return weir_error_set(error, -EPERM,
				      "class %u is not allowed: %u is the most urgent class "
				      "that weir share's configuration allows",
				      ask->class_nr, first);
	return 0;
}

void share_tenant_settle_conn(struct share_tenant *tenant, struct weir_mux_vconn *conn,
			      struct weir_mux_ipc_reply *answer)
{
	struct weir_mux_local *mux = tenant->share->mux;
	int rc = -ECONNRESET;

	pthread_mutex_lock(&tenant->share->lock);
	if (!tenant->is_gone)
		rc = share_tenant_add_conn(tenant, conn);
	if (!rc) {
		/*
		 * Once numbered, the tenant may close the connection as soon as the lock is
		 * free.
		 */
		answer->nr = conn->nr;
		answer->slab = conn->slab->number;
		answer->slot = conn->slot;
		answer->ring_bytes = conn->size;
	}
	pthread_mutex_unlock(&tenant->share->lock);
	answer->status = rc;
	if (!rc)
		return;
	pthread_mutex_lock(&mux->lock);
	weir_mux_vconn_abort(conn);
	pthread_mutex_unlock(&mux->lock);
	weir_error_set((struct weir_error *)answer->text, rc, "%s", weir_strerror(rc));
}

static bool is_late(const struct share_connect *call)
{
	return weir_now_ns() >= call->deadline_ns;
}

static void run_call(const struct share_connect *call)
{
	const struct weir_mux_ipc_request *ask = &call->ask;
	struct share_tenant *tenant = call->tenant;
	struct weir_mux_ipc_reply answer = { .number = ask->number };
	struct weir_mux_conn_options options;
	struct weir_error error = { "" };
	struct weir_mux_vconn *conn;

	answer.status = options_fill(tenant, ask, &options, &error);
	if (!answer.status && is_late(call))
		answer.status = weir_error_set(&error, -ETIMEDOUT,
					       "no connect to %s in time: too many "
					       "connects were waiting",
					       ask->peer);
	if (!answer.status)
		answer.status = weir_mux_vconn_connect(&tenant->account, ask->peer, ask->service,
						       &options, call->deadline_ns, &conn, &error);
	if (answer.status)
		memcpy(answer.text, error.text, sizeof(answer.text));
	else
		share_tenant_settle_conn(tenant, conn, &answer);
	share_tenant_reply(tenant, &answer, NULL, 0);
}

/*
 * Sleeps until the next connect is due. Only one worker sleeps on the clock; the others wait for
 * that worker.
 */
static void wait_connect_rate(struct share_connect_queue *queue, uint64_t due_ns)
{
	const struct timespec until = weir_timespec(due_ns);
	struct share_daemon *share = queue->share;

	queue->is_pacing = true;
	pthread_mutex_unlock(&share->lock);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	pthread_mutex_lock(&share->lock);
	queue->is_pacing = false;
}

/* Return: true: a connect is paid for; false: after a wait, look at the queue again. */
static bool pay_for_connect(struct share_connect_queue *queue)
{
	uint64_t due_ns;

	if (queue->is_pacing) {
		pthread_cond_wait(&queue->changed, &queue->share->lock);
		return false;
	}
	due_ns = share_connect_rate_take(&queue->paid_ns, weir_now_ns());
	if (due_ns)
		wait_connect_rate(queue, due_ns);
	return !due_ns;
}

/* The next request, when due; NULL: the queue is empty. With share->lock held. */
static struct share_connect *take_call(struct share_connect_queue *queue)
{
	struct share_connect *first, *call = NULL;

	while (!call && !weir_list_is_empty(&queue->calls)) {
		first = weir_list_entry(queue->calls.next, struct share_connect, link);
		/* A late request only gets an error, which costs nothing. */
		if (!is_late(first) && !pay_for_connect(queue))
			continue;
		call = first;
		weir_list_del(&call->link);
	}
	pthread_cond_signal(&queue->changed); /* the next worker waiting for the rate limit */
	return call;
}

/* Runs while there are requests. */
static void *worker_run(void *arg)
{
	struct share_connect_queue *queue = arg;
	struct share_daemon *share = queue->share;
	struct share_connect *call;

	pthread_mutex_lock(&share->lock);
	while ((call = take_call(queue)) != NULL) {
		pthread_mutex_unlock(&share->lock);
		run_call(call);
		pthread_mutex_lock(&share->lock);
		call_free(call);
	}
	queue->nr_workers--;
	share->nr_workers--;
	pthread_cond_broadcast(&share->changed);
	pthread_mutex_unlock(&share->lock);
	return NULL;
}

/* With share->lock held; NULL: no memory. */
static struct share_connect_queue *get_queue(struct share_tenant *tenant)
{
	struct share_daemon *share = tenant->share;
	struct weir_list *at;
	struct share_connect_queue *queue;

	for (at = share->connect_queues.next; at != &share->connect_queues; at = at->next) {
		queue = weir_list_entry(at, struct share_connect_queue, link);
		if (queue->group_id == tenant->policy.group_id)
			return queue;
	}
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return NULL;
	queue->share = share;
	queue->group_id = tenant->policy.group_id;
	weir_list_init(&queue->calls);
	pthread_cond_init(&queue->changed, NULL);
	weir_list_add_tail(&share->connect_queues, &queue->link);
	return queue;
}

/* Starts another worker, up to the limit. With share->lock held. */
static int add_worker(struct share_connect_queue *queue)
{
	pthread_t thread;

	if (queue->nr_workers == SHARE_CONNECT_WORKERS_MAX)
		return 0;
	if (weir_thread_create(&thread, "weir-connect", worker_run, queue, NULL))
		return queue->nr_workers ? 0 : -ENOMEM;
	pthread_detach(thread);
	queue->nr_workers++;
	queue->share->nr_workers++;
	return 0;
}

int share_connect_queue_add(struct share_tenant *tenant, const struct weir_mux_ipc_request *ask)
{
	struct share_daemon *share = tenant->share;
	struct share_connect_queue *queue = NULL;
	struct share_connect *call;
	int rc = -EAGAIN;

	pthread_mutex_lock(&share->lock);
	call = tenant->connecting < SHARE_CONNECTS_MAX ? malloc(sizeof(*call)) : NULL;
	if (call) {
		queue = get_queue(tenant);
		rc = queue ? add_worker(queue) : -ENOMEM;
	}
	if (call && !rc) {
		call->tenant = tenant;
		call->deadline_ns = weir_mux_local_deadline_ns(share->mux);
		call->ask = *ask;
		call->ask.peer[sizeof(ask->peer) - 1] = '\0';
		tenant->connecting++;
		weir_list_init(&call->link);
		weir_list_add_tail(&queue->calls, &call->link);
	} else {
		free(call);
	}
	pthread_mutex_unlock(&share->lock);
	return rc;
}

static void drop_calls(struct share_connect_queue *queue, const struct share_tenant *tenant)
{
	struct weir_list *at;

	for (at = queue->calls.next; at != &queue->calls;) {
		struct share_connect *call = weir_list_entry(at, struct share_connect, link);

		at = at->next;
		if (call->tenant == tenant) {
			weir_list_del(&call->link);
			call_free(call);
		}
	}
}

void share_connect_queues_drop(struct share_tenant *tenant)
{
	struct weir_list *at;

	for (at = tenant->share->connect_queues.next; at != &tenant->share->connect_queues;
	     at = at->next)
		drop_calls(weir_list_entry(at, struct share_connect_queue, link), tenant);
}

void share_connect_queues_free(struct share_daemon *share)
{
	while (!weir_list_is_empty(&share->connect_queues)) {
		struct share_connect_queue *queue = weir_list_entry(
			share->connect_queues.next, struct share_connect_queue, link);

		weir_list_del(&queue->link);
		pthread_cond_destroy(&queue->changed);
		free(queue);
	}
}
