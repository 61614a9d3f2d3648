// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Processes that speak softnic's language and mean ill: they stop half way, pass descriptors
 * of anything, and pass for others. Each may break its own connection; nobody waits for ever,
 * and the traffic of others goes on.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "softnic/cq.h"
#include "softnic/nic.h"
#include "softnic/qp.h"
#include "stuck_file.h"
#include "verbs_harness.h"

/* What is passed where a descriptor is due. */
enum kind {
	GOOD, NOTHING, PIPE, DIRECTORY, PATH_ONLY, EVENTS, UNSEALED, SHORT, STUCK, OF_CALLER,
};

enum step { NEVER, AT_HELLO, AT_QUESTION };

struct act {
	const char *name;
	enum kind pub, bell, mem, qp;
	enum step ends, mumbles;	/* answers nothing; answers with eight bytes */
	bool is_early;			/* answers a question that nobody asked */
	uint32_t guards, arrivals, rq_size, cq;	/* wrong, if not 0 */
	enum ibv_wc_status status;	/* how a write to it ends */
};

#define BROKEN .status = IBV_WC_RETRY_EXC_ERR

static const struct act acts[] = {
	{ "does all as it should" },
	{ "ends before it greets", .ends = AT_HELLO, BROKEN },
	{ "greets with half a message", .mumbles = AT_HELLO, BROKEN },
	{ "answers before it is asked", .is_early = true, BROKEN },
	{ "greets with nothing in its hands", .pub = NOTHING, BROKEN },
	{ "passes a pipe for its table", .pub = PIPE, BROKEN },
	{ "passes a directory for its table", .pub = DIRECTORY, BROKEN },
	{ "passes a path for its table", .pub = PATH_ONLY, BROKEN },
	{ "passes a table that can shrink", .pub = UNSEALED, BROKEN },
	{ "passes a table that is too short", .pub = SHORT, BROKEN },
	{ "passes a stuck file for its table", .pub = STUCK, BROKEN },
	{ "passes a bell that can shrink", .bell = UNSEALED, BROKEN },
	{ "passes a bell that is too short", .bell = SHORT, BROKEN },
	{ "passes a stuck file for its bell", .bell = STUCK, BROKEN },
	{ "passes no memory", .mem = NOTHING },
	{ "passes a pipe for its memory", .mem = PIPE },
	{ "passes a path for its memory", .mem = PATH_ONLY },
	{ "passes an eventfd for its memory", .mem = EVENTS },
	{ "passes a stuck file for its memory", .mem = STUCK },
	{ "passes our memory for its own", .mem = OF_CALLER },
	{ "ends when it is asked", .ends = AT_QUESTION, BROKEN },
	{ "answers with half a message", .mumbles = AT_QUESTION, BROKEN },
	{ "answers with nothing", .qp = NOTHING, BROKEN },
	{ "answers with a pipe", .qp = PIPE, BROKEN },
	{ "answers with a queue pair that can shrink", .qp = UNSEALED, BROKEN },
	{ "answers with a queue pair that is too short", .qp = SHORT, BROKEN },
	{ "answers with a stuck file", .qp = STUCK, BROKEN },
	{ "has more guards than fit", .guards = SHARED_GUARDS_MAX, BROKEN },
	{ "has far too many guards", .guards = UINT32_MAX, BROKEN },
	{ "has more arrivals than fit", .arrivals = SHARED_WRS_MAX, BROKEN },
	{ "has arrivals that are no ring", .arrivals = 3, BROKEN },
	{ "has more receives than fit", .rq_size = SHARED_WRS_MAX, BROKEN },
	{ "has receives that are no ring", .rq_size = UINT32_MAX, BROKEN },
	{ "names a completion queue that cannot be", .cq = UINT32_MAX, BROKEN },
};

enum { ACTS = sizeof(acts) / sizeof(acts[0]), KEY = 1 << 16 | 1 };

struct fake {
	pid_t pid;
	struct name name;
};

/* The same place in every fake, and in us, for they are our children. */
static struct {
	uint64_t nonce, written;
} memory = { .nonce = 0x6d656d6f7279 };

static int open_pipe(void)
{
	int fds[2];

	return pipe2(fds, O_CLOEXEC) ? -1 : fds[0];
}

static int memfd(size_t size, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, size) || fcntl(fd, F_ADD_SEALS, seals))
		_exit(1);
	return fd;
}

static int open_kind(enum kind kind, int good)
{
	char path[32];

	switch (kind) {
	case GOOD:
		return good;
	case PIPE:
		return open_pipe();
	case DIRECTORY:
		return open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case PATH_ONLY:
		return open("/proc/self/mem", O_PATH | O_CLOEXEC);
	case EVENTS:
		return eventfd(0, EFD_CLOEXEC);
	case UNSEALED:
		return memfd(1 << 26, F_SEAL_GROW);
	case SHORT:
		return memfd(32, F_SEAL_SHRINK);
	case STUCK:
		return stuck_file_open();
	case OF_CALLER:
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
		return open(path, O_RDWR | O_CLOEXEC);
	default:
		return -1;
	}
}

static int create_pub(void)
{
	struct shared_pub *pub;
	void *map;
	int fd;

	if (shared_create("hostile-pub", sizeof(*pub), true, &fd, &map))
		_exit(1);
	pub = map;
	pub->mrs[KEY >> 16] = (struct shared_mr){
		.key = KEY,
		.access = ALL_ACCESS,
		.addr = (uintptr_t)&memory,
		.iova = (uintptr_t)&memory,
		.length = sizeof(memory),
	};
	if (shared_life_begin(&pub->life))
		_exit(1);
	return fd;
}

static int create_memory(size_t size)
{
	void *map;
	int fd;

	if (shared_create("hostile", size, false, &fd, &map))
		_exit(1);
	return fd;
}

static int create_qp(const struct act *act, const struct message *m)
{
	enum { GUARDS = 8 };
	size_t size = sizeof(struct shared_qp) + GUARDS * sizeof(struct shared_guard) +
		      arrivals_bytes(0) + rq_bytes(0, 0);
	struct shared_qp *qp;
	struct shared_rq *rq;
	void *map;
	int fd;

	if (shared_create("hostile-qp", size, false, &fd, &map))
		_exit(1);
	qp = map;
	*qp = (struct shared_qp){
		.magic = SHARED_MAGIC,
		.version = SHARED_VERSION,
		.state = SHARED_QP_READY,
		.dest_qpn = m->from,
		.access = ALL_ACCESS,
		.recv_cq = act->cq,
		.arrivals = act->arrivals,
		.guards = act->guards ? act->guards : GUARDS,
		.type = IBV_QPT_RC,
	};
	rq = (void *)(qp->rest + GUARDS * sizeof(struct shared_guard) + arrivals_bytes(0));
	rq->magic = SHARED_MAGIC;
	rq->version = SHARED_VERSION;
	rq->size = act->rq_size;
	return fd;
}

/* Descriptors up to the first that is missing. */
static void send_with(int fd, const struct message *m, const int *fds, int num)
{
	int n;

	for (n = 0; n < num && fds[n] >= 0; n++)
		;
	message_send(fd, m, fds, n);
}

static void greet(int fd, const struct act *act, const struct message *asked)
{
	struct message m = {
		.type = act->is_early ? MSG_QP : MSG_WELCOME,
		.qpn = asked->qpn,
		.value = memory.nonce,
		.addr = (uintptr_t)&memory.nonce,
	};
	int fds[] = {
		open_kind(act->pub, create_pub()),
		open_kind(act->bell, create_memory(sizeof(struct shared_bell))),
		open_kind(act->mem, open("/proc/self/mem", O_RDWR | O_CLOEXEC)),
	};

	send_with(fd, &m, fds, 3);
}

static void give_qp(int fd, const struct act *act, const struct message *asked)
{
	struct message m = {
		.type = MSG_QP, .qpn = asked->qpn, .from = asked->from, .addr = asked->addr,
	};
	int qp = open_kind(act->qp, create_qp(act, asked));

	send_with(fd, &m, &qp, 1);
}

static void obey(int fd, const struct act *act, const struct message *m)
{
	enum step step = m->type == MSG_HELLO ? AT_HELLO : AT_QUESTION;

	if (act->ends == step)
		_exit(0);
	if (act->mumbles == step)
		(void)!write(fd, m, 8);
	else if (m->type == MSG_HELLO)
		greet(fd, act, m);
	else if (m->type == MSG_ASK_QP)
		give_qp(fd, act, m);
}

static bool *curtain;	/* is up: shared with the fakes, which begin then */

/* In turn whoever connects. */
static void play(int listening, const struct act *act)
{
	struct message m;
	int fd;

	while (!load_acquire(curtain))
		usleep(1000);
	for (;;) {
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		while (read(fd, &m, sizeof(m)) == sizeof(m))
			obey(fd, act, &m);
		close(fd);
	}
}

static int claim_slot(uint32_t *slot)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;
	socklen_t len;

	for (*slot = 1; *slot < SOFTNIC_SLOTS; ++*slot) {
		len = shared_address(*slot, &addr);
		if (!bind(fd, (struct sockaddr *)&addr, len) && !listen(fd, 64))
			return fd;
	}
	_exit(1);
}

static void fake_start(struct fake *f, const struct act *act)
{
	int fds[2], listening;
	uint32_t slot;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (!f->pid) {
		setpgid(0, 0);	/* with the file system it may start */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
		listening = claim_slot(&slot);
		if (write(fds[1], &slot, sizeof(slot)) == sizeof(slot))
			play(listening, act);
		_exit(1);
	}
	assert_int_equal(read(fds[0], &slot, sizeof(slot)), sizeof(slot));
	f->name = (struct name){ slot << SOFTNIC_QP_INDEX_BITS, KEY, (uintptr_t)&memory };
	close(fds[0]);
	close(fds[1]);
}

static void write_to(struct end *e)
{
	struct wr w;

	wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, offsetof(typeof(memory), written));
	assert_int_equal(post(e, &w), 0);
}

/* All at once, as those that say nothing take their time. */
static void test_whoever_answers_wrongly_breaks_its_own_connection(void **state)
{
	const struct manners hasty = { .min_rnr_timer = 1, .rnr_retry = 7, .timeout = 1 };
	static struct fake fakes[ACTS];
	static struct end ends[ACTS];
	struct pair *pair;
	struct wr w;
	int i;

	curtain = mmap(NULL, sizeof(*curtain), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(curtain != MAP_FAILED);
	for (i = 0; i < ACTS; i++)
		fake_start(&fakes[i], &acts[i]);
	pair_up(state);
	pair = *state;
	memset(pair->e.buf, 0xa5, 4096);
	for (i = 0; i < ACTS; i++) {
		end_open_sharing(&ends[i], &pair->e);
		end_connect(&ends[i], &fakes[i].name, &hasty);
		write_to(&ends[i]);
	}
	store_release(curtain, true);
	for (i = 0; i < ACTS; i++) {
		enum ibv_wc_status status = wait_wc(&ends[i]).status;

		if (status != acts[i].status)
			fail_msg("one that %s: status %d", acts[i].name, status);
		do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 4096, 0),
		      IBV_WC_SUCCESS);
	}
	assert_int_equal(memory.written, 0);
	assert_int_equal(tell(&pair->p, ORDER_PEEK, 4088, 0, 0).value, 0xa5a5a5a5a5a5a5a5);
	for (i = 0; i < ACTS; i++) {
		end_close(&ends[i]);
		kill(-fakes[i].pid, SIGKILL);
		waitpid(fakes[i].pid, NULL, 0);
	}
	munmap(curtain, sizeof(*curtain));
	pair_down(state);
}

/* As any process of this user can. */
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

/* How the question for a queue pair is answered to who says that it has a slot: an errno. */
static int ask_from(uint32_t slot, uint32_t qpn, uint32_t from)
{
	struct message hello = { .type = MSG_HELLO, .value = slot }, m;
	struct message ask = { .type = MSG_ASK_QP, .qpn = qpn, .from = from };
	int fd = call(nic.slot);

	assert_int_equal(message_send(fd, &hello, NULL, 0), 0);
	assert_int_equal(read(fd, &m, sizeof(m)), sizeof(m));
	assert_int_equal(m.type, MSG_WELCOME);
	assert_int_equal(message_send(fd, &ask, NULL, 0), 0);
	assert_int_equal(read(fd, &m, sizeof(m)), sizeof(m));
	assert_int_equal(m.type, MSG_QP);
	close(fd);
	return m.value;
}

static void test_who_passes_for_another_gets_no_queue_pair(void **state)
{
	struct pair *pair = *state;
	uint32_t ours = pair->e.qp->qp_num, theirs = pair->p.name.qpn;

	if (getenv("TEST_PID_NAMESPACES"))
		skip();		/* there the kernel does not know them apart */
	assert_int_equal(ask_from(theirs >> SOFTNIC_QP_INDEX_BITS, ours, theirs), EPERM);
	assert_int_equal(ask_from(nic.slot, ours, theirs), EPERM);
	assert_int_equal(ask_from(0, ours, theirs), EPERM);
	assert_int_equal(ask_from(nic.slot, ours, nic.slot << SOFTNIC_QP_INDEX_BITS), EPERM);
}

enum { KINDS = 5 };

/* Says how many times it was shown the door. It holds what is stuck, so it must be killed. */
static void call_with_odd_descriptors(uint32_t slot, int report)
{
	static const enum kind kinds[KINDS] = { PIPE, DIRECTORY, PATH_ONLY, EVENTS, STUCK };
	const struct message hello = { .type = MSG_HELLO };
	int i, odd, fd;
	char n = 0, byte;

	for (i = 0; i < KINDS; i++) {
		odd = open_kind(kinds[i], -1);
		fd = call(slot);
		if (odd < 0)	/* nothing may be mounted here */
			shutdown(fd, SHUT_WR);
		else
			message_send(fd, &hello, &odd, 1);
		n += read(fd, &byte, 1) == 0;
	}
	(void)!write(report, &n, 1);
	pause();
}

static void test_a_question_that_brings_descriptors_ends_the_call(void **state)
{
	struct pair *pair = *state;
	uint32_t slot = nic.slot;
	struct wr w;
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

/* The longest is a byte over; what is no message ends the call, what means nothing does not. */
static void test_words_that_are_no_message_end_the_call(void **state)
{
	union {
		struct message m;
		char bytes[sizeof(struct message) + 1];
	} words = { .m = { .magic = SHARED_MAGIC, .version = SHARED_VERSION, .type = 77 } };
	struct pair *pair = *state;
	struct message m;
	struct wr w;
	size_t n;
	int fd;

	for (n = 1; n <= sizeof(words); n++) {
		fd = call(nic.slot);
		assert_int_equal(send(fd, &words, n, 0), n);
		m = (struct message){ .type = MSG_HELLO };
		if (n == sizeof(words.m))
			assert_int_equal(message_send(fd, &m, NULL, 0), 0);
		assert_int_equal(read(fd, &m, sizeof(m)), n == sizeof(words.m) ? sizeof(m) : 0);
		close(fd);
	}
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_whoever_answers_wrongly_breaks_its_own_connection),
		cmocka_unit_test_setup_teardown(test_who_passes_for_another_gets_no_queue_pair,
						pair_up, pair_down),
		cmocka_unit_test_setup_teardown(
			test_a_question_that_brings_descriptors_ends_the_call, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(test_words_that_are_no_message_end_the_call,
						pair_up, pair_down),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
