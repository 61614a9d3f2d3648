/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib dialer; devices: softnic rxe; timeout: 120 */
/*
 * Connecting and listening, below client, donor, mux and exchange: how an attempt ends, and the
 * words for it. Suites "lib" and "vm", on any device. One thread is both ends: the listener acts
 * while the dialer asks whether to go on.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/conn/dialer.h"
#include "lib/conn/event_channel.h"
#include "lib/conn/listener.h"
#include "lib/conn/qp.h"
#include "tests/support/libweir_fixture.h"

#define PATIENCE_NS (60 * SECOND_NS)
#define BRIEF_NS (200 * WEIR_NS_PER_MS)

struct two_ends {
	struct weir_listener listener;
	struct weir_dialer dialer;
	struct weir_error error;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct rdma_cm_id *accepted;
	unsigned int nr_checks;
};

static void create_qp(struct two_ends *t, struct rdma_cm_id *id, struct ibv_qp **qp)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .send_cq = t->cq,
					 .recv_cq = t->cq,
					 .cap = { 1, 1, 1, 1, 0 } };

	assert_int_equal(weir_qp_create(id, t->pd, &attr, qp), 0);
}

/* Resolves the way to the listener. @check: what the listener does meanwhile, or NULL. */
static struct two_ends *ends_open(int (*check)(void *arg, struct weir_error *error))
{
	static struct two_ends t;
	struct weir_dialer *d = &t.dialer;
	char address[80];

	memset(&t, 0, sizeof(t));
	snprintf(address, sizeof(address), "%s:0", fixture_address());
	assert_int_equal(weir_listener_open(&t.listener, address, "a test", true, 1, NULL), 0);
	*d = (struct weir_dialer){ .peer = t.listener.address,
				   .deadline_ns = weir_now_ns() + PATIENCE_NS,
				   .check = check,
				   .arg = &t,
				   .check_ms = 1,
				   .error = &t.error };
	assert_int_equal(weir_dialer_resolve(d, rdma_get_local_addr(t.listener.id)), 0);
	t.pd = ibv_alloc_pd(d->id->verbs);
	t.cq = ibv_create_cq(d->id->verbs, 4, NULL, NULL, 0);
	create_qp(&t, d->id, &d->qp);
	t.nr_checks = 0;
	return &t;
}

static void ends_close(struct two_ends *t)
{
	weir_dialer_close(&t->dialer);
	if (t->accepted) {
		ibv_destroy_qp(t->accepted->qp);
		t->accepted->qp = NULL;
		rdma_destroy_id(t->accepted);
	}
	weir_listener_close(&t->listener);
	ibv_destroy_cq(t->cq);
	ibv_dealloc_pd(t->pd);
}

static int connect_ends(struct two_ends *t)
{
	return weir_dialer_connect(&t->dialer, "hello", sizeof("hello"), 1, 0);
}

static void assert_says(const struct two_ends *t, const char *word)
{
	if (!strstr(t->error.text, word))
		fail_msg("'%s' does not speak of '%s'", t->error.text, word);
}

static void a_silent_listener_is_given_up_at_the_deadline(void **state)
{
	struct two_ends *t = ends_open(NULL);

	(void)state;
	t->dialer.deadline_ns = weir_now_ns() + BRIEF_NS;
	assert_int_equal(connect_ends(t), -ETIMEDOUT);
	assert_true(weir_now_ns() >= t->dialer.deadline_ns);
	assert_says(t, t->listener.address);
	ends_close(t);
}

static int cancel_third_check(void *arg, struct weir_error *error)
{
	struct two_ends *t = arg;

	if (++t->nr_checks < 3)
		return 0;
	snprintf(error->text, sizeof(error->text), "the test has ended");
	return -ECANCELED;
}

static void a_wait_ends_when_the_caller_cancels(void **state)
{
	struct two_ends *t = ends_open(cancel_third_check);

	(void)state;
	assert_int_equal(connect_ends(t), -ECANCELED);
	assert_int_equal(t->nr_checks, 3);
	assert_string_equal(t->error.text, "the test has ended");
	ends_close(t);
}

/* Takes the request with its private data, if it has come. */
static bool take_request(struct two_ends *t, struct weir_cm_event *request)
{
	if (weir_event_channel_get(t->listener.cm, request) <= 0)
		return false;
	assert_int_equal(request->type, RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_true(request->param.private_data_len >= sizeof("hello"));
	assert_string_equal((const char *)request->param.private_data, "hello");
	return true;
}

static int reject_request(void *arg, struct weir_error *error)
{
	struct weir_cm_event request;

	(void)error;
	if (take_request(arg, &request))
		weir_listener_reject(request.id, WIRE_VERSION, -EDQUOT, "64 ends at most", NULL);
	return 0;
}

static void a_rejected_end_learns_the_reason(void **state)
{
	struct two_ends *t = ends_open(reject_request);

	(void)state;
	assert_int_equal(connect_ends(t), -EDQUOT);
	assert_says(t, "64 ends at most");
	ends_close(t);
}

static int accept_request(void *arg, struct weir_error *error)
{
	struct two_ends *t = arg;
	struct weir_cm_event request;
	struct ibv_qp *qp;

	(void)error;
	if (!take_request(t, &request))
		return 0;
	t->accepted = request.id;
	create_qp(t, request.id, &qp);
	assert_int_equal(weir_listener_accept(request.id, qp, &request.param, 8, 0), 0);
	return 0;
}

static unsigned int access_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	return attr.qp_access_flags & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_ATOMIC);
}

static void connected_ends_are_closed_to_rdma(void **state)
{
	struct two_ends *t = ends_open(accept_request);

	(void)state;
	assert_int_equal(connect_ends(t), 0);
	assert_int_equal(access_of(t->dialer.qp), 0);
	assert_int_equal(access_of(t->accepted->qp), 0);
	ends_close(t);
}

static void a_dialer_keeps_to_its_device(void **state)
{
	struct two_ends *t = ends_open(NULL);
	struct weir_dialer other = { .peer = t->listener.address,
				     .device = "mlx5_77",
				     .deadline_ns = weir_now_ns() + PATIENCE_NS,
				     .error = &t->error };

	(void)state;
	assert_int_equal(weir_dialer_resolve(&other, rdma_get_local_addr(t->listener.id)),
			 -ENODEV);
	assert_says(t, "mlx5_77");
	assert_says(t, ibv_get_device_name(t->dialer.id->verbs->device));
	weir_dialer_close(&other);
	ends_close(t);
}

static void without_descriptors_both_ends_say_so(void **state)
{
	struct two_ends *t = ends_open(NULL);
	struct weir_dialer dialer = { .peer = "somebody", .error = &t->error };
	struct weir_listener listener = { 0 };
	struct rlimit files, none = { 0 };

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none.rlim_max = files.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(weir_dialer_resolve(&dialer, NULL), -ENOMEM);
	assert_says(t, "descriptors");
	t->error.text[0] = '\0';
	assert_int_equal(weir_listener_open(&listener, "127.0.0.1:0", "a test", true, 1, &t->error),
			 -ENOMEM);
	assert_says(t, "descriptors");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	weir_dialer_close(&dialer);
	weir_listener_close(&listener);
	ends_close(t);
}

static void without_a_key_only_loopback_is_listened_on(void **state)
{
	struct two_ends t = { 0 };

	(void)state;
	assert_int_equal(weir_listener_open(&t.listener, "192.0.2.1:0", "a test", false, 1,
					    &t.error),
			 -EPERM);
	assert_says(&t, "a test without a key");
	assert_says(&t, "192.0.2.1");
	weir_listener_close(&t.listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_listener_is_given_up_at_the_deadline),
		cmocka_unit_test(a_wait_ends_when_the_caller_cancels),
		cmocka_unit_test(a_rejected_end_learns_the_reason),
		cmocka_unit_test(connected_ends_are_closed_to_rdma),
		cmocka_unit_test(a_dialer_keeps_to_its_device),
		cmocka_unit_test(without_descriptors_both_ends_say_so),
		cmocka_unit_test(without_a_key_only_loopback_is_listened_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
