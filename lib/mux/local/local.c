/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/secret.h"
#include "lib/conn/encryption.h"
#include "lib/conn/identity.h"
#include "lib/mux/classes.h"
#include "lib/mux/local/local.h"
#include "lib/base/thread.h"

void weir_mux_fd_signal(int fd)
{
	const uint64_t one = 1;

	if (fd < 0)
		return;
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void weir_mux_fd_drain(int fd)
{
	uint64_t rings[64]; /* a pipe may hold many; an eventfd gives one number */

	if (fd < 0)
		return;
	while (read(fd, rings, sizeof(rings)) < 0 && errno == EINTR)
		;
}

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static void options_fill(struct weir_mux_options *o, const struct weir_mux_options *given)
{
	*o = given ? *given : (struct weir_mux_options){ 0 };
	if (!o->classes) {
		o->classes = weir_mux_default_classes;
		o->nr_classes = WEIR_MUX_DEFAULT_CLASSES;
	}
	if (!o->low_bytes_max)
		o->low_bytes_max = 128 << 10;
	if (!o->connections_max)
		o->connections_max = 4096;
	if (!o->ring_bytes)
		o->ring_bytes = 256 << 10;
	if (!o->buffers)
		o->buffers = 64;
	if (!o->timeout_ns)
		o->timeout_ns = 10 * WEIR_NS_PER_S;
	if (!o->idle_poll_ns)
		o->idle_poll_ns = 50000;
	if (!o->idle_ns)
		o->idle_ns = WEIR_MUX_IDLE_NS;
}

static int options_check(const struct weir_mux_options *o, struct weir_error *error)
{
	int rc = weir_encryption_check(o->encryption, o->key, error);

	if (rc)
		return rc;
	if (!o->nr_classes || o->nr_classes > WEIR_MUX_CLASSES_MAX)
		return weir_error_set(error, -EINVAL, "%u classes: 1 to %u are possible",
				      o->nr_classes, WEIR_MUX_CLASSES_MAX);
	if (!is_power_of_two(o->ring_bytes) || o->ring_bytes < WEIR_MUX_RING_MIN ||
	    o->ring_bytes > 64 << 20)
		return weir_error_set(error, -EINVAL,
				      "rings of %u bytes: give a power of two, 4096 to 67108864",
				      o->ring_bytes);
	if (o->connections_max > UINT16_MAX)
		return weir_error_set(error, -EINVAL, "%u connections: at most %u are possible",
				      o->connections_max, UINT16_MAX);
	if (o->buffers < 8 || o->buffers > 4096)
		return weir_error_set(error, -EINVAL, "%u receive buffers: 8 to 4096 are possible",
				      o->buffers);
	return 0;
}

/* Translates a class for the scheduler. */
static int class_fill(struct weir_mux_local *mux, unsigned int i, struct weir_error *error)
{
	struct weir_mux_class *c = &mux->classes[i];

	*c = mux->options.classes[i];
	if (!c->weight)
		c->weight = 1;
	if (!c->segment_bytes)
		c->segment_bytes = WIRE_MUX_SEGMENT_MAX;
	if (!c->depth)
		c->depth = 4;
	if (c->segment_bytes < 1024 || c->segment_bytes > WIRE_MUX_SEGMENT_MAX)
		return weir_error_set(error, -EINVAL, "segments of %u bytes: must be 1024 to %u",
				      c->segment_bytes, WIRE_MUX_SEGMENT_MAX);
	if (c->depth > 64 || c->level > UINT8_MAX || c->weight > WEIR_SCHED_WEIGHT_MAX)
		return weir_error_set(error, -EINVAL,
				      "class %u: depth must be at most 64, level 255, weight 1024",
				      i);
	if (c->tos > UINT8_MAX)
		return weir_error_set(error, -EINVAL,
				      "class %u: type of service %u: must be at most 255", i,
				      c->tos);
	mux->configs[i] = (struct weir_sched_config){
		.level = (uint8_t)c->level,
		.weight = (uint16_t)c->weight,
		.policy = c->policy == WEIR_MUX_POLICY_FAIR ? WEIR_SCHED_FAIR :
							      WEIR_SCHED_ROUND_ROBIN,
		.segment_bytes = c->segment_bytes,
		.wrs_max = c->depth,
		.pass_bytes_max = c->pass_bytes_max,
	};
	return 0;
}

static int classes_fill(struct weir_mux_local *mux, struct weir_error *error)
{
	struct weir_sched probe;
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < mux->options.nr_classes; i++)
		rc = class_fill(mux, i, error);
	mux->options.classes = mux->classes;
	if (!rc && weir_sched_init(&probe, mux->configs, (uint8_t)mux->options.nr_classes, 0))
		rc = weir_error_set(error, -EINVAL, "classes must be in the order of their levels");
	return rc;
}

static int add_to_epoll(struct weir_mux_local *mux, int fd, void *what)
{
	struct epoll_event in = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(mux->epoll, EPOLL_CTL_ADD, fd, &in) ? -errno : 0;
}

static int poller_start(struct weir_mux_local *mux, struct weir_error *error)
{
	int rc;

	mux->epoll = epoll_create1(EPOLL_CLOEXEC);
	mux->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (mux->epoll < 0 || mux->wakeup_fd < 0 ||
	    add_to_epoll(mux, mux->wakeup_fd, &mux->wakeup_fd) ||
	    add_to_epoll(mux, mux->completions->fd, &mux->completions) ||
	    add_to_epoll(mux, mux->listener.cm->fd, mux->listener.cm))
		return weir_error_set(error, -ENOMEM, "no descriptors: %s", weir_strerror(-errno));
	rc = weir_thread_create(&mux->poller, "weir-poller", weir_mux_poller_run, mux, error);
	mux->has_poller = !rc;
	return rc;
}

bool weir_mux_local_pins(const struct weir_mux_local *mux)
{
	const struct weir_mux_options *o = &mux->options;

	return o->peer_identity || (o->key && o->key->nr_donors);
}

/* The caller may free both identities. Return: 0; -ENOMEM. */
static int copy_identities(struct weir_mux_local *mux)
{
	struct weir_mux_options *o = &mux->options;

	if (o->peer_identity) {
		memcpy(mux->pin, o->peer_identity, sizeof(mux->pin));
		o->peer_identity = mux->pin;
	}
	weir_handshake_random(mux->dial_id, sizeof(mux->dial_id));
	if (!o->identity)
		return 0;
	mux->identity = weir_secret_alloc(sizeof(*mux->identity));
	if (!mux->identity)
		return -ENOMEM;
	weir_identity_pair(o->identity, mux->identity);
	o->identity = NULL;
	return 0;
}

static struct weir_mux_local *local_new(const struct weir_mux_options *options)
{
	struct weir_mux_local *mux = calloc(1, sizeof(*mux));

	if (!mux)
		return NULL;
	options_fill(&mux->options, options);
	weir_handshake_random(mux->id, sizeof(mux->id));
	if (copy_identities(mux)) {
		free(mux);
		return NULL;
	}
	weir_places_init(&mux->places);
	mux->mux.host = &weir_mux_local_ops;
	mux->epoll = mux->wakeup_fd = -1;
	weir_list_init(&mux->remotes);
	weir_list_init(&mux->qps);
	weir_list_init(&mux->services);
	weir_list_init(&mux->groups);
	pthread_mutex_init(&mux->lock, NULL);
	weir_mux_cond_init(&mux->changed);
	weir_mux_account_init(&mux->self, mux);
	return mux;
}

static void free_groups(struct weir_mux_local *mux)
{
	while (!weir_list_is_empty(&mux->groups)) {
		struct weir_mux_account_group *group =
			weir_list_entry(mux->groups.next, struct weir_mux_account_group, link);

		weir_list_del(&group->link);
		free(group);
	}
}

static void local_free(struct weir_mux_local *mux)
{
	weir_mux_account_fini(&mux->self);
	free_groups(mux);
	weir_mux_local_device_close(mux);
	if (mux->epoll >= 0)
		close(mux->epoll);
	if (mux->wakeup_fd >= 0)
		close(mux->wakeup_fd);
	weir_secret_free(mux->identity);
	weir_places_fini(&mux->places);
	free(mux->table);
	free(mux->generations);
	pthread_cond_destroy(&mux->changed);
	pthread_mutex_destroy(&mux->lock);
	free(mux);
}

static int table_open(struct weir_mux_local *mux, struct weir_error *error)
{
	mux->table = calloc(mux->options.connections_max, sizeof(*mux->table));
	mux->generations = calloc(mux->options.connections_max, sizeof(*mux->generations));
	if (!mux->table || !mux->generations)
		return weir_error_set(error, -ENOMEM, "no memory for a table of %u connections",
				      mux->options.connections_max);
	return 0;
}

int weir_mux_local_open(const struct weir_mux_options *options, struct weir_mux_local **out,
			struct weir_error *error)
{
	struct weir_mux_local *mux = local_new(options);
	int rc;

	if (!mux)
		return weir_error_set(error, -ENOMEM, "no memory");
	rc = options_check(&mux->options, error);
	if (!rc)
		rc = classes_fill(mux, error);
	if (!rc)
		rc = table_open(mux, error);
	if (!rc)
		rc = weir_mux_local_device_open(mux, error);
	if (!rc)
		rc = poller_start(mux, error);
	if (rc)
		local_free(mux);
	else
		*out = mux;
	return rc;
}

void weir_mux_local_set_idle(struct weir_mux_local *mux, uint64_t idle_ns)
{
	pthread_mutex_lock(&mux->lock);
	mux->options.idle_ns = idle_ns ? idle_ns : WEIR_MUX_IDLE_NS;
	weir_mux_fd_signal(mux->wakeup_fd); /* the poller may sleep for longer */
	pthread_mutex_unlock(&mux->lock);
}

/* Whether a closed connection still has something to send. */
static bool has_unsent_closed(const struct weir_mux_local *mux,
			      const struct weir_mux_account *account)
{
	unsigned int i;

	for (i = 0; i < mux->options.connections_max; i++)
		if (mux->table[i] && mux->table[i]->account == account && mux->table[i]->is_closed)
			return true;
	return false;
}

void weir_mux_local_drain(struct weir_mux_local *mux, struct weir_mux_account *account)
{
	const uint64_t deadline_ns = weir_after_ns(weir_now_ns(), mux->options.timeout_ns);

	pthread_mutex_lock(&mux->lock);
	while (has_unsent_closed(mux, account) &&
	       !weir_mux_account_wait(account, &account->changed, deadline_ns))
		;
	pthread_mutex_unlock(&mux->lock);
}

/* Refuses new connections and cuts off existing ones. */
void weir_mux_local_stop(struct weir_mux_local *mux)
{
	struct weir_list *at;

	pthread_mutex_lock(&mux->lock);
	mux->is_stopping = true;
	for (at = mux->remotes.next; at != &mux->remotes; at = at->next)
		weir_mux_remote_fail(weir_list_entry(at, struct weir_mux_remote, link),
				     -ECONNRESET);
	weir_mux_fd_signal(mux->wakeup_fd);
	pthread_mutex_unlock(&mux->lock);
}

/* Closes the connections that are still open: their peers get all data, and learn of the end. */
static void close_conns(struct weir_mux_local *mux)
{
	unsigned int i;

	pthread_mutex_lock(&mux->lock);
	for (i = 0; i < mux->options.connections_max; i++)
		if (mux->table[i] && !mux->table[i]->is_closed)
			weir_mux_vconn_close(mux->table[i]);
	pthread_mutex_unlock(&mux->lock);
}

void weir_mux_local_close(struct weir_mux_local *mux)
{
	unsigned int i;

	close_conns(mux);
	weir_mux_local_drain(mux, &mux->self);
	weir_mux_local_stop(mux);
	pthread_join(mux->poller, NULL);
	for (i = 0; i < mux->options.connections_max; i++)
		if (mux->table[i])
			weir_mux_vconn_close(mux->table[i]);
	while (!weir_list_is_empty(&mux->services))
		weir_mux_service_free(
			weir_list_entry(mux->services.next, struct weir_mux_service, link));
	local_free(mux);
}

static unsigned int queue_pairs(const struct weir_mux_local *mux)
{
	const struct weir_list *at;
	unsigned int count = 0;

	for (at = mux->qps.next; at != &mux->qps; at = at->next)
		count += weir_list_entry(at, struct weir_mux_qp, link)->state == WEIR_MUX_QP_UP;
	return count;
}

void weir_mux_local_info(struct weir_mux_local *mux, struct weir_mux_info *info)
{
	const struct weir_mux_counters *c = &mux->counts;

	pthread_mutex_lock(&mux->lock);
	*info = (struct weir_mux_info){
		.connections = mux->nr_conns,
		.queue_pairs = queue_pairs(mux),
		.work_requests = weir_counter_read(&c->work_requests),
		.doorbells = weir_counter_read(&c->doorbells),
		.bytes_sent = weir_counter_read(&c->bytes_sent),
		.bytes_received = weir_counter_read(&c->bytes_received),
		.bytes_written = weir_counter_read(&c->bytes_written),
		.credits = weir_counter_read(&c->credits),
		.sleeps = weir_counter_read(&c->sleeps),
		.ahead_bytes_max = weir_counter_read(&c->ahead_bytes_max),
	};
	snprintf(info->address, sizeof(info->address), "%s", mux->listener.address);
	pthread_mutex_unlock(&mux->lock);
}
