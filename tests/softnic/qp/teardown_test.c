// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic verbs teardown; devices: softnic; timeout: 120 */
/*
 * Ends that go away: regions deregistered under a writer, processes killed or stopped. Nothing
 * may leak.
 */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "softnic/shm/vma.h"
#include "softnic/qp/qp.h"
#include "tests/support/stop_process.h"
#include "tests/support/verbs_puppet.h"

static void start_with(struct puppet_pair *pair, const struct manners *m)
{
	end_open(&pair->e, ALL_ACCESS);
	puppet_start(&pair->p, &pair->e, ALL_ACCESS, m);
}

static void start(struct puppet_pair *pair)
{
	start_with(pair, &plain);
}

static unsigned int num_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

enum { PAGE = 4096, PAGES = 3 };

/* Three adjacent pages: the rights on the last page decide. */
static const struct page_case {
	const char *name;
	int prot, access, rc;
} page_cases[] = {
	{ "what may be written may be written", PROT_READ | PROT_WRITE, ALL_ACCESS, 0 },
	{ "what may be read may be read", PROT_READ, 0, 0 },
	{ "and by others", PROT_READ, IBV_ACCESS_REMOTE_READ, 0 },
	{ "what may only be read is not received into", PROT_READ, IBV_ACCESS_LOCAL_WRITE, EFAULT },
	{ "nor written by others", PROT_READ, ALL_ACCESS, EFAULT },
	{ "nor lent to a window, which may be for writing", PROT_READ, IBV_ACCESS_MW_BIND, EFAULT },
	{ "what may not be touched is not read", PROT_NONE, 0, EFAULT },
	{ "nor written", PROT_NONE, ALL_ACCESS, EFAULT },
};

static void test_registered_memory_has_its_access_rights(void **state)
{
	char *map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0),
	     *last = map + (PAGES - 1) * PAGE;
	size_t length = PAGES * PAGE - 100, i;
	struct ibv_mr *mr;
	struct endpoint e;

	(void)state;
	end_open(&e, ALL_ACCESS);
	for (i = 0; i < sizeof(page_cases) / sizeof(page_cases[0]); i++) {
		const struct page_case *c = &page_cases[i];
		bool write = c->access & ~IBV_ACCESS_REMOTE_READ;

		print_message("# %s\n", c->name);
		assert_int_equal(mprotect(last, PAGE, c->prot), 0);
		errno = 0;
		mr = ibv_reg_mr(e.pd, map + 100, length, c->access);
		assert_int_equal(mr ? 0 : errno, c->rc);
		assert_int_equal(vma_check_range_by_text(map + 100, length, write), c->rc);
		if (mr)
			assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	/* mprotect() may not turn a page read by peers into a page written by peers. */
	assert_int_equal(mprotect(last, PAGE, PROT_READ), 0);
	mr = ibv_reg_mr(e.pd, map, PAGES * PAGE, 0);
	assert_non_null(mr);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(last, PAGE);
	assert_null(ibv_reg_mr(e.pd, map, PAGES * PAGE, 0));
	assert_int_equal(vma_check_range_by_text(map, PAGES * PAGE, false), EFAULT);
	munmap(map, (PAGES - 1) * PAGE);
	end_close(&e);
}

static void test_a_peer_does_not_post_receives_for_us(void **state)
{
	struct ibv_qp_attr to_error = { .qp_state = IBV_QPS_ERR };
	const struct rq *rq;
	struct puppet_pair pair;
	struct ibv_wc wc;

	(void)state;
	start(&pair);
	rq = &to_qp(pair.e.qp)->rq->ring;
	assert_int_equal(post_recv(&pair.e, 7, 0, 64), 0);
	rq_post(rq, rq_first_position(rq) + 1, 1, NULL, 0);
	store_relaxed(&rq->shared->tail, 1000);
	assert_int_equal(ibv_modify_qp(pair.e.qp, &to_error, IBV_QP_STATE), 0);
	wc = wait_wc(&pair.e);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(ibv_poll_cq(pair.e.cq, 1, &wc), 0);
	puppet_stop(&pair.p, &pair.e);
}

/* Receive as a peer would, with a wrong length. */
static void receive_wrongly(struct endpoint *e, uint32_t times)
{
	struct qp *qp = to_qp(e->qp);
	const struct rq_result result = {
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV,
		.byte_len = 1 << 20,
		.dest_qp = e->qp->qp_num,
	};
	struct rq_receive r;
	uint32_t i;

	assert_int_equal(rq_peek(&qp->rq->ring, &r), 0);
	assert_true(rq_take(&qp->rq->ring, &r, 1));
	assert_true(rq_finish(&qp->rq->ring, &r, 1, &result, &qp->arrivals.ring));
	for (i = 1; i < times; i++) /* the same receive again, as if it were not the owner's */
		arrivals_add(&qp->arrivals.ring, r.index);
	cq_ring_own(to_cq(e->cq), e->qp->qp_num, times, false);
}

static void test_a_peer_does_not_make_a_receive_longer_than_its_buffer(void **state)
{
	struct puppet_pair pair;
	struct ibv_wc wc;

	(void)state;
	start(&pair);
	assert_int_equal(post_recv(&pair.e, 7, 0, 64), 0);
	receive_wrongly(&pair.e, 1);
	wc = wait_wc(&pair.e);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.byte_len, 64);
	puppet_stop(&pair.p, &pair.e);
}

static void test_a_packet_reported_twice_is_received_once(void **state)
{
	struct puppet_pair pair;
	struct ibv_wc wc;

	(void)state;
	start(&pair);
	assert_int_equal(post_recv(&pair.e, 7, 0, 64), 0);
	receive_wrongly(&pair.e, 3);
	assert_int_equal(wait_wc(&pair.e).wr_id, 7);
	assert_int_equal(ibv_poll_cq(pair.e.cq, 1, &wc), 0);
	assert_int_equal(post_recv(&pair.e, 8, 0, 64), 0);
	assert_int_equal(ibv_poll_cq(pair.e.cq, 1, &wc), 0);
	tell(&pair.p, ORDER_SEND, 0, 32, 0);
	assert_int_equal(wait_wc(&pair.e).wr_id, 8);
	puppet_stop(&pair.p, &pair.e);
}

/* The peer reports more arrivals than possible: the queue pair must fail. */
static void test_a_peer_that_overruns_the_arrivals_fails_its_connection(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct puppet_pair pair;
	struct ibv_wc wc;

	(void)state;
	start(&pair);
	assert_int_equal(post_recv(&pair.e, 7, 0, 64), 0);
	receive_wrongly(&pair.e, 2 + to_qp(pair.e.qp)->arrivals.ring.size);
	while (!ibv_poll_cq(pair.e.cq, 1, &wc))
		;
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(ibv_query_qp(pair.e.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	puppet_stop(&pair.p, &pair.e);
}

/* As the peer does before it rings. */
static void take_arm_of_guest(struct cq *cq)
{
	pthread_mutex_lock(&cq->doorbells_lock);
	store_ordered(&cq->doorbell.next->at->armed, ARMED_NOT);
	pthread_mutex_unlock(&cq->doorbells_lock);
}

/*
 * The peer consumed the arm and was killed before it rang; the owner had already given up on
 * the peer.
 */
static void test_a_peer_that_dies_about_to_ring_is_no_lost_event(void **state)
{
	struct ibv_qp_attr to_error = { .qp_state = IBV_QPS_ERR };
	struct pollfd event;
	struct puppet_pair pair;
	struct ibv_cq *cq;
	void *context;

	(void)state;
	start(&pair);
	tell(&pair.p, ORDER_WRITE_ONCE, 0, 0, 0);
	event = (struct pollfd){ .fd = pair.e.channel->fd, .events = POLLIN };
	assert_int_equal(post_recv(&pair.e, 7, 0, 64), 0);
	assert_int_equal(ibv_modify_qp(pair.e.qp, &to_error, IBV_QP_STATE), 0);
	assert_int_equal(wait_wc(&pair.e).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_req_notify_cq(pair.e.cq, 0), 0);
	take_arm_of_guest(to_cq(pair.e.cq));
	assert_int_equal(poll(&event, 1, 0), 0);
	puppet_kill(&pair.p);
	assert_int_equal(poll(&event, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_cq_event(pair.e.channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(poll(&event, 1, 0), 0);
	end_close(&pair.e);
}

static void deregister_under_a_writer(unsigned int after_us)
{
	struct puppet_pair pair;
	int i;

	start(&pair);
	tell(&pair.p, ORDER_FILL, 0, BUF_SIZE, 0xee);
	tell(&pair.p, ORDER_WRITE_FOR_EVER, 0, 0, 0);
	while (!*(volatile uint8_t *)pair.e.buf)
		;
	usleep(after_us);
	assert_int_equal(ibv_dereg_mr(pair.e.mr), 0);
	pair.e.mr = NULL;
	memset(pair.e.buf, 0, BUF_SIZE);
	usleep(2000);
	for (i = 0; i < BUF_SIZE; i++)
		if (pair.e.buf[i])
			fail_msg("byte %d was written after the deregistration", i);
	puppet_stop(&pair.p, &pair.e);
}

/* The peer writes as fast as it can. Bytes stored after the deregistration stay. */
static void test_once_deregistered_a_region_is_not_written_any_more(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 10; i++)
		deregister_under_a_writer(i * 100);
}

static void test_a_killed_peer_ends_work_requests_in_flight(void **state)
{
	struct ibv_async_event event;
	struct puppet_pair pair;
	struct ibv_wc wc;
	struct test_wr w;
	int i;

	(void)state;
	start(&pair);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	assert_int_equal(post_recv(&pair.e, 10, 0, 64), 0);
	assert_int_equal(post_recv(&pair.e, 11, 0, 64), 0);
	/* No receive is posted, so these sends wait. */
	for (i = 0; i < 3; i++) {
		wr_make(&w, &pair.e, IBV_WR_SEND, 0, 64, 0);
		w.wr.wr_id = i;
		assert_int_equal(post(&pair.e, &w), 0);
	}
	ibv_req_notify_cq(pair.e.cq, 0);
	puppet_kill(&pair.p);
	for (i = 0; i < 5; i++) {
		wc = wait_wc(&pair.e);
		assert_int_equal(wc.status, wc.wr_id ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
	}
	assert_int_equal(ibv_get_async_event(pair.e.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
	ibv_ack_async_event(&event);
	end_close(&pair.e);
}

static void test_a_killed_peer_wakes_a_sleeper(void **state)
{
	struct puppet_pair pair;
	struct ibv_cq *cq;
	void *context;
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		start(&pair);
		assert_int_equal(post_recv(&pair.e, 1, 0, 64), 0);
		ibv_req_notify_cq(pair.e.cq, 0);
		tell(&pair.p, ORDER_WRITE_FOR_EVER, 0, 0, 0);
		puppet_kill(&pair.p);
		assert_int_equal(ibv_get_cq_event(pair.e.channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(wait_wc(&pair.e).status, IBV_WC_WR_FLUSH_ERR);
		end_close(&pair.e);
	}
}

static void test_a_peer_killed_while_it_is_written_to_gives_an_error(void **state)
{
	struct puppet_pair pair;
	struct ibv_wc wc;
	struct test_wr w;
	int i;

	(void)state;
	start(&pair);
	for (i = 0; i < QUEUE_DEPTH; i++)
		assert_int_equal(
			post(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, BUF_SIZE, 0)), 0);
	puppet_kill(&pair.p);
	for (i = 0; i < QUEUE_DEPTH; i++)
		wc = wait_wc(&pair.e);
	assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	end_close(&pair.e);
}

/*
 * An orderly end is not reported, as on any other device. Later sends are retried until the
 * retries run out, so the program can first poll all successes.
 */
static void test_a_peer_that_closed_and_ended_is_no_error(void **state)
{
	const struct manners impatient = { .timeout = 14, .retry_cnt = 7 };
	const uint64_t retries_ms = 8 * 67;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct puppet_pair pair;
	uint64_t begin;
	struct test_wr w;

	(void)state;
	start_with(&pair, &impatient);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	tell(&pair.p, ORDER_WRITE_ONCE, 0, 0, 0);
	tell(&pair.p, ORDER_CLOSE, 0, 0, 0);
	begin = now_ms();
	assert_int_equal(post(&pair.e, &w), 0);
	waitpid(pair.p.pid, NULL, 0);
	close(pair.p.fd);
	usleep(20000);
	assert_int_equal(ibv_query_qp(pair.e.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(wait_wc(&pair.e).status, IBV_WC_RETRY_EXC_ERR);
	assert_true(now_ms() - begin >= retries_ms);
	end_close(&pair.e);
}

/* The peer may be stopped between checks and copy. The deregistration waits, but not for ever. */
static void test_a_stopped_peer_does_not_hold_up_a_deregistration_for_long(void **state)
{
	struct puppet_pair pair;
	uint64_t begin;

	(void)state;
	start(&pair);
	tell(&pair.p, ORDER_FILL, 0, BUF_SIZE, 0xee);
	tell(&pair.p, ORDER_WRITE_FOR_EVER, 0, 0, 0);
	while (!pair.e.buf[0])
		usleep(100);
	stop_process(pair.p.pid);
	begin = now_ms();
	assert_int_equal(ibv_dereg_mr(pair.e.mr), 0);
	print_message("# it took %u ms\n", (unsigned int)(now_ms() - begin));
	pair.e.mr = NULL;
	kill(pair.p.pid, SIGCONT);
	puppet_kill(&pair.p);
	end_close(&pair.e);
}

static void test_nothing_stays_behind(void **state)
{
	static struct softnic_process all[1024];
	uint64_t deadline = now_ms() + PATIENCE_MS;
	unsigned int before, i;
	struct puppet_pair pair;
	size_t n;

	(void)state;
	end_open(&pair.e, ALL_ACCESS); /* the device, which stays open */
	end_close(&pair.e);
	before = num_fds(); /* may include descriptors of a process that has just died */
	for (i = 0; i < 20; i++) {
		start(&pair);
		if (i % 2)
			puppet_stop(&pair.p, &pair.e);
		else {
			puppet_kill(&pair.p);
			end_close(&pair.e);
		}
	}
	while (num_fds() > before) { /* or of a parallel test that probes slots */
		assert_true(now_ms() < deadline);
		usleep(1000);
	}
	assert_int_equal(softnic_stat(all, 1024, &n), 0);
	for (i = 0; i < n; i++)
		assert_int_not_equal(all[i].pid, pair.p.pid);
}

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer forbids threads in the child of a threaded process */
static int use_in_child(void)
{
	struct endpoint a, b;
	struct endpoint_name name;
	struct test_wr w;

	end_open(&a, ALL_ACCESS);
	end_open(&b, ALL_ACCESS);
	name = end_name(&b);
	end_connect(&a, &name, &plain);
	name = end_name(&a);
	end_connect(&b, &name, &plain);
	do_wr(&a, wr_make(&w, &a, IBV_WR_RDMA_WRITE, 0, 64, 0), IBV_WC_SUCCESS);
	end_close(&a);
	end_close(&b);
	return 0;
}

static void test_a_child_may_open_the_device_for_itself(void **state)
{
	struct puppet_pair pair;
	int status;
	pid_t pid;
	struct test_wr w;

	(void)state;
	start(&pair);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	pid = fork();
	if (!pid)
		_exit(use_in_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	puppet_stop(&pair.p, &pair.e);
}

/* Python's collector does so in a child, which inherits the garbage of its parent. */
static void test_a_child_may_close_its_parents_objects(void **state)
{
	struct ibv_context *ctx;
	struct ibv_device **list;
	struct ibv_pd *pd;
	int status;
	pid_t pid;

	(void)state;
	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	ctx = ibv_open_device(list[0]);
	assert_non_null(ctx);
	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	pid = fork();
	if (!pid)
		_exit(ibv_dealloc_pd(pd) || ibv_close_device(ctx));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	ibv_free_device_list(list);
}

/* The next allocation then searches the whole table under its lock. */
static uint32_t fill_table(struct ibv_pd *pd, struct ibv_mw **windows)
{
	uint32_t n = 0;

	while (n < SHARED_MRS && (windows[n] = ibv_alloc_mw(pd, IBV_MW_TYPE_2)))
		n++;
	return n;
}

struct seeker {
	struct ibv_pd *pd;
	bool ends;
	uint32_t found;
};

static void *seek_place(void *arg)
{
	struct seeker *s = arg;

	while (!load_relaxed(&s->ends))
		s->found += !!ibv_alloc_mw(s->pd, IBV_MW_TYPE_2);
	return NULL;
}

static int make_region_in_child(void)
{
	struct endpoint e;

	alarm(PATIENCE_MS / 1000);
	end_open(&e, ALL_ACCESS);
	end_close(&e);
	return 0;
}

static void test_a_child_finds_no_lock_held_and_room_in_its_tables(void **state)
{
	struct ibv_mw **windows = calloc(SHARED_MRS, sizeof(*windows));
	struct seeker s = { 0 };
	int i, status;
	pthread_t thread;
	struct endpoint e;
	uint32_t n;
	pid_t pid;

	(void)state;
	assert_non_null(windows);
	end_open(&e, ALL_ACCESS);
	s.pd = e.pd;
	n = fill_table(e.pd, windows);
	assert_int_equal(pthread_create(&thread, NULL, seek_place, &s), 0);
	for (i = 0; i < 10; i++) {
		pid = fork();
		if (!pid)
			_exit(make_region_in_child());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	store_relaxed(&s.ends, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(s.found, 0);
	while (n)
		assert_int_equal(ibv_dealloc_mw(windows[--n]), 0);
	end_close(&e);
	free(windows);
}

/* The number of this process's descriptors on files whose name ends with @suffix. */
static int num_fds_of(const char *suffix)
{
	const ssize_t suffix_length = strlen(suffix);
	char path[300], name[256];
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;
	ssize_t length;
	int n = 0;

	while ((entry = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		length = readlink(path, name, sizeof(name));
		n += length >= suffix_length &&
		     !memcmp(name + length - suffix_length, suffix, suffix_length);
	}
	closedir(d);
	return n;
}

static void test_a_child_has_no_way_to_the_memory_of_others(void **state)
{
	static const char *const ways[] = {
		"/mem",
		"softnic-pub (deleted)",
		"softnic-bell (deleted)",
	};
	struct puppet_pair pair;
	struct test_wr w;
	int status;
	size_t i;
	pid_t pid;

	(void)state;
	start(&pair);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		assert_true(num_fds_of(ways[i]) > 0);
	pid = fork();
	if (!pid) {
		for (status = 0, i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
			status += num_fds_of(ways[i]);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	puppet_stop(&pair.p, &pair.e);
}

/*
 * The child inherits descriptors, which must not keep a dead process's connections open. Some of
 * the rounds fork while the puppet's engine is accepting the connection.
 */
static void test_a_child_that_lives_on_does_not_hide_a_death(void **state)
{
	enum { ROUNDS = 40 };
	struct puppet_pair pair;
	struct puppet_answer a;
	int i;

	(void)state;
	for (i = 0; i < ROUNDS; i++) {
		start(&pair);
		assert_int_equal(post_recv(&pair.e, 1, 0, 64), 0);
		a = tell(&pair.p, ORDER_FORK, 0, 0, 0);
		puppet_kill(&pair.p);
		assert_int_equal(wait_wc(&pair.e).status, IBV_WC_WR_FLUSH_ERR);
		kill(a.value, SIGKILL);
		end_close(&pair.e);
	}
}
#endif

static const struct softnic_process *find_self(struct softnic_process *all, size_t n)
{
	while (n--)
		if (all[n].pid == getpid())
			return &all[n];
	fail_msg("this process has the device open and is not listed");
	return NULL;
}

static void test_the_counters_can_be_read_from_outside(void **state)
{
	static struct softnic_process all[1024];
	struct softnic_counters before, after;
	struct puppet_pair pair;
	struct test_wr w;
	size_t n;

	(void)state;
	start(&pair);
	assert_int_equal(softnic_stat(all, 1024, &n), 0);
	before = find_self(all, n)->counters;
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_WRITE, 0, 100000, 0), IBV_WC_SUCCESS);
	do_wr(&pair.e, wr_make(&w, &pair.e, IBV_WR_RDMA_READ, 0, 5, 0), IBV_WC_SUCCESS);
	assert_int_equal(softnic_stat(all, 1024, &n), 0);
	after = find_self(all, n)->counters;
	assert_int_equal(after.doorbells - before.doorbells, 2);
	assert_int_equal(after.send_wrs - before.send_wrs, 2);
	assert_int_equal(after.completions - before.completions, 2);
	assert_int_equal(after.write_bytes - before.write_bytes, 100000);
	assert_int_equal(after.read_bytes - before.read_bytes, 5);
	assert_int_equal(after.mrs, 1);
	assert_int_equal(after.qps, 1);
	puppet_stop(&pair.p, &pair.e);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_registered_memory_has_its_access_rights),
		cmocka_unit_test(test_once_deregistered_a_region_is_not_written_any_more),
		cmocka_unit_test(test_a_killed_peer_ends_work_requests_in_flight),
		cmocka_unit_test(test_a_killed_peer_wakes_a_sleeper),
		cmocka_unit_test(test_a_peer_killed_while_it_is_written_to_gives_an_error),
		cmocka_unit_test(test_a_peer_that_closed_and_ended_is_no_error),
		cmocka_unit_test(test_a_peer_does_not_post_receives_for_us),
		cmocka_unit_test(test_a_peer_does_not_make_a_receive_longer_than_its_buffer),
		cmocka_unit_test(test_a_packet_reported_twice_is_received_once),
		cmocka_unit_test(test_a_peer_that_overruns_the_arrivals_fails_its_connection),
		cmocka_unit_test(test_a_peer_that_dies_about_to_ring_is_no_lost_event),
		cmocka_unit_test(test_a_stopped_peer_does_not_hold_up_a_deregistration_for_long),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(test_a_child_may_open_the_device_for_itself),
		cmocka_unit_test(test_a_child_may_close_its_parents_objects),
		cmocka_unit_test(test_a_child_finds_no_lock_held_and_room_in_its_tables),
		cmocka_unit_test(test_a_child_has_no_way_to_the_memory_of_others),
		cmocka_unit_test(test_a_child_that_lives_on_does_not_hide_a_death),
#endif
		cmocka_unit_test(test_nothing_stays_behind),
		cmocka_unit_test(test_the_counters_can_be_read_from_outside),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
