// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic slow close; devices: softnic; timeout: 300 */
/*
 * A message brings a descriptor whose close() takes a minute. No thread that serves others waits,
 * neither where the kernel refuses such messages nor where it does not.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/syscall.h>

#include "fd/closer.h"
#include "fd/passed_fd.h"
#include "softnic/cm/claims.h"
#include "softnic/cm/cm.h"
#include "softnic/shm/shared.h"
#include "softnic/verbs/nic.h"
#include "tests/support/slow_socket.h"
#include "tests/support/verbs_puppet.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static _Atomic bool is_old_kernel; /* before 6.16 */

/* Takes the place of the C library's function, also for the code under test. */
int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	if (is_old_kernel && level == SOL_SOCKET && option == SO_PASSRIGHTS) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_setsockopt, fd, level, option, value, length);
}

/*
 * Between a connection's start and its end, the code under test asks for the other end's user. At
 * that moment a slow descriptor arrives, from @sender or from a caller at @squatted. All this is
 * the engine's while @is_armed.
 */
static struct {
	int squatted, sender;
	bool is_stranger;
	_Atomic bool is_armed;
} attack = { .squatted = -1, .sender = -1 };

/* Takes the place of the C library's function, also for the code under test. */
int getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	int rc = (int)syscall(SYS_getsockopt, fd, level, option, value, length);

	if (rc || level != SOL_SOCKET || option != SO_PEERCRED || !attack.is_armed)
		return rc;
	if (attack.squatted >= 0)
		attack.sender = accept(attack.squatted, NULL, NULL);
	/* Only a kernel that can refuse may do so. */
	if (!slow_socket_send(attack.sender) && is_old_kernel)
		abort();
	if (attack.is_stranger)
		((struct ucred *)value)->uid++;
	attack.is_armed = false;
	return rc;
}

static _Atomic bool is_stalled[1024], is_waiting[1024]; /* by descriptor */

/* Takes the place of the C library's function: a file system that answers at the test's will. */
int close(int fd)
{
	int (*next)(int) = (__typeof__(next))dlsym(RTLD_NEXT, "close");

	while (fd >= 0 && fd < 1024 && is_stalled[fd]) {
		is_waiting[fd] = true;
		usleep(1000);
	}
	return next(fd);
}

static int squat(const struct sockaddr_un *addr, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (!bind(fd, (const struct sockaddr *)addr, length) && !listen(fd, 8))
		return fd;
	close(fd);
	return -1;
}

static void end_attack(void)
{
	assert_false(attack.is_armed);
	close(attack.sender);
	if (attack.squatted >= 0)
		close(attack.squatted);
	attack.squatted = attack.sender = -1;
	attack.is_stranger = false;
}

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
		assert_int_equal(passed_fd_recv(pair[1], &byte, 1, 0), -1);
		assert_int_equal(errno, EBADMSG);
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

static __thread unsigned int nr_threads; /* made by this thread; the engine adds its own at load */
static _Atomic bool has_no_thread;

/* Takes the place of the C library's function, also for the code under test. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	nr_threads++;
	if (has_no_thread)
		return EAGAIN;
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

/* Return: a connection that the engine has accepted. */
static int call_engine(void)
{
	const struct shm_msg nonsense = { .type = MSG_SET_FAULT, .qpn = UINT32_MAX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;
	socklen_t len = shared_address(nic.slot, &addr);
	struct shm_msg m;

	assert_int_equal(connect(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(shm_msg_send(fd, &nonsense, NULL, 0), 0);
	assert_int_equal(read(fd, &m, sizeof(m)), sizeof(m));
	assert_int_equal(m.type, MSG_FAULT_SET);
	return fd;
}

/* The engine connects to the slot that a client names, to see whose it is. */
static void name_a_squatted_slot(void)
{
	struct shm_msg hello = { .type = MSG_HELLO }, m;
	struct sockaddr_un addr;
	int fd = call_engine();
	socklen_t len;

	while (attack.squatted < 0) {
		len = shared_address((uint32_t)++hello.value, &addr);
		attack.squatted = squat(&addr, len); /* unless another process has the slot */
	}
	attack.is_armed = true;
	assert_int_equal(shm_msg_send(fd, &hello, NULL, 0), 0);
	assert_int_equal(read(fd, &m, sizeof(m)), sizeof(m));
	close(fd);
	end_attack();
}

/* Return: the listener, at a port of 127.0.0.1. */
static struct rdma_cm_id *listen_by_cm(union cm_addr *at)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&any), 0);
	assert_int_equal(rdma_listen(id, 0), 0);
	*at = (union cm_addr){ .in = *(struct sockaddr_in *)rdma_get_local_addr(id) };
	return id;
}

/* The caller's connection is armed before the engine can accept it. */
static void call_a_cm_listener_as_a_stranger(void)
{
	struct rdma_event_channel *channel;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct cm_claim claim = { 0 };
	union cm_addr at;
	struct rdma_cm_id *id = listen_by_cm(&at);
	int len;

	claim.port = ntohs(at.in.sin_port);
	strcpy(claim.addr, "127.0.0.1");
	len = cm_claim_name(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "tcp", &claim);
	attack.sender = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	attack.is_stranger = true;
	attack.is_armed = true;
	/* Not connect(), after which TSan does not know that the engine may send. */
	assert_int_equal(syscall(SYS_connect, attack.sender, &addr,
				 offsetof(struct sockaddr_un, sun_path) + 1 + len),
			 0);
	close(call_engine()); /* the listener's turn has come before */
	while (recv(attack.sender, &len, sizeof(len), 0) > 0)
		;
	end_attack();
	channel = id->channel;
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* Another user has bound the name of a port. */
static void call_a_squatted_port(void)
{
	union cm_addr at = { .in = { .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				     .sin_port = htons(7) } };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct cm_claim claim = { .port = 7, .addr = "127.0.0.1" };
	int len = cm_claim_name(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "tcp", &claim);

	attack.squatted = squat(&addr, offsetof(struct sockaddr_un, sun_path) + 1 + len);
	assert_true(attack.squatted >= 0);
	attack.is_stranger = true;
	attack.is_armed = true;
	assert_int_equal(cm_port_open(RDMA_PS_TCP, &at), -ECONNREFUSED);
	end_attack();
}

static int pair_up_old(void **state)
{
	is_old_kernel = true;
	return pair_up(state);
}

static int pair_down_old(void **state)
{
	is_old_kernel = false;
	return pair_down(state);
}

/* The engine serves all connections of the process, and accepts new ones. */
static void test_the_engine_goes_on(void **state)
{
	long start_ms = slow_socket_now_ms();
	struct sockaddr_un addr;
	socklen_t len = shared_address(nic.slot, &addr);
	struct puppet_pair *pair = *state;
	struct test_wr w;
	int i, fd;

	for (i = 0; i < 4; i++) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd, (struct sockaddr *)&addr, len), 0);
		slow_socket_send(fd);
		close(fd);
	}
	name_a_squatted_slot();
	call_a_cm_listener_as_a_stranger();
	call_a_squatted_port();
	close(call_engine());
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
}

static void wait_until_closed(int fd)
{
	while (fcntl(fd, F_GETFD) >= 0)
		usleep(1000);
}

static void test_a_descriptor_without_a_thread_waits_for_one(void **state)
{
	int pipes[2];

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	has_no_thread = true;
	passed_fd_close(pipes[0]);
	assert_true(fcntl(pipes[0], F_GETFD) >= 0);
	has_no_thread = false;
	passed_fd_close(pipes[1]);
	wait_until_closed(pipes[0]);
	wait_until_closed(pipes[1]);
}

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* Gives a thread a pipe whose close() waits for the test. */
static void stall(void)
{
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	close(pipes[1]);
	is_stalled[pipes[0]] = true;
	passed_fd_close(pipes[0]);
	while (!is_waiting[pipes[0]])
		usleep(1000);
}

static bool pass_a_pipe(int to, int from)
{
	int pipes[2];
	char byte;
	bool taken;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	close(pipes[1]);
	assert_true(slow_socket_pass(to, pipes[0]));
	close(pipes[0]);
	taken = passed_fd_recv(from, &byte, 1, MSG_DONTWAIT) == 1;
	if (!taken)
		assert_int_equal(errno, EMFILE);
	return taken;
}

/* At the bound, descriptors stay in flight, and nothing waits, leaks or grows. */
static void test_stalled_threads_and_waiting_descriptors_are_few(void **state)
{
	const int nr_fds = entries("/proc/self/fd");
	unsigned int before = nr_threads;
	int i, one[2], other[2], taken = 0;
	long start_ms = slow_socket_now_ms();
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, one), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, other), 0);
	for (i = 0; i < CLOSER_THREADS_MAX; i++)
		stall();
	while (taken < CLOSER_FULL && pass_a_pipe(one[0], one[1]))
		taken++;
	usleep(CLOSER_STALLED_MS * 1000);
	assert_int_equal(taken, CLOSER_FULL);
	assert_false(pass_a_pipe(one[0], one[1]));
	assert_true(nr_threads <= before + CLOSER_THREADS_MAX);
	assert_true(passed_fd_is_full());
	assert_int_equal(send(other[0], "m", 1, 0), 1);
	assert_int_equal(passed_fd_recv(other[1], &byte, 1, 0), 1);
	assert_int_equal(passed_fd_accept(other[1], 0), -1);
	assert_int_equal(errno, EMFILE);
	passed_fd_close_socket(one[1]); /* with a pipe in its queue */
	for (i = 0; i < 1024; i++)
		is_stalled[i] = is_waiting[i] = false;
	close(one[0]);
	close(other[0]);
	passed_fd_close_socket(other[1]);
	while (entries("/proc/self/fd") > nr_fds)
		usleep(1000);
	assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
}

/* As many as the threads of closer.h, which then have no thread for the pipes. */
static void test_slow_sockets_hold_up_no_connection(void **state)
{
	enum { SLOW = CLOSER_THREADS_MAX, PIPES = CLOSER_FULL + 64 };
	const int nr_fds = entries("/proc/self/fd");
	long start_ms = slow_socket_now_ms();
	int i, pair[2], pipes[2];
	char byte;

	(void)state;
	for (i = 0; i < 2 * SLOW; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
		assert_true(i % 2 ? send_nested(pair[0]) : slow_socket_send(pair[0]));
		if (i < SLOW)
			assert_int_equal(passed_fd_recv(pair[1], &byte, 1, 0), 1);
		passed_fd_close_socket(pair[1]);
		close(pair[0]);
	}
	for (i = 0; i < PIPES; i++) {
		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		close(pipes[1]);
		passed_fd_close(pipes[0]);
	}
	/* Each slow socket leaves its listener, and the first one the connection of leaver.c. */
	while (entries("/proc/self/fd") > nr_fds + 2 * SLOW + 1) {
		assert_true(slow_socket_now_ms() - start_ms < SLOW_WAIT_MS);
		usleep(1000);
	}
	assert_false(passed_fd_is_full());
}

/* So closing it asks no file system. */
static void test_a_descriptor_gets_no_number_where_none_is_due(void **state)
{
	const int nr_fds = entries("/proc/self/fd");
	int pair[2], pipes[2];
	struct shm_msg m;
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_true(slow_socket_pass(pair[0], pipes[1]));
	close(pipes[1]);
	is_stalled[pipes[1]] = true; /* a receiver would use this number */
	assert_int_equal(shm_msg_receive(pair[1], &m, NULL), -EPROTO);
	passed_fd_close_socket(pair[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 0);
	assert_false(is_waiting[pipes[1]]);
	is_stalled[pipes[1]] = false;
	close(pipes[0]);
	close(pair[0]);
	while (entries("/proc/self/fd") > nr_fds + 1) /* the keeper's connection */
		usleep(1000);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		/* First, because a puppet that inherits a slow socket waits for it in exec(). */
		cmocka_unit_test_setup_teardown(test_the_engine_goes_on, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(test_the_engine_goes_on, pair_up_old,
						pair_down_old),
		cmocka_unit_test(test_a_descriptor_without_a_thread_waits_for_one),
		cmocka_unit_test(test_slow_sockets_hold_up_no_connection),
		cmocka_unit_test(test_a_descriptor_gets_no_number_where_none_is_due),
		cmocka_unit_test(test_stalled_threads_and_waiting_descriptors_are_few),
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
