/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tax DONOR [KEYFILE] - cost of the library before a lone request reaches the device
 *
 * Counts instructions and system calls by single steps, from the call to the driver's post
 * function, for each way to submit: a write, a write short enough for inline data, and a read; and
 * for comparison a work request filled in by hand. A blocking write of unregistered memory is also
 * counted as a whole: from the call to the return, without the driver's functions, and with the
 * number of atomic instructions. One thread, nothing else in flight, all objects set up before the
 * call. The device is the route to DONOR; without an RDMA device run `weir run -- tax DONOR`. Exits
 * with 77 where ptrace is not allowed.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#define BYTES 4096
#define ROUNDS 64 /* only the last is counted, with warm caches and free lists */
#define RUNS 4
#define SYSCALL 0x050f /* the instruction, as a little-endian number */
#define LOCK_PREFIX 0xf0
#define XCHG 0x86 /* and 0x87; with memory: locked without a prefix */
#define REX 0x40 /* of 0x40 to 0x4f: prefixes of an instruction */
#define SKIP 77

static int (*driver_post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int (*driver_poll)(struct ibv_cq *cq, int count, struct ibv_wc *wcs);
static bool is_whole, is_refused;
static _Thread_local bool is_counted; /* the session's own thread is not traced */

/* Signals begin and end to the counting process. Earlier stores are complete. */
static inline void mark(void)
{
	if (is_counted)
		__asm__ volatile("int3" ::: "memory");
}

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int rc;

	mark();
	if (!is_whole)
		is_counted = false; /* more may be posted before the request is done */
	rc = is_refused ? ENOMEM : driver_post(qp, wr, bad);
	if (is_whole)
		mark();
	return rc;
}

static int poll(struct ibv_cq *cq, int count, struct ibv_wc *wcs)
{
	int rc;

	if (!is_whole)
		return driver_poll(cq, count, wcs);
	mark();
	rc = driver_poll(cq, count, wcs);
	mark();
	return rc;
}

static void done(void *arg, int status)
{
	*(int *)arg = status;
}

static void die(const char *what, int status)
{
	fprintf(stderr, "tax: %s: %s\n", what, strerror(-status));
	exit(1);
}

/* Everything set up for the measured post. */
struct tax_stage {
	struct weir_session *session;
	struct weir_region *region;
	struct weir_memory *memory;
	struct weir_queue *queue;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *bytes;
	struct weir_iov iov;
	struct weir_completion called, queued;
	struct weir_transfer transfer;
	const struct tax_kind *kind;
	int status;
};

/* A kind of request. */
struct tax_kind {
	const char *name;
	enum weir_direction direction;
	size_t bytes;
	int (*submit)(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		      unsigned int iovcnt, const struct weir_completion *completion,
		      struct weir_request **request);
	int (*perform)(struct weir_region *region, uint64_t offset, const struct weir_iov *iov,
		       unsigned int iovcnt);
};

static const struct tax_kind kinds[] = {
	{ "write 4096", WEIR_WRITE, BYTES, weir_write_async, weir_writev },
	{ "write 64", WEIR_WRITE, 64, weir_write_async, weir_writev },
	{ "read 4096", WEIR_READ, BYTES, weir_read_async, weir_readv },
};

/* The arguments of the calls. */
static void stage_fill(struct tax_stage *s)
{
	s->iov = (struct weir_iov){ s->bytes, s->kind->bytes, s->memory };
	s->called = (struct weir_completion){ .done = done, .arg = &s->status };
	s->queued = (struct weir_completion){ .queue = s->queue };
	s->transfer = (struct weir_transfer){
		.direction = s->kind->direction,
		.region = s->region,
		.iov = &s->iov,
		.iovcnt = 1,
		.completion = s->called,
	};
}

static void stage_open(struct tax_stage *s, const char *donor, const char *key_file)
{
	struct weir_session_options options = { .size = sizeof(options), .no_thread = !is_whole };
	struct weir_error error = { "" };
	struct weir_key *key = NULL;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	int rc = key_file ? weir_key_load(key_file, &key, &error) : 0;

	options.key = key;
	if (!rc)
		rc = weir_session_open(donor, &options, &s->session, &error);
	if (rc)
		die(error.text, rc);
	rc = weir_region_create(s->session, NULL, BYTES, 0, &s->region, &error);
	if (rc)
		die(error.text, rc);
	s->bytes = aligned_alloc(BYTES, BYTES);
	rc = weir_memory_register(s->session, s->bytes, BYTES, &s->memory, &error);
	if (rc)
		die(error.text, rc);
	weir_session_verbs(s->session, 0, &pd, &cq, &s->qp);
	s->mr = ibv_reg_mr(pd, s->bytes, BYTES, IBV_ACCESS_LOCAL_WRITE);
	driver_post = s->qp->context->ops.post_send;
	s->qp->context->ops.post_send = post;
	driver_poll = s->qp->context->ops.poll_cq;
	s->qp->context->ops.poll_cq = poll;
	rc = weir_queue_create(&s->queue);
	if (rc)
		die("a queue", rc);
	stage_fill(s);
}

static void await_call(struct tax_stage *s)
{
	while (s->status == -EINPROGRESS)
		weir_session_process(s->session);
}

static void callback(struct tax_stage *s)
{
	const struct tax_kind *kind = s->kind;

	s->status = -EINPROGRESS;
	mark();
	kind->submit(s->region, 0, &s->iov, 1, &s->called, NULL);
	await_call(s);
}

static void queue(struct tax_stage *s)
{
	const struct tax_kind *kind = s->kind;
	struct weir_event event;

	mark();
	kind->submit(s->region, 0, &s->iov, 1, &s->queued, NULL);
	while (!weir_queue_poll(s->queue, &event, 1))
		weir_session_process(s->session);
	s->status = event.status;
}

static void blocking(struct tax_stage *s)
{
	const struct tax_kind *kind = s->kind;

	mark();
	s->status = kind->perform(s->region, 0, &s->iov, 1);
}

static void one_of_several(struct tax_stage *s)
{
	s->status = -EINPROGRESS;
	mark();
	weir_transfer_async(&s->transfer, 1, NULL);
	await_call(s);
}

/* As the first example. */
static void copied(struct tax_stage *s)
{
	mark();
	s->status = weir_write(s->region, 0, s->bytes, s->kind->bytes);
	mark();
}

/* Refused by the driver stub, so that the session sees no foreign completion. */
static void by_hand(struct tax_stage *s)
{
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;

	mark();
	memset(&wr, 0, sizeof(wr));
	sge.addr = (uintptr_t)s->bytes;
	sge.length = BYTES;
	sge.lkey = s->mr->lkey;
	wr.wr_id = 1;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = IBV_SEND_SIGNALED;
	is_refused = true;
	ibv_post_send(s->qp, &wr, &bad);
	is_refused = false;
	s->status = 0;
}

static void child_run(const char *donor, const char *key_file, const struct tax_kind *kind,
		      void (*request)(struct tax_stage *s))
{
	struct tax_stage s = { .kind = kind };
	int i;

	is_whole = request == copied;
	stage_open(&s, donor, key_file);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) {
		fprintf(stderr, "tax: this process may not be traced: %s\n", strerror(errno));
		exit(SKIP);
	}
	raise(SIGSTOP);
	for (i = 0; i < ROUNDS; i++) {
		is_counted = i == ROUNDS - 1;
		request(&s);
		if (s.status)
			die(kind->name, s.status);
	}
	is_counted = false;
	weir_session_close(s.session);
	weir_queue_destroy(s.queue);
	exit(0);
}

struct count {
	unsigned long instructions, system_calls, atomics;
	bool is_whole; /* counts a repeated string instruction once */
	unsigned long long last; /* address of the last instruction */
};

enum stop { STOP_STEP, STOP_MARK, STOP_ENDED };

/* Continues the child. */
static enum stop go_on(pid_t child, int how)
{
	siginfo_t info;
	int status;

	if (ptrace(how, child, NULL, NULL)) {
		fprintf(stderr, "tax: single steps are not available: %s\n", strerror(errno));
		kill(child, SIGKILL);
		exit(SKIP);
	}
	waitpid(child, &status, 0);
	if (!WIFSTOPPED(status))
		return STOP_ENDED;
	ptrace(PTRACE_GETSIGINFO, child, NULL, &info);
	return WSTOPSIG(status) == SIGTRAP && info.si_code == SI_KERNEL ? STOP_MARK : STOP_STEP;
}

static bool is_atomic(const unsigned char *code)
{
	while ((*code & 0xf0) == REX || *code == 0x66)
		code++;
	return *code == LOCK_PREFIX || ((*code & ~1) == XCHG && code[1] < 0xc0);
}

static void count_step(struct count *c, pid_t child)
{
	struct user_regs_struct regs;
	unsigned long code;

	ptrace(PTRACE_GETREGS, child, NULL, &regs);
	if (c->is_whole && regs.rip == c->last)
		return;
	c->last = regs.rip;
	code = (unsigned long)ptrace(PTRACE_PEEKTEXT, child, (void *)regs.rip, NULL);
	c->system_calls += (code & 0xffff) == SYSCALL;
	c->atomics += is_atomic((const unsigned char *)&code);
	c->instructions++;
}

/* Counts from the mark that the child has reached to the next. */
static void count_to_mark(struct count *c, pid_t child)
{
	enum stop stop;

	do {
		count_step(c, child);
		stop = go_on(child, PTRACE_SINGLESTEP);
	} while (stop == STOP_STEP);
	if (stop == STOP_ENDED) {
		fprintf(stderr, "tax: the request ended before it was posted\n");
		exit(1);
	}
}

static enum stop run_to_mark(pid_t child)
{
	enum stop stop;

	do
		stop = go_on(child, PTRACE_CONT);
	while (stop == STOP_STEP);
	return stop;
}

static struct count count_once(const char *donor, const char *key_file,
			       const struct tax_kind *kind, void (*request)(struct tax_stage *s))
{
	struct count c = { .is_whole = request == copied };
	int status;
	pid_t child = fork();

	if (!child)
		child_run(donor, key_file, kind, request);
	waitpid(child, &status, 0);
	if (!WIFSTOPPED(status))
		/* the child has printed the reason */
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	while (run_to_mark(child) == STOP_MARK)
		count_to_mark(&c, child);
	return c;
}

/* One request in 64 is timed, and reads the clock. So the cheapest of some runs counts. */
static struct count count(const char *donor, const char *key_file, const struct tax_kind *kind,
			  void (*request)(struct tax_stage *s))
{
	struct count least = count_once(donor, key_file, kind, request);
	int i;

	for (i = 1; i < RUNS; i++) {
		struct count c = count_once(donor, key_file, kind, request);

		if (c.instructions < least.instructions)
			least = c;
	}
	return least;
}

static const struct tax_way {
	const char *name;
	void (*request)(struct tax_stage *s);
} ways[] = {
	{ "a callback", callback },
	{ "a queue", queue },
	{ "waited for", blocking },
	{ "weir_transfer_async(), one", one_of_several },
};

#define NR(table) (sizeof(table) / sizeof((table)[0]))

static void print_count(const char *kind, const char *way, const struct count *c, long tax)
{
	printf("%-10s %-28s %12lu %12ld %14lu\n", kind, way, c->instructions, tax, c->system_calls);
	fflush(stdout); /* before fork, or the next child writes it, too */
}

int main(int argc, char **argv)
{
	const char *key_file = argc > 2 ? argv[2] : NULL;
	struct count hand, whole;
	size_t i;

	if (argc < 2) {
		fprintf(stderr, "Usage: tax DONOR [KEYFILE]\n");
		return 2;
	}
	printf("%-39s %12s %12s %14s\n", "to the driver's post", "instructions", "tax",
	       "system calls");
	fflush(stdout);
	hand = count(argv[1], key_file, &kinds[0], by_hand);
	print_count(kinds[0].name, "by hand", &hand, 0);
	for (i = 0; i < NR(kinds) * NR(ways); i++) {
		const struct tax_kind *kind = &kinds[i / NR(ways)];
		const struct tax_way *way = &ways[i % NR(ways)];
		struct count c = count(argv[1], key_file, kind, way->request);

		print_count(kind->name, way->name, &c, (long)(c.instructions - hand.instructions));
	}
	whole = count(argv[1], key_file, &kinds[0], copied);
	printf("\n%-39s %12s %12s %14s\n", "to the return, without the driver", "instructions",
	       "atomic", "system calls");
	printf("%-10s %-28s %12lu %12lu %14lu\n", kinds[0].name, "copied, waited for",
	       whole.instructions, whole.atomics, whole.system_calls);
	return 0;
}
