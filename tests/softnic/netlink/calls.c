// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Sockets of NETLINK_RDMA with softnic preloaded, and strangers who send there. */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { SOCKETS = 150, SENDS_MAX = 100000, FORGED = 0x66 };

static int open_socket(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_RDMA);

	assert_true(fd >= 0);
	return fd;
}

static ssize_t ask(int fd)
{
	const struct nlmsghdr m = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};

	return send(fd, &m, sizeof(m), 0);
}

/* Count the waiting messages; the last has the type *type. */
static unsigned int take(int fd, uint16_t *type)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[8192];
	const struct nlmsghdr *h = (const struct nlmsghdr *)bytes;
	unsigned int count = 0;
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), 0)) >= 0) {
		assert_true(n >= NLMSG_HDRLEN);
		assert_int_equal(h->nlmsg_len, n); /* no more than the message */
		*type = h->nlmsg_type;
		count++;
	}
	assert_int_equal(errno, EAGAIN);
	return count;
}

static void assert_answered(int fd)
{
	uint16_t type = 0;

	assert_int_equal(ask(fd), NLMSG_HDRLEN);
	assert_true(take(fd, &type) >= 2);
	assert_int_equal(type, NLMSG_DONE);
}

/* Another process sends parts of a header, and more bytes than a secret has. */
static void forge(const struct sockaddr_nl *to)
{
	uint8_t bytes[256];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
	size_t length;

	memset(bytes, FORGED, sizeof(bytes));
	for (length = 1; length <= sizeof(bytes); length++)
		sendto(fd, bytes, length, 0, (const struct sockaddr *)to, sizeof(*to));
	_exit(fd < 0);
}

static void a_stranger_is_not_heard(void **state)
{
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	socklen_t length = sizeof(own);
	int fd = open_socket(), status;
	uint16_t type;
	pid_t child;

	(void)state;
	assert_return_code(bind(fd, (struct sockaddr *)&own, sizeof(own)), errno);
	assert_return_code(getsockname(fd, (struct sockaddr *)&own, &length), errno);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		forge(&own);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(take(fd, &type), 0);
	assert_answered(fd);
	close(fd);
}

static void the_first_of_many_sockets_is_answered(void **state)
{
	int fds[SOCKETS], i;

	(void)state;
	for (i = 0; i < SOCKETS; i++)
		fds[i] = open_socket();
	for (i = 0; i < SOCKETS; i++)
		assert_answered(fds[i]);
	for (i = 0; i < SOCKETS; i++)
		close(fds[i]);
}

static void duplicates_and_children_are_answered(void **state)
{
	int fd = open_socket(), other = dup(fd), status;
	pid_t child;

	(void)state;
	close(fd);
	assert_answered(other);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(ask(other) != NLMSG_HDRLEN);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(other);
}

static void other_sockets_are_left_alone(void **state)
{
	int fd = open_socket(), pair[2];
	char byte = 0;

	(void)state;
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), errno);
	assert_int_equal(send(pair[0], "x", 1, 0), 1);
	assert_int_equal(recv(pair[1], &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	assert_int_equal(send(-1, "x", 1, 0), -1);
	assert_int_equal(errno, EBADF);
	close(pair[0]);
	close(pair[1]);
	close(fd);
}

static void a_full_buffer_is_told(void **state)
{
	int fd = open_socket(), i;
	uint16_t type;

	(void)state;
	for (i = 0; i < SENDS_MAX && ask(fd) >= 0; i++)
		;
	assert_in_range(i, 1, SENDS_MAX - 1);
	assert_int_equal(errno, ENOBUFS);
	assert_true(take(fd, &type) > 0);
	assert_answered(fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stranger_is_not_heard),
		cmocka_unit_test(the_first_of_many_sockets_is_answered),
		cmocka_unit_test(duplicates_and_children_are_answered),
		cmocka_unit_test(other_sockets_are_left_alone),
		cmocka_unit_test(a_full_buffer_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
