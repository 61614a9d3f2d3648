/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: unload discovery; devices: softnic rxe; timeout: 300 */
/*
 * Discovery trusts only the owner of the other QP, not another program of the same user or another
 * user. Also tests waiting for a peer's copies at the end.
 */
#include "tests/preload/unload/answering_peer.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/unload/diag.h"

#define STRANGER 65534 /* another user */

/* Sends as another user, or sends nothing without the permission to become one. */
static void send_as_stranger(int fd, const void *bytes, size_t size, const struct sockaddr_un *to,
			     socklen_t length)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (!setresuid(STRANGER, STRANGER, STRANGER))
			sendto(fd, bytes, size, 0, (const struct sockaddr *)to, length);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void offer_as_stranger(int fd, const struct wire_discovery_offer *offer)
{
	struct sockaddr_un to;
	socklen_t length;
	int i;

	for (i = 0; i < WIRE_DISCOVERY_NAMES; i++) {
		length = forger_name(i, &to);
		send_as_stranger(fd, offer, sizeof(*offer), &to, length);
	}
}

/* Does a datagram sent from @fd get an answer? Closes @fd. */
static bool is_answered(struct forger *f, int fd)
{
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	int n;

	/* An answer to this offer proves that the peer has handled the earlier one without an
	 * answer. */
	close(f->fd);
	f->fd = forger_socket();
	forger_ask(f, &f->offer);
	n = poll(&answer, 1, 0);
	close(fd);
	return n == 1;
}

static bool is_answered_to(struct forger *f, const void *bytes, size_t size)
{
	int fd = forger_socket();

	forger_send(fd, bytes, size);
	return is_answered(f, fd);
}

static void offers_of_strangers_are_not_answered(void **state)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	static struct forger f;
	struct wire_discovery_offer offer;
	int which, fd;

	(void)state;
	forger_open(&f, RIGHTS);
	/* Other programs' datagrams may have filled the queue, so send again. */
	while (!is_answered_to(&f, &f.offer, sizeof(offer)))
		assert_true(time(NULL) <= until);
	fd = forger_socket();
	offer_as_stranger(fd, &f.offer);
	assert_false(is_answered(&f, fd));
	for (which = 0; which < 9; which++) {
		offer = f.offer;
		offer.magic ^= which == 0;
		offer.version += which == 1;
		offer.type = which == 2 ? 77 : offer.type;
		offer.from_qpn ^= which == 3;
		offer.from_gid[15] ^= which == 4;
		offer.to_qpn = which == 5 ? f.qp->qp_num : offer.to_qpn;
		forger_seal(&f.pair, &offer, which == 6);
		offer.mac[WIRE_MAC - 1] ^= which == 7;
		assert_false(is_answered_to(&f, &offer, sizeof(offer) - (which == 8)));
	}
	forger_close(&f);
}

/* Enough small writes by the first QP to show that the peer lives, all by the device. */
static void expect_plain(struct loopback_pair *pair)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	struct ibv_sge sge = pair_sge(pair, 16);
	struct ibv_send_wr *bad, wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);
	struct ibv_wc wc;
	struct diag_counters diag_counters;
	int i;

	for (i = 1; i <= 100; i++) {
		memset(pair->bytes, i, 16);
		assert_int_equal(ibv_post_send(pair->qp[0], &wr, &bad), 0);
		while (!ibv_poll_cq(pair->cq, 1, &wc)) {
			sched_yield();
			assert_true(time(NULL) <= until);
		}
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_memory_equal(pair->bytes, pair->bytes + PAIR_BYTES, 16);
	}
	weir_unload_read(&diag_counters);
	assert_int_equal(diag_counters.unloaded, 0);
}

/* Each false answer denies unloading; a QP that believed one would end the search. */
static void answer_falsely(int fd, const struct loopback_pair *pair,
			   const struct wire_discovery_offer *offer, const struct sockaddr_un *to,
			   socklen_t length)
{
	struct wire_discovery_offer answer = *offer;

	answer.type = WIRE_DISCOVERY_REFUSED;
	sendto(fd, &answer, sizeof(answer), 0, (const struct sockaddr *)to, length);
	forger_seal(pair, &answer, 1);
	sendto(fd, &answer, sizeof(answer), 0, (const struct sockaddr *)to, length);
	forger_seal(pair, &answer, 0);
	send_as_stranger(fd, &answer, sizeof(answer), to, length);
	answer.nonce++;
	forger_seal(pair, &answer, 0);
	sendto(fd, &answer, sizeof(answer), 0, (const struct sockaddr *)to, length);
}

static void false_answers_for_a_queue_pair_are_ignored(void **state)
{
	static struct forger f;
	struct sockaddr_un from;
	struct wire_discovery_offer offer;
	socklen_t length;
	int i;

	(void)state;
	f.fd = answerer_listen();
	forger_begin(&f, answerer_make, RIGHTS);
	length = answerer_hear(f.fd, f.pair.qp[0], &offer, &from);
	answer_falsely(f.fd, &f.pair, &offer, &from, length);
	for (i = 0; i < 2; i++)
		length = answerer_hear(f.fd, f.pair.qp[0], &offer, &from);
	answerer_greet(&f, &offer, &from, length);
	expect_plain(&f.pair);
	forger_close(&f);
}

static void await_unloaded(uint64_t count)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	struct diag_counters diag_counters;

	do {
		sched_yield();
		assert_true(time(NULL) <= until);
		weir_unload_read(&diag_counters);
	} while (diag_counters.unloaded < count);
}

/**
 * struct program - a program whose target is this test, which copies on request
 * @f: the target, and both queue pairs
 * @asked: where returns go
 * @unloaded: number of unloaded writes before
 * @last: the last completion polled
 * @has_ended: the queue pair is destroyed; atomic
 */
struct program {
	struct forger f;
	struct wire_discovery_offer asked;
	uint64_t unloaded;
	struct ibv_wc last;
	bool has_ended;
};

#define WRITE_ID 4711

static struct ibv_send_wr program_write(struct program *p, struct ibv_sge *sge)
{
	struct ibv_send_wr wr;

	*sge = pair_sge(&p->f.pair, 16);
	wr = pair_wr(&p->f.pair, IBV_WR_RDMA_WRITE, sge);
	wr.wr_id = WRITE_ID;
	return wr;
}

static struct ibv_wc program_wc(struct program *p)
{
	time_t until = time(NULL) + PATIENCE_MS / 1000;
	struct ibv_wc wc;

	while (!ibv_poll_cq(p->f.pair.cq, 1, &wc)) {
		sched_yield();
		assert_true(time(NULL) <= until);
	}
	return wc;
}

/* Writes until a write has been unloaded and has completed. */
static void *write_until_unloaded(void *arg)
{
	struct program *p = arg;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = program_write(p, &sge);
	struct diag_counters diag_counters;

	do {
		if (ibv_post_send(p->f.pair.qp[0], &wr, &bad))
			return NULL;
		p->last = program_wc(p);
		weir_unload_read(&diag_counters);
	} while (diag_counters.unloaded == p->unloaded);
	return NULL;
}

/* Then posts an unsignalled write, and destroys the queue pair. */
static void *write_and_end(void *arg)
{
	struct program *p = arg;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = program_write(p, &sge);

	write_until_unloaded(p);
	wr.send_flags = 0;
	if (!ibv_post_send(p->f.pair.qp[0], &wr, &bad) && !ibv_destroy_qp(p->f.pair.qp[0]))
		__atomic_store_n(&p->has_ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Runs the program in a thread until its first unloaded write waits for the copy. */
static pthread_t program_open(struct program *p, void *(*run)(void *))
{
	struct sockaddr_un from;
	struct wire_discovery_offer offer;
	struct diag_counters diag_counters;
	pthread_t thread;
	socklen_t length;

	memset(p, 0, sizeof(*p));
	weir_unload_read(&diag_counters);
	p->unloaded = diag_counters.unloaded;
	p->f.fd = answerer_listen();
	forger_begin(&p->f, answerer_make, RIGHTS);
	length = answerer_hear(p->f.fd, p->f.pair.qp[0], &offer, &from);
	p->asked = offer;
	answerer_greet(&p->f, &offer, &from, length);
	assert_int_equal(pthread_create(&thread, NULL, run, p), 0);
	answerer_return(&p->f, &p->asked, 0, false);
	await_unloaded(p->unloaded + 1);
	return thread;
}

static void program_join(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
}

/* Closes a program that has destroyed its queue pair. */
static void program_close_ended(struct program *p)
{
	assert_true(p->has_ended);
	p->f.pair.qp[0] = NULL;
	forger_close(&p->f);
}

static void make_another_queue_pair(struct forger *f)
{
	struct ibv_qp_init_attr init = {
		.send_cq = f->cq, .recv_cq = f->cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp *other = ibv_create_qp(f->pair.pd, &init);

	assert_non_null(other);
	assert_int_equal(ibv_destroy_qp(other), 0);
}

static void waiting_for_a_peers_copies_delays_no_other_peer(void **state)
{
	static struct program p;
	pthread_t thread;

	(void)state;
	thread = program_open(&p, write_and_end);
	answerer_return(&p.f, &p.asked, 1, false);
	await_unloaded(p.unloaded + 2);
	make_another_queue_pair(&p.f);
	assert_false(__atomic_load_n(&p.has_ended, __ATOMIC_ACQUIRE));
	answerer_return(&p.f, &p.asked, 2, false);
	program_join(thread);
	program_close_ended(&p);
}

/* The program gets the completion, and goes on by the device. */
static void writes_copied_before_the_peer_ended_complete(void **state)
{
	static struct program p;
	pthread_t thread;

	(void)state;
	thread = program_open(&p, write_and_end);
	answerer_return(&p.f, &p.asked, 1, true);
	program_join(thread);
	assert_int_equal(p.last.status, IBV_WC_SUCCESS);
	program_close_ended(&p);
}

/*
 * The peer vanishes before the completion is made, and the queue pair fails. Only later writes and
 * receives report the failure, even receives with the same wr_id as the write.
 */
static void a_copied_write_succeeds_even_if_the_queue_pair_fails(void **state)
{
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = WRITE_ID };
	static struct program p;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	pthread_t thread;

	(void)state;
	thread = program_open(&p, write_until_unloaded);
	assert_int_equal(ibv_post_recv(p.f.pair.qp[0], &recv, &bad_recv), 0);
	assert_int_equal(ibv_destroy_qp(p.f.pair.qp[1]), 0);
	p.f.pair.qp[1] = NULL;
	answerer_return(&p.f, &p.asked, 1, false);
	program_join(thread);
	assert_int_equal(p.last.status, IBV_WC_SUCCESS);
	assert_int_equal(p.last.wr_id, WRITE_ID);
	assert_int_equal(p.last.opcode, IBV_WC_RDMA_WRITE);
	wc = program_wc(&p);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, WRITE_ID);
	wr = program_write(&p, &sge);
	wr.wr_id++;
	assert_int_equal(ibv_post_send(p.f.pair.qp[0], &wr, &bad), 0);
	wc = program_wc(&p);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, WRITE_ID + 1);
	assert_int_equal(ibv_poll_cq(p.f.pair.cq, 1, &wc), 0);
	forger_close(&p.f);
}

static void a_buffer_that_works_keeps_its_place(void **state)
{
	static struct forger f;
	struct wire_discovery_offer offer;

	(void)state;
	forger_open(&f, RIGHTS);
	offer = forger_offer(&f);
	assert_false(is_answered_to(&f, &offer, sizeof(offer)));
	forger_write(&f, forger_area(&f), HEAD + 16, f.target->rkey);
	assert_false(forger_returned(&f, 1).is_refused);
	assert_int_equal(f.area[AREA], 0x66);
	forger_close(&f);
}

/* A peer that starts over may leave an offer in the queue, which is read after its QP's reset. */
static void an_offer_that_its_sender_has_left_gives_way(void **state)
{
	static struct forger f;
	struct wire_discovery_offer left;

	(void)state;
	forger_open(&f, RIGHTS);
	forger_write(&f, forger_area(&f), HEAD + 16, f.target->rkey ^ 1);
	assert_true(forger_returned(&f, 1).is_refused);
	left = forger_offer(&f);
	forger_ask(&f, &left);
	forger_buffer(&f);
	forger_write(&f, forger_area(&f), HEAD + 16, f.target->rkey);
	assert_false(forger_returned(&f, 1).is_refused);
	forger_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offers_of_strangers_are_not_answered),
		cmocka_unit_test(false_answers_for_a_queue_pair_are_ignored),
		cmocka_unit_test(waiting_for_a_peers_copies_delays_no_other_peer),
		cmocka_unit_test(writes_copied_before_the_peer_ended_complete),
		cmocka_unit_test(a_copied_write_succeeds_even_if_the_queue_pair_fails),
		cmocka_unit_test(a_buffer_that_works_keeps_its_place),
		cmocka_unit_test(an_offer_that_its_sender_has_left_gives_way),
	};

	return cmocka_run_group_tests_name("unload meet", tests, NULL, NULL);
}
