/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tax DONOR [KEYFILE] - what the library costs before a lone request reaches the device
 *
 * Executes one step at a time, and counts: the instructions, and the system calls among them, from
 * the call of weir_write_async() to the driver's entry for posting, and the same for a work request
 * filled in by hand. One thread, nothing else in flight. The device is whatever leads to DONOR; on a
 * machine without one run it as `weir run -- tax DONOR`.
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
#define ROUNDS 64 /* of which the last is counted: caches and free lists are warm then */
#define SYSCALL 0x050f /* the instruction, as a little-endian number */

static int (*driver_post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static bool is_counted, is_refused;

/* To whoever counts: begin, and end. */
static inline void mark(void)
{
	if (is_counted)
		__asm__ volatile("int3");
}

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	mark();
	return is_refused ? ENOMEM : driver_post(qp, wr, bad);
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

/* What is to be measured. Everything is there; only the posting is left. */
struct stage {
	struct weir_session *session;
	struct weir_region *region;
	struct weir_memory *memory;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *bytes;
};

static void stage_open(struct stage *s, const char *donor, const char *key_file)
{
	struct weir_session_options options = { .no_thread = true };
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
}

static void with_weir(struct stage *s)
{
	int status = -EINPROGRESS;
	struct weir_completion completion = { .done = done, .arg = &status };
	struct weir_iov iov = { s->bytes, BYTES, s->memory };

	mark();
	weir_write_async(s->region, 0, &iov, 1, &completion, NULL);
	while (status == -EINPROGRESS)
		weir_session_process(s->session);
	if (status)
		die("write", status);
}

/* Refused, so that the session does not find a completion that is not its own. */
static void by_hand(struct stage *s)
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
}

static void child_run(const char *donor, const char *key_file, void (*request)(struct stage *s))
{
	struct stage s;
	int i;

	stage_open(&s, donor, key_file);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		die("this process may not be traced", -errno);
	raise(SIGSTOP);
	for (i = 0; i < ROUNDS; i++) {
		is_counted = i == ROUNDS - 1;
		request(&s);
	}
	is_counted = false;
	weir_session_close(s.session);
	exit(0);
}

struct count {
	unsigned long instructions, system_calls;
};

/* Lets the child go on. Returns whether it stands at a mark; exits if it has ended. */
static bool go_on(pid_t child, int how)
{
	siginfo_t info;
	int status;

	ptrace(how, child, NULL, NULL);
	waitpid(child, &status, 0);
	if (!WIFSTOPPED(status)) {
		fprintf(stderr, "tax: the request ended before it was posted\n");
		exit(1);
	}
	ptrace(PTRACE_GETSIGINFO, child, NULL, &info);
	return WSTOPSIG(status) == SIGTRAP && info.si_code == SI_KERNEL;
}

static bool is_at_system_call(pid_t child)
{
	struct user_regs_struct regs;

	ptrace(PTRACE_GETREGS, child, NULL, &regs);
	return (ptrace(PTRACE_PEEKTEXT, child, (void *)regs.rip, NULL) & 0xffff) == SYSCALL;
}

static struct count count(const char *donor, const char *key_file,
			  void (*request)(struct stage *s))
{
	struct count c = { 0 };
	int status;
	pid_t child = fork();

	if (!child)
		child_run(donor, key_file, request);
	waitpid(child, &status, 0);
	if (!WIFSTOPPED(status))
		exit(1); /* it has said why */
	while (!go_on(child, PTRACE_CONT))
		;
	do {
		c.system_calls += is_at_system_call(child);
		c.instructions++;
	} while (!go_on(child, PTRACE_SINGLESTEP));
	ptrace(PTRACE_DETACH, child, NULL, NULL);
	waitpid(child, &status, 0);
	return c;
}

int main(int argc, char **argv)
{
	const char *key_file = argc > 2 ? argv[2] : NULL;
	struct count weir, hand;

	if (argc < 2) {
		fprintf(stderr, "Usage: tax DONOR [KEYFILE]\n");
		return 2;
	}
	weir = count(argv[1], key_file, with_weir);
	hand = count(argv[1], key_file, by_hand);
	printf("to the driver's post   instructions   system calls\n");
	printf("weir_write_async() %16lu %14lu\n", weir.instructions, weir.system_calls);
	printf("by hand            %16lu %14lu\n", hand.instructions, hand.system_calls);
	printf("tax                %16lu %14lu\n", weir.instructions - hand.instructions,
	       weir.system_calls - hand.system_calls);
	return 0;
}
