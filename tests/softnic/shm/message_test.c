// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic message; devices: softnic */
/* Messages between the processes of a host: a stranger's messages cost no descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "fd/passed_fd.h"
#include "softnic/shm/shared.h"

enum { FDS_SENT_MAX = 8, FDS_LOOKED_AT = 256 };

static bool is_stranger; /* the other end of each socket */

/* Takes the place of the C library's function, also for the code under test. */
int getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	int rc = (int)syscall(SYS_getsockopt, fd, level, option, value, length);

	if (!rc && level == SOL_SOCKET && option == SO_PEERCRED && is_stranger)
		((struct ucred *)value)->uid++;
	return rc;
}

static int num_open(void)
{
	int n = 0;

	for (int fd = 0; fd < FDS_LOOKED_AT; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Threads close the descriptors, and one of their own after a while. */
static bool comes_to(int open)
{
	int i;

	for (i = 0; i < 5000 && num_open() > open; i++)
		usleep(1000);
	return num_open() <= open;
}

static void send_bytes(int fd, const void *bytes, size_t length, int num_fds)
{
	union {
		char buf[CMSG_SPACE(FDS_SENT_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)bytes, length };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(num_fds * sizeof(int)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
	for (int i = 0; i < num_fds; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	assert_int_equal(sendmsg(fd, &msg, 0), length);
}

static const struct shm_msg hello = {
	.magic = SHARED_MAGIC,
	.version = SHARED_VERSION,
	.type = MSG_HELLO,
};

static const struct shm_msg later = {
	.magic = SHARED_MAGIC,
	.version = SHARED_VERSION + 1,
	.type = MSG_HELLO,
};

/* The first message with a descriptor starts the thread of fd/leaver.h, which has a socket here. */
static int start_leaver(void **state)
{
	int pair[2], fds[SHM_MSG_FDS_MAX];
	struct shm_msg m;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	send_bytes(pair[0], &hello, sizeof(hello), 1);
	assert_int_equal(shm_msg_receive(pair[1], &m, fds), 0);
	shm_msg_close_fds(fds);
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void a_refused_connection_leaves_no_descriptor(void **state)
{
	static const struct {
		const char *name;
		const void *bytes;
		size_t length;
		int num_fds, status;
	} cases[] = {
		{ "nothing, with a descriptor", "", 0, 1, -EPIPE },
		{ "a message too short", &hello, 8, 3, -EPROTO },
		{ "no message", "0123456789012345678901234567890123456789", 40, 2, -EPROTO },
		{ "not of this version", &later, sizeof(later), 2, -EPROTONOSUPPORT },
		{ "as short as a version", &later, 8, 2, -EPROTONOSUPPORT },
		{ "one descriptor over", &hello, sizeof(hello), SHM_MSG_FDS_MAX + 1, -EMFILE },
		{ "far too many descriptors", &hello, sizeof(hello), FDS_SENT_MAX, -EMFILE },
	};
	int pair[2], fds[SHM_MSG_FDS_MAX], before;
	struct shm_msg m;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	/* The first socket to close this way makes a descriptor of softnic, for all later ones. */
	passed_fd_close(socket(AF_UNIX, SOCK_SEQPACKET, 0));
	before = num_open();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		send_bytes(pair[0], cases[i].bytes, cases[i].length, cases[i].num_fds);
		if (shm_msg_receive(pair[1], &m, fds) != cases[i].status || !comes_to(before))
			fail_msg("%s", cases[i].name);
	}
	close(pair[0]);
	close(pair[1]);
}

static void as_many_descriptors_as_there_may_be_arrive(void **state)
{
	int pair[2], fds[SHM_MSG_FDS_MAX], before;
	struct shm_msg m;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	before = num_open();
	send_bytes(pair[0], &hello, sizeof(hello), SHM_MSG_FDS_MAX);
	assert_int_equal(shm_msg_receive(pair[1], &m, fds), 0);
	assert_int_equal(num_open(), before + SHM_MSG_FDS_MAX);
	shm_msg_close_fds(fds);
	assert_true(comes_to(before));
	close(pair[0]);
	close(pair[1]);
}

static void a_process_of_another_user_is_not_ours(void **state)
{
	int pair[2];
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_true(shared_is_ours(pair[0], &pid));
	assert_int_equal(pid, getpid());
	is_stranger = true;
	assert_false(shared_is_ours(pair[0], &pid));
	is_stranger = false;
	close(pair[0]);
	close(pair[1]);
	assert_false(shared_is_ours(-1, &pid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_connection_leaves_no_descriptor),
		cmocka_unit_test(as_many_descriptors_as_there_may_be_arrive),
		cmocka_unit_test(a_process_of_another_user_is_not_ours),
	};

	return cmocka_run_group_tests(tests, start_leaver, NULL);
}
