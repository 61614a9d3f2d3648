/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib mux late poller; devices: softnic; timeout: 180 */
/* A poller stopped during its sleep: messages that arrived in time must not count as late. */
#include <errno.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/lib/mux/tenants.h"

int __real_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms);

/* The mux whose poller stops at its next wake-up until released. */
static struct {
	int epoll; /* -1: none */
	sem_t is_stopped, may;
} stop = { .epoll = -1 };

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int max, int timeout_ms)
{
	int n = __real_epoll_wait(epoll, events, max, timeout_ms);

	if (timeout_ms && __atomic_load_n(&stop.epoll, __ATOMIC_ACQUIRE) == epoll) {
		__atomic_store_n(&stop.epoll, -1, __ATOMIC_RELEASE);
		sem_post(&stop.is_stopped);
		while (sem_wait(&stop.may))
			;
	}
	return n;
}

/* The poller may have been woken before it slept. */
static void poller_stop(const struct mux_end *end)
{
	assert_int_equal(sem_init(&stop.is_stopped, 0, 0), 0);
	assert_int_equal(sem_init(&stop.may, 0, 0), 0);
	__atomic_store_n(&stop.epoll, end->mux->epoll, __ATOMIC_RELEASE);
	do {
		weir_mux_fd_signal(end->mux->wakeup_fd);
		usleep(1000);
	} while (sem_trywait(&stop.is_stopped));
}

static void poller_go_on(void)
{
	sem_post(&stop.may);
}

static struct weir_mux_remote *only_node(const struct mux_end *end)
{
	return weir_list_entry(end->mux->remotes.next, struct weir_mux_remote, link);
}

typedef bool node_fn(const struct weir_mux_remote *remote);

static bool has_answered(const struct weir_mux_remote *remote)
{
	return remote->leave == WEIR_MUX_IDLE_NONE;
}

static bool is_deserted(const struct weir_mux_remote *remote)
{
	return remote->refs == 1;
}

static bool is_up(const struct weir_mux_remote *remote)
{
	return remote->qps[0];
}

/* WELCOME has arrived. */
static bool has_welcomed(const struct weir_mux_remote *remote)
{
	return remote->qps[0] && !__atomic_load_n(&remote->nr_handshakes_posted, __ATOMIC_ACQUIRE);
}

/* So has the answer to LEAVE. */
static uint64_t work_requests_before;
static bool has_said(const struct weir_mux_remote *remote)
{
	return weir_counter_read(&remote->mux->counts.work_requests) > work_requests_before &&
	       !remote->nr_refusals;
}

/* The mux's only remote; fails if the remote is lost. */
static void wait_until(const struct mux_end *end, node_fn *is_so)
{
	const uint64_t deadline_ns = weir_now_ns() + PATIENCE_NS;
	bool was_so = false, is_lost;

	while (!was_so) {
		pthread_mutex_lock(&end->mux->lock);
		is_lost = weir_list_is_empty(&end->mux->remotes) ||
			  __atomic_load_n(&only_node(end)->status, __ATOMIC_ACQUIRE);
		was_so = !is_lost && is_so(only_node(end));
		pthread_mutex_unlock(&end->mux->lock);
		assert_false(is_lost);
		assert_true(weir_now_ns() < deadline_ns);
		if (!was_so)
			usleep(1000);
	}
}

static void lane_is_due(const struct mux_end *end, uint64_t deadline_ns)
{
	pthread_mutex_lock(&end->mux->lock);
	weir_list_entry(end->mux->qps.next, struct weir_mux_qp, link)->deadline_ns = deadline_ns;
	pthread_mutex_unlock(&end->mux->lock);
}

/* Whether this end has sent LEAVE; or is about to. */
static bool node_is_due(const struct mux_end *end, uint64_t expires_ns)
{
	bool has_asked;

	pthread_mutex_lock(&end->mux->lock);
	has_asked = only_node(end)->leave == WEIR_MUX_IDLE_ASKED;
	if (has_asked)
		only_node(end)->expires_ns = expires_ns;
	pthread_mutex_unlock(&end->mux->lock);
	return has_asked;
}

static void a_qp_welcomed_in_time_is_up(void **state)
{
	struct mux_end *a = &((struct mux_ends_pair *)*state)->a,
		       *b = &((struct mux_ends_pair *)*state)->b;
	struct weir_mux_conn *near, *far;
	struct mux_tenant tenant;

	tenant_dials(&tenant, a, b, WEIR_MUX_CLASS_URGENT);
	tenant_is_gone(&tenant);
	lane_is_due(a, UINT64_MAX);
	poller_stop(a);
	gate_open();
	wait_until(b, has_welcomed);
	lane_is_due(a, 1);
	poller_go_on();
	wait_until(a, is_up);
	near = connect_at(a, b->address, WEIR_MUX_CLASS_URGENT);
	far = accept_at(b);
	pass(near, far);
	weir_mux_conn_close(near);
	weir_mux_conn_close(far);
}

static int open_for_ever(void **state)
{
	return pair_open_with(state, UINT64_MAX);
}

/* A thread about to connect at the peer holds the remote. */
static void a_remote_stays_if_stay_came_in_time(void **state)
{
	struct mux_end *a = &((struct mux_ends_pair *)*state)->a,
		       *b = &((struct mux_ends_pair *)*state)->b;

	weir_mux_conn_close(connect_to(a, b));
	weir_mux_conn_close(accept_at(b));
	wait_until(a, is_deserted);
	wait_until(b, is_deserted);
	pthread_mutex_lock(&b->mux->lock);
	only_node(b)->refs++;
	work_requests_before = weir_counter_read(&b->mux->counts.work_requests);
	weir_mux_local_set_idle(a->mux, 1);
	while (!node_is_due(a, UINT64_MAX))
		usleep(1000);
	poller_stop(a);
	pthread_mutex_unlock(&b->mux->lock);
	wait_until(b, has_said);
	weir_mux_local_set_idle(a->mux, UINT64_MAX);
	assert_true(node_is_due(a, 1));
	poller_go_on();
	wait_until(a, has_answered);
	pthread_mutex_lock(&b->mux->lock);
	weir_mux_remote_put(only_node(b));
	pthread_mutex_unlock(&b->mux->lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		pair_test(a_qp_welcomed_in_time_is_up),
		cmocka_unit_test_setup_teardown(a_remote_stays_if_stay_came_in_time, open_for_ever,
						pair_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
