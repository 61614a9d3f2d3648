/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer is a newcomer until the key is proven and both ends know each other's memory. Any
 * thread in accept serves all newcomers at once, so a silent newcomer delays nobody.
 *
 * Several threads may call accept: they take turns, and sleep between. An eventfd wakes sleepers
 * when the listener closes, and when a thread leaves while newcomers remain, since newcomers
 * have no descriptor in the poll.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/sized.h"
#include "lib/conn/event_channel.h"
#include "lib/conn/listener.h"
#include "lib/exchange/setup.h"

#define BACKLOG 64
#define PROVEN_MAX 32u /* between their proofs and their pools */
#define NEWCOMERS_MAX (WEIR_UNPROVEN_MAX + WEIR_COOKIE_PLACES + PROVEN_MAX)
#define NAP_US 50
#define CLOSED "the listener was closed"

/*
 * @given: the user's options; @options: with defaults filled in; @device: the name in both, if
 *	any
 * @wakeup_fd: readable: sleepers look again
 * @lock: guards the fields below and @options; the holder serves
 * @left: a call has ended
 * @newcomers: @nr_newcomers in order of arrival; each has setup state
 * @places: of those among them that have not proven the key
 * @users: calls in progress; @is_ending: they must end
 */
struct weir_exchange_listener {
	struct weir_exchange_options given, options;
	char device[IBV_SYSFS_NAME_MAX];
	struct weir_listener base;
	int wakeup_fd;
	pthread_mutex_t lock;
	pthread_cond_t left;
	struct weir_exchange *newcomers[NEWCOMERS_MAX];
	struct weir_places places;
	unsigned int nr_newcomers, users;
	bool is_ending;
};

static void wake_sleepers(const struct weir_exchange_listener *listener)
{
	if (listener->wakeup_fd >= 0)
		eventfd_write(listener->wakeup_fd, 1);
}

/* Fails now rather than when a peer connects. */
static int try_gpu(const struct weir_exchange_options *options, struct weir_error *error)
{
	struct weir_cuda *cuda = NULL;
	int rc = options->memory == WEIR_EXCHANGE_CUDA ?
			 weir_cuda_open(options->gpu, &cuda, error) :
			 0;

	weir_cuda_close(cuda);
	return rc;
}

int weir_exchange_listener_get(struct weir_exchange_listener *listener, struct weir_error *error)
{
	bool is_ending;

	pthread_mutex_lock(&listener->lock);
	is_ending = listener->is_ending;
	listener->users += !is_ending;
	pthread_mutex_unlock(&listener->lock);
	return is_ending ? weir_error_set(error, -ECANCELED, CLOSED) : 0;
}

void weir_exchange_listener_put(struct weir_exchange_listener *listener)
{
	pthread_mutex_lock(&listener->lock);
	if (--listener->users && listener->nr_newcomers)
		wake_sleepers(listener);
	pthread_cond_broadcast(&listener->left);
	pthread_mutex_unlock(&listener->lock);
}

int weir_exchange_listener_check_open(struct weir_exchange_listener *listener,
				      struct weir_error *error)
{
	bool is_ending;

	pthread_mutex_lock(&listener->lock);
	is_ending = listener->is_ending;
	pthread_mutex_unlock(&listener->lock);
	return is_ending ? weir_error_set(error, -ECANCELED, CLOSED) : 0;
}

/* The given options have been checked already. */
void weir_exchange_listener_divide_pool(struct weir_exchange_listener *listener,
					unsigned int exchanges,
					struct weir_exchange_options *shared)
{
	struct weir_exchange_options options = listener->given;

	if (!options.exchanges)
		options.exchanges = exchanges;
	pthread_mutex_lock(&listener->lock);
	weir_exchange_options_fill(&listener->options, &options, NULL);
	*shared = listener->options;
	pthread_mutex_unlock(&listener->lock);
}

/* Return: as weir_exchange_options_fill(). */
static int copy_options(struct weir_exchange_listener *listener,
			const struct weir_exchange_options *options, struct weir_error *error)
{
	struct weir_exchange_options *given = &listener->given;
	int rc = weir_sized_in(given, sizeof(*given), options, "weir_exchange_options", error);

	if (!rc)
		rc = weir_exchange_options_fill(&listener->options, given, error);
	if (rc || !given->device)
		return rc;
	strcpy(listener->device, given->device);
	given->device = listener->options.device = listener->device;
	return 0;
}

int weir_exchange_listen(const char *address, const struct weir_exchange_options *options,
			 struct weir_exchange_listener **out, struct weir_error *error)
{
	struct weir_exchange_listener *listener = calloc(1, sizeof(*listener));
	int rc;

	if (!listener)
		return weir_error_set(error, -ENOMEM, "out of memory");
	pthread_mutex_init(&listener->lock, NULL);
	pthread_cond_init(&listener->left, NULL);
	weir_places_init(&listener->places);
	listener->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = copy_options(listener, options, error);
	if (!rc && listener->wakeup_fd < 0)
		rc = weir_error_set(error, -ENOMEM, "no descriptor: %s", weir_strerror(-errno));
	if (!rc)
		rc = try_gpu(&listener->options, error);
	if (!rc)
		rc = weir_listener_open(&listener->base, address ? address : "127.0.0.1",
					"an exchange", listener->options.key, BACKLOG, error);
	if (rc) {
		weir_exchange_unlisten(listener);
		return rc;
	}
	*out = listener;
	return 0;
}

const char *weir_exchange_address(const struct weir_exchange_listener *listener)
{
	return listener->base.address;
}

void weir_exchange_unlisten(struct weir_exchange_listener *listener)
{
	if (!listener)
		return;
	pthread_mutex_lock(&listener->lock);
	listener->is_ending = true;
	wake_sleepers(listener);
	while (listener->users)
		pthread_cond_wait(&listener->left, &listener->lock);
	pthread_mutex_unlock(&listener->lock);
	while (listener->nr_newcomers)
		weir_exchange_close(listener->newcomers[--listener->nr_newcomers]);
	weir_places_fini(&listener->places);
	weir_listener_close(&listener->base);
	if (listener->wakeup_fd >= 0)
		close(listener->wakeup_fd);
	pthread_cond_destroy(&listener->left);
	pthread_mutex_destroy(&listener->lock);
	free(listener);
}

static int check_request(const struct weir_exchange_listener *listener, const struct rdma_cm_id *id,
			 const struct rdma_conn_param *param, struct wire_exchange_connect *connect,
			 struct weir_error *error)
{
	const char *device = listener->options.device;
	int rc = wire_exchange_connect_decode(param->private_data, param->private_data_len,
					      connect);

	if (rc == -EPROTONOSUPPORT)
		return weir_error_set(error, rc, "this end speaks version %d of the protocol",
				      WIRE_EXCHANGE_VERSION);
	if (rc)
		return weir_error_set(error, rc, "the request is not for an exchange");
	if (connect->key_id != weir_key_id(listener->options.key))
		return weir_error_set(error, -EKEYREJECTED, "the keys differ");
	if (device && strcmp(device, ibv_get_device_name(id->verbs->device)))
		return weir_error_set(error, -EHOSTUNREACH, "exchanges go through device %s only",
				      device);
	return 0;
}

static void remove_newcomer(struct weir_exchange_listener *listener, unsigned int i)
{
	listener->nr_newcomers--;
	memmove(&listener->newcomers[i], &listener->newcomers[i + 1],
		(listener->nr_newcomers - i) * sizeof(listener->newcomers[0]));
}

static void end_newcomer(struct weir_exchange_listener *listener,
			 const struct weir_newcomer *newcomer)
{
	unsigned int i;

	for (i = 0; i < listener->nr_newcomers; i++) {
		struct weir_exchange *x = listener->newcomers[i];

		if (&x->setup->newcomer != newcomer)
			continue;
		remove_newcomer(listener, i);
		weir_exchange_close(x);
		return;
	}
}

/* Return: 0; -EAGAIN, with a cookie to bring. */
static int find_place(struct weir_exchange_listener *listener, struct rdma_cm_id *id,
		      const struct wire_exchange_connect *connect,
		      struct weir_newcomer *newcomer, uint8_t cookie[WIRE_COOKIE],
		      struct weir_error *error)
{
	struct weir_newcomer *replaced;
	int rc;

	weir_places_newcomer(newcomer, &listener->places, id, NULL, 0, connect->cookie);
	rc = weir_places_make_room(&listener->places, newcomer, &replaced, error);
	if (rc)
		weir_places_cookie(&listener->places, id, cookie);
	else if (replaced)
		end_newcomer(listener, replaced);
	if (!rc && listener->nr_newcomers == NEWCOMERS_MAX)
		rc = weir_error_set(error, -EAGAIN, "%u peers connect at once: try again",
				    listener->nr_newcomers);
	return rc;
}

/* Whether a request gets a QP. */
static int admit_request(struct weir_exchange_listener *listener,
			 const struct weir_cm_event *request, struct weir_exchange **x,
			 uint8_t cookie[WIRE_COOKIE], struct weir_error *error)
{
	struct wire_exchange_connect connect;
	struct weir_newcomer newcomer;
	int rc = check_request(listener, request->id, &request->param, &connect, error);

	if (!rc)
		rc = find_place(listener, request->id, &connect, &newcomer, cookie, error);
	if (!rc)
		rc = weir_exchange_new(&listener->options, x, error);
	if (rc)
		return rc;
	(*x)->setup->newcomer = newcomer;
	weir_places_take(&listener->places, &(*x)->setup->newcomer);
	return 0;
}

/* Adds a newcomer, or rejects the request. */
static int take_request(struct weir_exchange_listener *listener,
			const struct weir_cm_event *request, struct weir_error *error)
{
	uint8_t cookie[WIRE_COOKIE] = { 0 };
	struct weir_exchange *x;
	int rc = admit_request(listener, request, &x, cookie, error);

	if (rc) {
		weir_listener_reject(request->id, WIRE_EXCHANGE_PROOF, rc, error->text, cookie);
		return rc;
	}
	x->id = request->id;
	rc = weir_event_channel_open(&x->cm, error);
	if (!rc && rdma_migrate_id(x->id, x->cm))
		rc = weir_error_set(error, -ENOMEM, "the connection manager failed: %s",
				    weir_strerror(-errno));
	if (!rc)
		rc = weir_exchange_accept_start(x, &request->param, error);
	if (rc)
		weir_exchange_close(x);
	else
		listener->newcomers[listener->nr_newcomers++] = x;
	return rc;
}

/* Takes all pending requests, but no more than a backlog of them. */
static void take_requests(struct weir_exchange_listener *listener, struct weir_error *why)
{
	struct weir_cm_event event;
	unsigned int i;

	for (i = 0; i < BACKLOG && weir_event_channel_get(listener->base.cm, &event) > 0; i++)
		if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			take_request(listener, &event, why);
}

/* Return: the first newcomer that is ready, or NULL. Failed newcomers are closed. */
static struct weir_exchange *serve_newcomers(struct weir_exchange_listener *listener,
					     struct weir_error *why)
{
	struct weir_exchange *x;
	unsigned int i = 0;
	int rc;

	while (i < listener->nr_newcomers) {
		x = listener->newcomers[i];
		rc = weir_exchange_accept_step(x, why);
		if (rc == -EAGAIN) {
			i++;
			continue;
		}
		remove_newcomer(listener, i);
		if (!rc)
			return x;
		weir_exchange_close(x);
	}
	return NULL;
}

/*
 * Takes a turn at serving. @has_newcomers: receives whether newcomers remain. Return: 0; -EAGAIN;
 * -ECANCELED.
 */
static int take_turn(struct weir_exchange_listener *listener, struct weir_exchange **x,
		     bool *has_newcomers, struct weir_error *why)
{
	eventfd_t wakeups;
	int rc;

	pthread_mutex_lock(&listener->lock);
	rc = listener->is_ending ? -ECANCELED : -EAGAIN;
	if (rc == -EAGAIN) {
		eventfd_read(listener->wakeup_fd, &wakeups);
		take_requests(listener, why);
		*x = serve_newcomers(listener, why);
		rc = *x ? 0 : -EAGAIN;
	}
	*has_newcomers = listener->nr_newcomers;
	pthread_mutex_unlock(&listener->lock);
	return rc;
}

/* Newcomers have a CQ each, so with some present sleep briefly and poll. */
static void sleep_out_of_turn(const struct weir_exchange_listener *listener, bool has_newcomers,
			      uint64_t deadline_ns)
{
	struct pollfd fds[] = {
		{ .fd = listener->base.cm->fd, .events = POLLIN },
		{ .fd = listener->wakeup_fd, .events = POLLIN },
	};

	if (has_newcomers)
		usleep(NAP_US);
	else
		poll(fds, 2, weir_poll_ms(deadline_ns));
}

static int accept_one(struct weir_exchange_listener *listener, uint64_t timeout_ns,
		      struct weir_exchange **x, struct weir_error *error)
{
	uint64_t deadline_ns = weir_after_ns(weir_now_ns(), timeout_ns);
	struct weir_error why = { "" };
	bool has_newcomers;
	int rc;

	for (;;) {
		rc = take_turn(listener, x, &has_newcomers, &why);
		if (rc == -ECANCELED)
			return weir_error_set(error, rc, CLOSED);
		if (!rc)
			return 0;
		if (weir_now_ns() >= deadline_ns)
			return weir_error_set(error, timeout_ns ? -ETIMEDOUT : -EAGAIN,
					      "no peer connected%s%s", why.text[0] ? ", and " : "",
					      why.text);
		sleep_out_of_turn(listener, has_newcomers, deadline_ns);
	}
}

int weir_exchange_accept(struct weir_exchange_listener *listener, uint64_t timeout_ns,
			 struct weir_exchange **x, struct weir_error *error)
{
	int rc = weir_exchange_listener_get(listener, error);

	if (rc)
		return rc;
	rc = accept_one(listener, timeout_ns, x, error);
	weir_exchange_listener_put(listener);
	return rc;
}
