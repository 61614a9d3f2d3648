// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic hostile server; devices: softnic; timeout: 120 */
/*
 * Hostile processes that answer softnic: they stop half way, or pass wrong descriptors. Each
 * may break only its own connection. No process waits for ever, and other traffic goes on.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "wrong_fd.h"
#include "softnic/qp/qp.h"
#include "tests/support/silent_slot.h"
#include "tests/support/verbs_puppet.h"

enum stop_point { NEVER, AT_HELLO, AT_QUESTION };

struct server_act {
	const char *name;
	enum wrong_fd_kind pub, doorbell_page, mem, qp, wakeup;
	enum stop_point ends, mumbles; /* gives no answer; gives an answer of eight bytes */
	enum stop_point hangs_up; /* once; the second call gets an answer */
	bool always; /* hangs up every time */
	bool is_early; /* answers before any question */
	uint32_t guards, arrivals, rq_size, cq; /* wrong if not 0 */
	enum ibv_wc_status status; /* status of a write to this server */
};

#define BROKEN .status = IBV_WC_RETRY_EXC_ERR

static const struct server_act acts[] = {
	{ "does all as it should" },
	{ "hangs up when it is greeted first, as one whose slot another has now",
	  .hangs_up = AT_HELLO },
	{ "hangs up when it is asked first", .hangs_up = AT_QUESTION },
	{ "hangs up on all", .hangs_up = AT_HELLO, .always = true, BROKEN },
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
	{ "passes a doorbell_page that can shrink", .doorbell_page = UNSEALED, BROKEN },
	{ "passes a doorbell_page that is too short", .doorbell_page = SHORT, BROKEN },
	{ "passes a stuck file for its doorbell_page", .doorbell_page = STUCK, BROKEN },
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
	{ "answers without the wakeup it speaks of", .wakeup = NOTHING, BROKEN },
	{ "answers with a pipe for a wakeup", .wakeup = PIPE, BROKEN },
	{ "answers with an eventfd for a wakeup", .wakeup = EVENTS, BROKEN },
	{ "answers with a stuck file for a wakeup", .wakeup = STUCK, BROKEN },
	{ "has more guards than fit", .guards = SHARED_GUARDS_MAX, BROKEN },
	{ "has far too many guards", .guards = UINT32_MAX, BROKEN },
	{ "has more arrivals than fit", .arrivals = SHARED_WRS_MAX, BROKEN },
	{ "has arrivals that are no ring", .arrivals = 3, BROKEN },
	{ "has more receives than fit", .rq_size = SHARED_WRS_MAX, BROKEN },
	{ "has receives that are no ring", .rq_size = UINT32_MAX, BROKEN },
	{ "names a completion queue that cannot be", .cq = UINT32_MAX, BROKEN },
};

enum { ACTS = sizeof(acts) / sizeof(acts[0]), KEY = 1 << 16 | 1 };

struct fake_server {
	pid_t pid;
	struct endpoint_name name;
};

/* At the same address in every fake and in the test, because the fakes are forked. */
static struct {
	uint64_t nonce, written;
} memory = { .nonce = 0x6d656d6f7279 };

static int create_pub(void)
{
	struct shared_pub *pub;
	void *map;
	int fd;

	if (shared_create("hostile-pub", sizeof(*pub), true, &fd, &map))
		_exit(1);
	pub = map;
	pub->proof_addr = (uintptr_t)&memory.nonce;
	pub->proof = memory.nonce;
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

static int create_qp(const struct server_act *act, const struct shm_msg *m)
{
	enum { GUARDS = 8 };
	size_t size = sizeof(struct shared_qp) + GUARDS * sizeof(struct shared_guard) +
		      arrivals_bytes(0) + rq_own_bytes(0, 0) + rq_bytes(0);
	struct shared_qp *qp;
	struct shared_rq_own *rq;
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

/* Send the descriptors up to the first missing one. */
static void send_with(int fd, const struct shm_msg *m, const int *fds, int num)
{
	int n;

	for (n = 0; n < num && fds[n] >= 0; n++)
		;
	shm_msg_send(fd, m, fds, n);
}

static void greet(int fd, const struct server_act *act, const struct shm_msg *asked)
{
	struct shm_msg m = {
		.type = act->is_early ? MSG_QP : MSG_WELCOME,
		.qpn = asked->qpn,
	};
	int fds[] = {
		odd_file_open(act->pub, create_pub()),
		odd_file_open(act->doorbell_page, create_memory(sizeof(struct shared_doorbells))),
	};

	send_with(fd, &m, fds, 2);
}

static void give_qp(int fd, const struct server_act *act, const struct shm_msg *asked)
{
	struct shm_msg m = {
		.type = MSG_QP,
		.qpn = asked->qpn,
		.from = asked->from,
		.addr = asked->addr,
		.has = act->wakeup ? HAS_WAKEUP | HAS_MEMORY : HAS_MEMORY,
	};
	int fds[SHM_MSG_FDS_MAX];

	memset(fds, -1, sizeof(fds));
	fds[0] = odd_file_open(act->qp, create_qp(act, asked));
	if (act->wakeup)
		*shm_msg_fd(&m, fds, HAS_WAKEUP) = odd_file_open(act->wakeup, -1);
	*shm_msg_fd(&m, fds, HAS_MEMORY) =
		odd_file_open(act->mem, open("/proc/self/mem", O_RDWR | O_CLOEXEC));
	send_with(fd, &m, fds, SHM_MSG_FDS_MAX);
}

/* Return: false to hang up. */
static bool obey(int fd, const struct server_act *act, const struct shm_msg *m)
{
	enum stop_point step = m->type == MSG_HELLO ? AT_HELLO : AT_QUESTION;
	static bool has_hung_up;

	if (act->ends == step)
		_exit(0);
	if (act->hangs_up == step && (act->always || !has_hung_up)) {
		has_hung_up = true;
		return false;
	}
	if (act->mumbles == step)
		(void)!write(fd, m, 8);
	else if (m->type == MSG_HELLO)
		greet(fd, act, m);
	else if (m->type == MSG_ASK_QP)
		give_qp(fd, act, m);
	return true;
}

static bool *curtain; /* shared with the fakes, which begin when set */

/* Serve callers one after the other. */
static void play(int listening, const struct server_act *act)
{
	struct shm_msg m;
	int fd;

	while (!load_acquire(curtain))
		usleep(1000);
	for (;;) {
		fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		while (read(fd, &m, sizeof(m)) == sizeof(m) && obey(fd, act, &m))
			;
		close(fd);
	}
}

static void fake_start(struct fake_server *f, const struct server_act *act)
{
	int fds[2], listening;
	uint32_t slot;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (!f->pid) {
		setpgid(0, 0); /* a process group with the file system it may start */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
		listening = claim_slot(&slot);
		if (listening >= 0 && write(fds[1], &slot, sizeof(slot)) == sizeof(slot))
			play(listening, act);
		_exit(1);
	}
	assert_int_equal(read(fds[0], &slot, sizeof(slot)), sizeof(slot));
	f->name = (struct endpoint_name){ slot << SOFTNIC_QP_INDEX_BITS, KEY, (uintptr_t)&memory };
	close(fds[0]);
	close(fds[1]);
}

static void write_to(struct endpoint *e)
{
	struct test_wr w;

	wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, offsetof(typeof(memory), written));
	assert_int_equal(post(e, &w), 0);
}

/* All in parallel, because the silent fakes take long. */
static void test_a_wrong_answer_breaks_its_own_connection(void **state)
{
	const struct manners hasty = { .min_rnr_timer = 1, .rnr_retry = 7, .timeout = 1 };
	static struct fake_server fakes[ACTS];
	static struct endpoint ends[ACTS];
	struct puppet_pair *pair;
	struct test_wr w;
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
		end_connect(&ends[i], &fakes[i].name, acts[i].status ? &hasty : &plain);
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

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_a_wrong_answer_breaks_its_own_connection),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
