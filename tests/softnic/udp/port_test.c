// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic wire port; devices: softnic; timeout: 120 */
/*
 * Datagrams of other hosts, while processes that share port 4791 with the receiver come and go.
 *
 * The other processes run this program in a role:
 *
 *	receive N	prints a queue pair number, and ends well if N datagrams arrive, each once
 *	bystand		joins port 4791, prints a line, and ends at the end of input
 *	foreign		sends to a receiver as another RoCE device, in a network namespace
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/support/datagram_pair.h"
#include "softnic/roce/packet.h"
#include "softnic/udp/udp.h"

enum {
	ROUNDS = 5,
	BYSTANDERS = 4,
	EACH = 50, /* datagrams of a round */
	ALL = ROUNDS * EACH,
	ROOM = 128, /* of a receive */
	FLOWS = 25, /* of the foreign device */
	NOT_HERE = 77,
};

extern char **environ;

struct actor {
	pid_t pid;
	int in;
	FILE *out;
};

static struct actor start(const char *role, int number)
{
	char text[16];
	char *argv[] = { "port_test", (char *)role, text, NULL };
	posix_spawn_file_actions_t actions;
	struct actor a;
	int in[2], out[2];

	snprintf(text, sizeof(text), "%d", number);
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	assert_int_equal(posix_spawn(&a.pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	a.in = in[1];
	a.out = fdopen(out[0], "r");
	return a;
}

static uint32_t read_number(const struct actor *a)
{
	char line[32] = "";

	assert_non_null(fgets(line, sizeof(line), a->out));
	return strtoul(line, NULL, 10);
}

/* Returns the status with which the actor has ended. */
static int end(struct actor *a)
{
	int status;

	close(a->in);
	fclose(a->out);
	assert_int_equal(waitpid(a->pid, &status, 0), a->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void open_datagrams(struct endpoint *base, struct endpoint *e, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { QUEUE_DEPTH, depth, 1, 1, 0 },
	};

	end_open(base, ALL_ACCESS);
	*e = *base;
	e->shares = true;
	e->channel = ibv_create_comp_channel(e->ctx);
	e->cq = ibv_create_cq(e->ctx, QUEUE_DEPTH + depth, e, e->channel, 0);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	assert_non_null(e->qp);
	to_init(e);
	to_ready(e, 0);
}

static int receive(uint32_t number)
{
	static struct endpoint base, e; /* until the end of the process, as in bystand() */
	bool seen[ALL] = { false };
	uint32_t i, which;
	struct ibv_wc wc;

	assert_true(number <= ALL);
	open_datagrams(&base, &e, number);
	for (i = 0; i < number; i++)
		assert_int_equal(post_recv(&e, i, (uint64_t)i * ROOM, ROOM), 0);
	printf("%u\n", e.qp->qp_num);
	fflush(stdout);
	for (i = 0; i < number; i++) {
		wc = wait_wc(&e);
		memcpy(&which, e.buf + wc.wr_id * ROOM + GRH, sizeof(which));
		if (wc.status || which >= number || seen[which])
			return 1;
		seen[which] = true;
	}
	return 0;
}

static int bystand(void)
{
	static struct endpoint base, e;
	char byte;

	open_datagrams(&base, &e, 1);
	puts("0");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	exit(0);
}

/* They take nothing from port 4791, but hold what the kernel gives them. */
static void start_stopped(struct actor *bystanders)
{
	int i;

	for (i = 0; i < BYSTANDERS; i++)
		bystanders[i] = start("bystand", 0);
	for (i = 0; i < BYSTANDERS; i++) {
		read_number(&bystanders[i]);
		kill(bystanders[i].pid, SIGSTOP);
	}
}

static void a_killed_process_takes_no_datagram_along(void **state)
{
	struct actor bystanders[BYSTANDERS], receiver;
	struct endpoint base, e;
	struct test_wr w;
	struct ibv_ah *ah;
	uint32_t qpn, i;

	(void)state;
	receiver = start("receive", ALL);
	qpn = read_number(&receiver);
	open_datagrams(&base, &e, 1);
	ah = make_ah(&e, own_address());
	assert_non_null(ah);
	for (i = 0; i < ALL; i++) {
		if (i % EACH == 0)
			start_stopped(bystanders);
		memcpy(e.buf, &i, sizeof(i));
		wr_make(&w, &e, IBV_WR_SEND, 0, sizeof(i), 0);
		w.wr.wr.ud.ah = ah;
		w.wr.wr.ud.remote_qpn = qpn;
		w.wr.wr.ud.remote_qkey = QKEY;
		do_wr(&e, &w, IBV_WC_SUCCESS);
		if (i % EACH != EACH - 1)
			continue;
		for (int each = 0; each < BYSTANDERS; each++) {
			kill(bystanders[each].pid, SIGKILL);
			end(&bystanders[each]);
		}
	}
	assert_int_equal(end(&receiver), 0);
	ibv_destroy_ah(ah);
	end_close(&e);
	end_close(&base);
}

/* Flows of a device that hears port 4791 only, from ports that no softnic has. */
static void send_foreign(const int *flows, uint32_t qpn, uint32_t number)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) },
		.sin_port = htons(UDP_ROCE_PORT),
	};
	const struct roce_packet p = {
		.opcode = ROCE_UD | ROCE_SEND_ONLY,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = qpn,
		.src_qpn = 17,
		.qkey = QKEY,
		.payload_bytes = sizeof(number),
	};
	uint8_t bytes[64] = { 0 };
	size_t size = roce_packet_encode(&p, bytes);

	memcpy(bytes + size, &number, sizeof(number));
	size += sizeof(number) + ROCE_ICRC_BYTES;
	assert_int_equal(sendto(flows[number % FLOWS], bytes, size, 0,
				(const struct sockaddr *)&to, sizeof(to)),
			 size);
}

/* Returns false if this machine gives no network. */
static bool enter_network(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd;

	if (unshare(CLONE_NEWNET | (geteuid() ? CLONE_NEWUSER : 0)))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	return true;
}

static int send_as_foreign_device(void)
{
	struct actor bystanders[BYSTANDERS], receiver;
	int flows[FLOWS];
	uint32_t qpn, i;

	if (!enter_network())
		return NOT_HERE;
	for (i = 0; i < FLOWS; i++)
		flows[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	receiver = start("receive", ALL);
	qpn = read_number(&receiver);
	for (i = 0; i < ALL; i++) {
		if (i % EACH == 0)
			start_stopped(bystanders);
		send_foreign(flows, qpn, i);
		if (i % EACH != EACH - 1)
			continue;
		for (int each = 0; each < BYSTANDERS; each++) {
			close(bystanders[each].in);
			bystanders[each].in = -1;
			kill(bystanders[each].pid, SIGCONT);
		}
		for (int each = 0; each < BYSTANDERS; each++)
			if (end(&bystanders[each]))
				return 1;
	}
	return end(&receiver);
}

static void a_process_that_exits_passes_on_what_it_holds(void **state)
{
	struct actor foreign = start("foreign", 0);
	int status = end(&foreign);

	(void)state;
	if (status == NOT_HERE)
		skip();
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_process_takes_no_datagram_along),
		cmocka_unit_test(a_process_that_exits_passes_on_what_it_holds),
	};

	setenv("WEIR_SOFTNIC", "near=0", 1);
	if (argc < 2)
		return cmocka_run_group_tests(tests, NULL, NULL);
	return !strcmp(argv[1], "receive") ? receive(atoi(argv[2])) :
	       !strcmp(argv[1], "bystand") ? bystand() :
					     send_as_foreign_device();
}
