// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic slow close; devices: softnic; timeout: 300 */
/*
 * A message brings a descriptor whose close() takes a minute. No thread that serves others waits,
 * neither where the kernel refuses such messages nor where it does not.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>

#include "fd/passed_fd.h"
#include "softnic/shm/shared.h"
#include "softnic/verbs/nic.h"
#include "tests/support/slow_socket.h"
#include "tests/support/verbs_puppet.h"

/* A local socket with a slow socket in its queue is slow, too. Return: false: kernel refuses. */
static bool send_nested(int to)
{
	int pair[2];
	bool sent;

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	sent = slow_socket_send(pair[0]) && slow_socket_pass(to, pair[1]);
	close(pair[0]);
	close(pair[1]);
	return sent;
}

static void test_a_slow_descriptor_that_arrives_delays_no_receiver(void **state)
{
	bool (*const kinds[])(int) = { slow_socket_send, send_nested };
	long start_ms = slow_socket_now_ms();
	int pair[2], fds[SHM_MSG_FDS_MAX];
	struct shm_msg m;
	char byte;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		assert_true(kinds[i](pair[0]));
		assert_int_equal(passed_fd_recv(pair[1], &byte, 1, 0), 1);
		assert_true(kinds[i](pair[0]));
		assert_int_equal(shm_msg_receive(pair[1], &m, NULL), -EPROTO);
		assert_true(kinds[i](pair[0]));
		assert_int_equal(shm_msg_receive(pair[1], &m, fds), -EPROTO);
		assert_true(kinds[i](pair[0])); /* never read */
		passed_fd_close_socket(pair[1]);
		close(pair[0]);
	}
	assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
}

static void test_where_none_is_due_the_kernel_refuses_or_a_thread_closes(void **state)
{
	long start_ms = slow_socket_now_ms();
	int pair[2];
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	passed_fd_refuse(pair[1]);
	if (slow_socket_send(pair[0]))
		assert_int_equal(passed_fd_recv(pair[1], &byte, 1, 0), 1);
	assert_int_equal(send(pair[0], "", 1, 0), 1);
	assert_int_equal(passed_fd_recv(pair[1], &byte, 1, 0), 1);
	passed_fd_close_socket(pair[1]);
	close(pair[0]);
	assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
}

static unsigned int nr_threads;

/* Takes the place of the C library's function, also for the code under test. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	nr_threads++;
	next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_create");
	return next(thread, attr, start, arg);
}

/* As an honest client leaves: with a message unread, and one that is empty. */
static void test_closing_an_ordinary_socket_takes_no_thread(void **state)
{
	const int types[] = { SOCK_SEQPACKET, SOCK_DGRAM };
	unsigned int before = nr_threads;
	int pair[2];
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, types[i], 0, pair), 0);
		assert_int_equal(send(pair[0], "", 0, 0), 0);
		assert_int_equal(send(pair[0], "m", 1, 0), 1);
		if (i)
			close(pair[0]);
		passed_fd_close_socket(pair[1]);
		assert_int_equal(fcntl(pair[1], F_GETFD), -1);
		if (!i)
			close(pair[0]);
	}
	assert_int_equal(nr_threads, before);
}

/* The slow one is behind an empty message, and before its sender's end. */
static void test_no_queued_descriptor_is_overlooked(void **state)
{
	long start_ms = slow_socket_now_ms();
	int pair[2], i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
		assert_int_equal(send(pair[0], "", 0, 0), 0);
		assert_true(slow_socket_send(pair[0]));
		assert_true(send_nested(pair[0]));
		if (i)
			close(pair[0]);
		passed_fd_close_socket(pair[1]);
		if (!i)
			close(pair[0]);
	}
	assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
}

/* The connection waits in the listener's queue, and a descriptor in the connection's. */
static void test_a_listener_closes_without_waiting_for_its_queue(void **state)
{
	long start_ms = slow_socket_now_ms();
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sa_family_t); /* the kernel chooses a name */
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, len), 0);
	len = sizeof(addr);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, len), 0);
	assert_true(slow_socket_send(fd));
	passed_fd_close_socket(listener);
	assert_int_equal(send(fd, "m", 1, MSG_NOSIGNAL), -1);
	close(fd);
	assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
}

/* The engine serves all connections of the process, and accepts new ones. */
static void test_the_engine_goes_on(void **state)
{
	const struct shm_msg nonsense = { .type = MSG_SET_FAULT, .qpn = UINT32_MAX };
	long start_ms = slow_socket_now_ms();
	struct sockaddr_un addr;
	socklen_t len = shared_address(nic.slot, &addr);
	struct puppet_pair *pair = *state;
	struct shm_msg m;
	struct test_wr w;
	int i, fd;

	for (i = 0; i < 4; i++) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd, (struct sockaddr *)&addr, len), 0);
		slow_socket_send(fd);
		close(fd);
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(shm_msg_send(fd, &nonsense, NULL, 0), 0);
	assert_int_equal(read(fd, &m, sizeof(m)), sizeof(m));
	assert_int_equal(m.type, MSG_FAULT_SET);
	close(fd);
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		/* First, because a puppet that inherits a slow socket waits for it in exec(). */
		cmocka_unit_test_setup_teardown(test_the_engine_goes_on, pair_up, pair_down),
		cmocka_unit_test(test_a_slow_descriptor_that_arrives_delays_no_receiver),
		cmocka_unit_test(test_where_none_is_due_the_kernel_refuses_or_a_thread_closes),
		cmocka_unit_test(test_closing_an_ordinary_socket_takes_no_thread),
		cmocka_unit_test(test_no_queued_descriptor_is_overlooked),
		cmocka_unit_test(test_a_listener_closes_without_waiting_for_its_queue),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
