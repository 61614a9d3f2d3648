// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic rogue tracer; devices: softnic; timeout: 60 */
/*
 * A process asks another, under a true name, for a queue pair that is connected to it, and for one
 * that takes everybody's datagrams. The first is a way to the other's memory only if the kernel
 * would let the process attach. The second is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "fd/passed_fd.h"
#include "softnic/shm/tracer.h"
#include "softnic/verbs/nic.h"
#include "tests/support/silent_slot.h"
#include "tests/support/verbs_puppet.h"
#include "wrong_fd.h"

enum { SECRET = 0x5ec2e7, HAS_QP = 1, READS = 2, WRITES = 4, ATTACHES = 8, HAS_FILE = 16 };
enum { CANNOT = 77, THEIR_INDEX = 5 };

static uint64_t secret = SECRET;

/* Facts that the rogue must know; children of a fork forget the device. */
struct target {
	uint32_t slot, qpn, file;
	pid_t pid;
	uint32_t rogue_slot; /* to which @listening is bound */
	int listening; /* -1: any slot will do */
};

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return ok;
}

static bool enter_user_namespace(void)
{
	char map[64];

	snprintf(map, sizeof(map), "%u %u 1", geteuid(), geteuid());
	return !unshare(CLONE_NEWUSER) && write_file("/proc/self/uid_map", map);
}

static bool enter_pid_namespace(void)
{
	pid_t child;
	int status;

	if (unshare(CLONE_NEWPID))
		return false;
	child = fork();
	if (!child)
		return true;
	waitpid(child, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static bool drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	return !geteuid() && !syscall(SYS_capset, &head, none) && !prctl(PR_SET_DUMPABLE, 1);
}

static bool change_group(void)
{
	return !geteuid() && !setresgid(65534, 65534, 65534) && !prctl(PR_SET_DUMPABLE, 1) &&
	       drop_capabilities();
}

/* The kernel lets a process of a Landlock domain trace processes of that domain only. */
static bool enter_landlock_domain(void)
{
	struct landlock_ruleset_attr rules = { .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE };
	int fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);

	return fd >= 0 && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_landlock_restrict_self, fd, 0);
}

static bool stay(void)
{
	return true;
}

/* Return: false if the other side ended the connection or does not answer. */
static bool exchange(int fd, struct shm_msg *m, int *fds)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return !shm_msg_send(fd, m, NULL, 0) && poll(&p, 1, PATIENCE_MS) == 1 &&
	       !shm_msg_receive(fd, m, fds);
}

static int try_memory(int fd)
{
	uint64_t found = 0;
	int got = 0;

	if (pread(fd, &found, sizeof(found), (uintptr_t)&secret) == sizeof(found))
		got |= found == SECRET ? READS : 0;
	if (pwrite(fd, &found, sizeof(found), (uintptr_t)&secret) == sizeof(found))
		got |= WRITES;
	return got;
}

/* By both ways that the kernel has. */
static int try_attach(pid_t pid)
{
	uint64_t found = 0;
	struct iovec here = { &found, sizeof(found) }, there = { &secret, sizeof(secret) };
	bool attaches = process_vm_readv(pid, &here, 1, &there, 1, 0) > 0;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	attaches |= fd >= 0;
	close(fd);
	return attaches ? ATTACHES : 0;
}

/* To the kernel, a socket that listens belongs to the process that has called listen() last. */
static bool take_slot_of(const struct target *t, uint32_t *slot)
{
	*slot = t->rogue_slot;
	return t->listening < 0 ? claim_slot(slot) >= 0 : !listen(t->listening, 64);
}

/* Return: an exit status of the rogue. */
static int attack(const struct target *t)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds[SHM_MSG_FDS_MAX], i, got;
	struct sockaddr_un addr;
	socklen_t len = shared_address(t->slot, &addr);
	struct shm_msg m = { .type = MSG_HELLO };
	uint32_t slot;

	if (!take_slot_of(t, &slot) || connect(fd, (struct sockaddr *)&addr, len))
		return 0;
	m.value = slot;
	if (!exchange(fd, &m, fds))
		return 0;
	m = (struct shm_msg){ .type = MSG_ASK_QP, .qpn = t->qpn };
	m.from = slot << SOFTNIC_QP_INDEX_BITS | THEIR_INDEX;
	if (!exchange(fd, &m, fds))
		return 0;
	got = (m.value ? 0 : HAS_QP) | try_attach(t->pid);
	for (i = 0; i < SHM_MSG_FDS_MAX; i++)
		if (fds[i] >= 0 && passed_fd_is_procfs(fds[i]))
			got |= try_memory(fds[i]);
	m = (struct shm_msg){ .type = MSG_ASK_FILE, .value = t->file };
	shm_msg_send(fd, &m, NULL, 0);
	m = (struct shm_msg){ .type = MSG_SET_FAULT, .qpn = UINT32_MAX };
	if (exchange(fd, &m, fds) && m.type == MSG_FILE)
		got |= HAS_FILE;
	return got;
}

/* Return: what the rogue got, or CANNOT. */
static int send_rogue(const struct target *t, bool (*change)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		_exit(change() ? attack(t) : CANNOT);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Connected to the queue pair that the next rogue will name as its own. */
static struct ibv_qp *open_to_rogue(struct endpoint *e, struct target *t)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->qp->send_cq,
		.recv_cq = e->qp->recv_cq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.ah_attr = { .port_num = 1 },
	};

	t->listening = claim_slot(&t->rogue_slot);
	assert_true(qp && t->listening >= 0);
	t->qpn = qp->qp_num;
	attr.dest_qp_num = t->rogue_slot << SOFTNIC_QP_INDEX_BITS | THEIR_INDEX;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC),
			 0);
	return qp;
}

/* A datagram queue pair: from RTR on it takes datagrams of every process of the user. */
static struct ibv_qp *open_to_all(struct endpoint *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->qp->send_cq,
		.recv_cq = e->qp->recv_cq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_QKEY),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	return qp;
}

static void test_only_permitted_processes_get_memory(void **state)
{
	/* Without Yama, a process opens the memory itself, and the kernel decides. */
	const int passed = tracer_yama_scope() ? READS | WRITES : 0;
	const struct {
		const char *name;
		bool (*change)(void);
		int gets; /* of the connected queue pair */
	} cases[] = {
		{ "an ordinary process of the user", stay, HAS_QP | HAS_FILE | passed },
		{ "a process in a Landlock domain", enter_landlock_domain,
		  HAS_QP | HAS_FILE | passed },
		{ "root without capabilities", drop_capabilities, HAS_QP },
		{ "root of another group, without capabilities", change_group, HAS_QP },
		{ "a process in a user namespace of its own", enter_user_namespace, HAS_QP },
		{ "a process in a PID namespace of its own", enter_pid_namespace, HAS_QP },
	};
	struct puppet_pair *pair = *state;
	struct ibv_qp *to_all = open_to_all(&pair->e), *qp;
	int memory = sealed_file(4096), got, failed = 0;
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	struct ibv_mr *mr = ibv_reg_mr(pair->e.pd, map, 4096, ALL_ACCESS);
	struct target t = { .slot = nic.slot, .pid = getpid() };
	size_t i;

	assert_non_null(mr);
	t.file = nic.pub->mrs[mr->handle].file;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		t.qpn = to_all->qp_num;
		t.listening = -1;
		got = send_rogue(&t, cases[i].change);
		if (got != CANNOT && (got & ~ATTACHES) != HAS_QP)
			failed++, print_error("%s got %d for datagrams\n", cases[i].name, got);
		qp = open_to_rogue(&pair->e, &t);
		got = send_rogue(&t, cases[i].change);
		close(t.listening);
		if (got != CANNOT && (got & ~ATTACHES) != cases[i].gets)
			failed++, print_error("%s got %d\n", cases[i].name, got);
		if (got != CANNOT && (got & ATTACHES) && cases[i].change == enter_landlock_domain)
			failed++, print_error("%s attaches\n", cases[i].name);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	assert_int_equal(failed, 0);
	assert_int_equal(ibv_destroy_qp(to_all), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(map, 4096);
	close(memory);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(test_only_permitted_processes_get_memory, pair_up,
						pair_down),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
