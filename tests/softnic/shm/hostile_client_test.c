// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic hostile client; devices: softnic; timeout: 120 */
/*
 * Hostile processes call softnic: they impersonate others, pass wrong descriptors, and send
 * malformed messages. Softnic closes their connections, and all other traffic goes on.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "wrong_fd.h"
#include "softnic/verbs/nic.h"
#include "softnic/control/option.h"
#include "softnic/control/warning.h"
#include "softnic/loop/loop.h"
#include "fd/passed_fd.h"
#include "tests/support/silent_slot.h"
#include "tests/support/verbs_puppet.h"

/* Any process of this user can do so. */
static int call(uint32_t slot)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct timeval patience = { PATIENCE_MS / 1000, 0 };
	struct sockaddr_un addr;
	socklen_t len = shared_address(slot, &addr);

	assert_int_equal(connect(fd, (struct sockaddr *)&addr, len), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* Ask for a queue pair under the name of slot @from. Return: the errno of the answer. */
static int ask_from(uint32_t slot, uint32_t qpn, uint32_t from)
{
	struct shm_msg hello = { .type = MSG_HELLO, .value = slot }, m;
	struct shm_msg ask = { .type = MSG_ASK_QP, .qpn = qpn, .from = from };
	int fd = call(nic.slot);

	assert_int_equal(shm_msg_send(fd, &hello, NULL, 0), 0);
	assert_int_equal(read(fd, &m, sizeof(m)), sizeof(m));
	assert_int_equal(m.type, MSG_WELCOME);
	assert_int_equal(shm_msg_send(fd, &ask, NULL, 0), 0);
	assert_int_equal(read(fd, &m, sizeof(m)), sizeof(m));
	assert_int_equal(m.type, MSG_QP);
	close(fd);
	return m.value;
}

static void test_an_impostor_gets_no_queue_pair(void **state)
{
	struct puppet_pair *pair = *state;
	uint32_t ours = pair->e.qp->qp_num, theirs = pair->p.name.qpn;

	if (getenv("TEST_PID_NAMESPACES"))
		skip(); /* the kernel does not tell the two apart there */
	assert_int_equal(ask_from(theirs >> SOFTNIC_QP_INDEX_BITS, ours, theirs), EPERM);
	assert_int_equal(ask_from(nic.slot, ours, theirs), EPERM);
	assert_int_equal(ask_from(0, ours, theirs), EPERM);
	assert_int_equal(ask_from(nic.slot, ours, nic.slot << SOFTNIC_QP_INDEX_BITS), EPERM);
}

/* Ask. Return: the number of descriptors in the answer, none of them of procfs. */
static int ask(int fd, const struct shm_msg *question, struct shm_msg *answer)
{
	struct pollfd p = { fd, POLLIN, 0 };
	int fds[SHM_MSG_FDS_MAX], n = 0;

	assert_int_equal(shm_msg_send(fd, question, NULL, 0), 0);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(shm_msg_receive(fd, answer, fds), 0);
	for (; n < SHM_MSG_FDS_MAX && fds[n] >= 0; n++)
		assert_false(passed_fd_is_procfs(fds[n]));
	shm_msg_close_fds(fds);
	return n;
}

/* The client gives a true name, but no queue pair is connected to the client. */
static void test_without_a_queue_pair_a_peer_reaches_no_memory(void **state)
{
	struct puppet_pair *pair = *state;
	const struct shm_msg hello = { .type = MSG_HELLO }, nonsense = {
		.type = MSG_SET_FAULT,
		.qpn = UINT32_MAX,
	};
	struct shm_msg m = hello, file = { .type = MSG_ASK_FILE };
	int memory = sealed_file(4096), fd = call(nic.slot), listening;
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	struct ibv_mr *mr = ibv_reg_mr(pair->e.pd, map, 4096, ALL_ACCESS);
	uint32_t slot;

	assert_non_null(mr);
	file.value = nic.pub->mrs[mr->handle].file;
	listening = claim_slot(&slot);
	assert_true(listening >= 0);
	m.value = slot;
	assert_int_equal(ask(fd, &m, &m), 2);
	assert_int_equal(m.type, MSG_WELCOME);
	m = (struct shm_msg){
		.type = MSG_ASK_QP,
		.qpn = pair->e.qp->qp_num,
		.from = slot << SOFTNIC_QP_INDEX_BITS,
	};
	assert_int_equal(ask(fd, &m, &m), 0);
	assert_int_equal(m.value, EPERM);
	assert_int_equal(shm_msg_send(fd, &file, NULL, 0), 0);
	assert_int_equal(ask(fd, &nonsense, &m), 0);
	assert_int_equal(m.type, MSG_FAULT_SET); /* the file did not come first */
	close(fd);
	close(listening);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(map, 4096);
	close(memory);
}

/* The client locks each file given to a client without a queue pair. */
static void test_a_peer_without_a_queue_pair_holds_no_atomics_up(void **state)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 0 };
	struct puppet_pair *pair = *state;
	struct shm_msg m = { .type = MSG_HELLO };
	struct pollfd p = { call(pair->p.name.qpn >> SOFTNIC_QP_INDEX_BITS), POLLIN, 0 };
	int fds[SHM_MSG_FDS_MAX], held[SHM_MSG_FDS_MAX], listening, i;
	char path[32];
	struct test_wr w;
	uint32_t slot;

	listening = claim_slot(&slot);
	assert_true(listening >= 0);
	m.value = slot;
	assert_int_equal(shm_msg_send(p.fd, &m, NULL, 0), 0);
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(shm_msg_receive(p.fd, &m, fds), 0);
	assert_true(fds[1] >= 0);
	for (i = 0; i < SHM_MSG_FDS_MAX; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		held[i] = fds[i] < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
		assert_true(held[i] < 0 || !fcntl(held[i], F_OFD_SETLK, &all));
	}
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0),
	      IBV_WC_SUCCESS);
	for (i = 0; i < SHM_MSG_FDS_MAX; i++)
		close(held[i]);
	shm_msg_close_fds(fds);
	close(p.fd);
	close(listening);
}

/* Return: an exit status: 0 refused, 1 not refused. */
static int have_the_device_go(uint32_t slot)
{
	const struct shm_msg gone = { .type = MSG_SET_FAULT, .qpn = OPTION_DEVICE_GONE_AFTER };
	struct shm_msg m = { 0 };
	int fd = call(slot);

	if (shm_msg_send(fd, &gone, NULL, 0) || read(fd, &m, sizeof(m)) != sizeof(m))
		return 1;
	return m.type == MSG_FAULT_SET && m.value == EPERM ? 0 : 1;
}

/* Without permission to kill the test, a process may not remove the test's device either. */
static void test_from_another_pid_namespace_nothing_is_made_to_fail(void **state)
{
	struct puppet_pair *pair = *state;
	struct ibv_port_attr port;
	uint32_t slot = nic.slot; /* children forget it */
	pid_t child = fork();
	int status;

	if (!child) {
		/* another user would not find this process */
		if (geteuid() || unshare(CLONE_NEWPID))
			_exit(77);
		child = fork();
		if (!child)
			_exit(have_the_device_go(slot));
		waitpid(child, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
	assert_int_equal(ibv_query_port(pair->e.ctx, 1, &port), 0);
}

enum { SILENT = 400, BORNE = 256 };

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* The first silent callers are dropped; every new caller is heard. */
static void test_a_silent_client_takes_few_descriptors(void **state)
{
	const struct shm_msg nonsense = { .type = MSG_SET_FAULT, .qpn = UINT32_MAX };
	struct shm_msg m;
	int fds[SILENT], i, before = descriptors();

	(void)state;
	for (i = 0; i < SILENT; i++)
		fds[i] = call(nic.slot);
	assert_int_equal(ask(fds[SILENT - 1], &nonsense, &m), 0);
	assert_int_equal(m.type, MSG_FAULT_SET);
	for (i = 0; i < SILENT - BORNE; i++)
		assert_int_equal(read(fds[i], &m, sizeof(m)), 0);
	/* includes the pair's own descriptors */
	assert_true(descriptors() - before <= SILENT + BORNE + 64);
	for (i = 0; i < SILENT; i++)
		close(fds[i]);
}

enum { KINDS = 5 };

/*
 * Report how many calls were closed. The caller must be killed, because it holds stuck
 * descriptors.
 */
static void call_with_odd_descriptors(uint32_t slot, int report)
{
	static const enum wrong_fd_kind kinds[KINDS] = { PIPE, DIRECTORY, PATH_ONLY, EVENTS,
							 STUCK };
	const struct shm_msg hello = { .type = MSG_HELLO };
	int i, odd, fd;
	char n = 0, byte;

	for (i = 0; i < KINDS; i++) {
		odd = odd_file_open(kinds[i], -1);
		fd = call(slot);
		/* Not every host permits the mount, and Linux 6.16 lets no descriptor pass. */
		if (odd < 0 || shm_msg_send(fd, &hello, &odd, 1))
			shutdown(fd, SHUT_WR);
		n += read(fd, &byte, 1) == 0;
	}
	(void)!write(report, &n, 1);
	pause();
}

static void test_a_question_that_brings_descriptors_ends_the_call(void **state)
{
	struct puppet_pair *pair = *state;
	uint32_t slot = nic.slot;
	struct test_wr w;
	int fds[2];
	pid_t pid;
	char n;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		call_with_odd_descriptors(slot, fds[1]);
	}
	assert_int_equal(read(fds[0], &n, 1), 1);
	assert_int_equal(n, KINDS);
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
}

/*
 * The longest message is a byte too long. A malformed message ends the call, an unknown one
 * does not.
 */
static void test_words_that_are_no_message_end_the_call(void **state)
{
	union {
		struct shm_msg m;
		char bytes[sizeof(struct shm_msg) + 1];
	} words = { .m = { .magic = SHARED_MAGIC, .version = SHARED_VERSION, .type = 77 } };
	struct puppet_pair *pair = *state;
	struct shm_msg m;
	struct test_wr w;
	size_t n;
	int fd;

	for (n = 1; n <= sizeof(words); n++) {
		fd = call(nic.slot);
		assert_int_equal(send(fd, &words, n, 0), n);
		m = (struct shm_msg){ .type = MSG_HELLO };
		if (n == sizeof(words.m))
			assert_int_equal(shm_msg_send(fd, &m, NULL, 0), 0);
		assert_int_equal(read(fd, &m, sizeof(m)), n == sizeof(words.m) ? sizeof(m) : 0);
		close(fd);
	}
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
}

/* Send a message to a gate. Return: whether softnic then hears the next message of the call. */
static bool is_heard_after(uint64_t says, size_t brings)
{
	struct shm_msg hello = { .type = MSG_HELLO }, answer;
	static struct {
		struct shm_msg m;
		char bytes[SHM_MSG_BYTES_MAX + 1];
	} words;
	int fd = call(nic.slot);
	bool is_heard;

	words.m = (struct shm_msg){ SHARED_MAGIC, SHARED_VERSION, MSG_GATE_SEND, .value = says };
	assert_int_equal(send(fd, &words, sizeof(words.m) + brings, 0), sizeof(words.m) + brings);
	(void)!shm_msg_send(fd, &hello, NULL, 0);
	is_heard = read(fd, &answer, sizeof(answer)) == sizeof(answer);
	close(fd);
	return is_heard;
}

static void test_a_message_of_wrong_length_ends_the_call(void **state)
{
	enum { MAX = SHM_MSG_BYTES_MAX };
	static const struct {
		uint64_t says;
		size_t brings;
		bool is_heard;
	} cases[] = {
		{ 0, 0, true },
		{ 1, 1, true },
		{ MAX, MAX, true },
		{ 0, 1, false },
		{ 1, 0, false },
		{ 2, 1, false },
		{ MAX, 0, false },
		{ MAX, MAX - 1, false },
		{ MAX, MAX + 1, false },
		{ MAX + 1, 0, false },
		{ MAX + 1, MAX, false },
		{ MAX + 1, MAX + 1, false },
		{ 4 * MAX, 0, false },
		{ 1ull << 32, 0, false },
		{ (1ull << 32) + 1, 1, false },
		{ UINT64_MAX, 0, false },
		{ 0 - sizeof(struct shm_msg), 0, false },
	};
	struct puppet_pair *pair = *state;
	struct test_wr w;
	int failed = 0;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (is_heard_after(cases[i].says, cases[i].brings) != cases[i].is_heard)
			failed++, print_error("%#llx bytes said, %zu brought\n",
					      (unsigned long long)cases[i].says, cases[i].brings);
	assert_int_equal(failed, 0);
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
}

/* The client sees only the end of the call. */
static void test_a_client_of_another_version_is_named(void **state)
{
	struct shm_msg m = { .magic = SHARED_MAGIC, .version = SHARED_VERSION - 1 };
	int said = memfd_create("stderr", MFD_CLOEXEC), old = dup(STDERR_FILENO);
	char text[256] = "";
	int fd;

	(void)state;
	assert_true(said >= 0 && old >= 0);
	fd = call(nic.slot);
	assert_int_equal(dup2(said, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(read(fd, &m, sizeof(m)), 0);
	dup2(old, STDERR_FILENO);
	assert_true(pread(said, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "another version of softnic: use the same version"));
	close(fd);
	close(old);
	close(said);
}

/* Return: the lines of the file @said that have the words @with. */
static unsigned int count_lines(int said, const char *with)
{
	unsigned int count = 0;
	char line[256];
	FILE *text = fdopen(dup(said), "r");

	assert_non_null(text);
	rewind(text);
	while (fgets(line, sizeof(line), text))
		count += strstr(line, with) != NULL;
	fclose(text);
	return count;
}

/* A caller needs no key and no slot to be told of. */
static void test_refused_callers_write_few_lines(void **state)
{
	enum { CALLS = 3 * WARNING_LINES_MAX };
	uint64_t begin_ns = softnic_loop_now_ns(), periods;
	int said = memfd_create("stderr", MFD_CLOEXEC), old = dup(STDERR_FILENO), fd, i;
	struct shm_msg m;

	(void)state;
	assert_true(said >= 0 && old >= 0);
	assert_int_equal(dup2(said, STDERR_FILENO), STDERR_FILENO);
	for (i = 0; i < CALLS; i++) {
		m = (struct shm_msg){ .magic = SHARED_MAGIC, .version = SHARED_VERSION + 1 };
		fd = call(nic.slot);
		assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
		assert_int_equal(read(fd, &m, sizeof(m)), 0);
		close(fd);
	}
	dup2(old, STDERR_FILENO);
	periods = 2 + (softnic_loop_now_ns() - begin_ns) / WARNING_PERIOD_NS;
	/* A fast machine has at most two periods. */
	assert_true(count_lines(said, "another version") <= periods * WARNING_LINES_MAX);
	close(old);
	close(said);
}

static void test_the_next_line_tells_how_many_were_suppressed(void **state)
{
	int said = memfd_create("stderr", MFD_CLOEXEC), old = dup(STDERR_FILENO), i;
	struct warning_limit limit = { 0 };

	(void)state;
	assert_true(said >= 0 && old >= 0);
	assert_int_equal(dup2(said, STDERR_FILENO), STDERR_FILENO);
	for (i = 0; i < WARNING_LINES_MAX + 7; i++) {
		warning_write(&limit, "line %d", i);
		if (!i)
			limit.since_ns += 1000 * WARNING_PERIOD_NS; /* on a slow machine, too */
	}
	limit.since_ns = 0;
	warning_write(&limit, "line %d", i);
	dup2(old, STDERR_FILENO);
	assert_int_equal(count_lines(said, "softnic: line "), WARNING_LINES_MAX + 1);
	assert_int_equal(count_lines(said, "softnic: suppressed lines=7\n"), 1);
	close(old);
	close(said);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test_setup_teardown(test_an_impostor_gets_no_queue_pair, pair_up,
						pair_down),
		cmocka_unit_test_setup_teardown(test_without_a_queue_pair_a_peer_reaches_no_memory,
						pair_up, pair_down),
		cmocka_unit_test_setup_teardown(
			test_a_peer_without_a_queue_pair_holds_no_atomics_up, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(
			test_from_another_pid_namespace_nothing_is_made_to_fail, pair_up,
			pair_down),
		cmocka_unit_test_setup_teardown(test_a_silent_client_takes_few_descriptors, pair_up,
						pair_down),
		cmocka_unit_test_setup_teardown(
			test_a_question_that_brings_descriptors_ends_the_call, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(test_words_that_are_no_message_end_the_call,
						pair_up, pair_down),
		cmocka_unit_test_setup_teardown(test_a_message_of_wrong_length_ends_the_call,
						pair_up, pair_down),
		cmocka_unit_test_setup_teardown(test_a_client_of_another_version_is_named, pair_up,
						pair_down),
		cmocka_unit_test_setup_teardown(test_refused_callers_write_few_lines, pair_up,
						pair_down),
		cmocka_unit_test(test_the_next_line_tells_how_many_were_suppressed),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
