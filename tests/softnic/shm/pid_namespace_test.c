// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic pid namespace; devices: softnic; timeout: 60 */
/*
 * The puppet has a PID namespace of its own, where the processes outside have no number. Another
 * process outside says that it has this test's slot. The puppet does not believe it, and serves
 * the connected queue pair as before.
 */
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "softnic/shm/shared.h"
#include "softnic/verbs/nic.h"
#include "tests/support/verbs_puppet.h"

enum { PIDFS = 0x50494446 }; /* linux/magic.h */

/* Since Linux 6.9. */
static bool kernel_tells_processes_apart(void)
{
	int fd = syscall(SYS_pidfd_open, getpid(), 0);
	struct statfs fs;
	bool tells = fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == PIDFS;

	close(fd);
	return tells;
}

/* Return: the descriptors with which the puppet welcomes a process that claims @slot. */
static int claim(uint32_t puppet, uint32_t slot)
{
	const struct shm_msg hello = { .type = MSG_HELLO, .value = slot };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds[SHM_MSG_FDS_MAX], i, n = 0;
	struct pollfd p = { fd, POLLIN, 0 };
	struct sockaddr_un addr;
	socklen_t len = shared_address(puppet, &addr);
	struct shm_msg m;

	if (connect(fd, (struct sockaddr *)&addr, len) || shm_msg_send(fd, &hello, NULL, 0) ||
	    poll(&p, 1, PATIENCE_MS) != 1 || shm_msg_receive(fd, &m, fds))
		return 99;
	for (i = 0; i < SHM_MSG_FDS_MAX; i++)
		n += fds[i] >= 0;
	return n;
}

static void test_nobody_takes_a_slot_from_outside(void **state)
{
	struct puppet_pair *pair = *state;
	struct test_wr w;
	pid_t thief;
	int status;

	if (!kernel_tells_processes_apart())
		skip();
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	thief = fork();
	if (!thief)
		_exit(claim(pair->p.name.qpn >> SOFTNIC_QP_INDEX_BITS,
			    pair->e.qp->qp_num >> SOFTNIC_QP_INDEX_BITS));
	assert_int_equal(waitpid(thief, &status, 0), thief);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1); /* the table of regions; no doorbells */
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	assert_int_equal(tell(&pair->p, ORDER_WRITE_ONCE, 0, 0, 0).result, 0);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(test_nobody_takes_a_slot_from_outside, pair_up,
						pair_down),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	setenv("TEST_PID_NAMESPACES", "1", 1);
	setenv("WEIR_SOFTNIC", "trust_user=1", 1);
	return test_main(argc, argv, tests);
}
