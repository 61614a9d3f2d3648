// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * A verbs program for two hosts: one end serves, the other sends by all transports and checks
 * each byte.
 *
 * far_program serve PORT [wait]
 * far_program rc|uc|ud|unmapped|unmapped_here|kill|idle SERVER PORT [ROUNDS]
 *
 * The ends meet over TCP, on the addresses that their queue pairs use, too. The server obeys a
 * letter and a number, and answers with 0 or what went wrong. It prints its queue pair's number,
 * waits for a line of input if told, and prints at the end how many packets softnic has refused as
 * not properly encrypted. Soft-RoCE serves, too.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "softnic/control/stat.h"

enum {
	HALF = 2 << 20, /* of the buffer: to send from, to receive into */
	DEPTH = 64,
	QKEY = 0x1234,
	GRH = 40,
	PATIENCE_S = 60,
	PAGE = 4096,
	PROCESSES = 64,
};

enum {
	ANY = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
	      IBV_ACCESS_REMOTE_ATOMIC
};

#define CHECK(condition)                                                                   \
	do {                                                                               \
		if (!(condition)) {                                                        \
			fprintf(stderr, "far_program:%d: not %s\n", __LINE__, #condition); \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

struct far_card {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t qpn, rkey, psn, type;
};

struct far_order {
	char letter;
	uint32_t value;
};

static int tcp;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static uint8_t *buffer;
static struct far_card own, peer;
static int gid_index;
static bool is_softnic;

static void put(const void *data, size_t size)
{
	CHECK(write(tcp, data, size) == (ssize_t)size);
}

static bool get(void *data, size_t size)
{
	return recv(tcp, data, size, MSG_WAITALL) == (ssize_t)size;
}

static void order(char letter, uint32_t value)
{
	const struct far_order o = { letter, value };
	int32_t answer = -1;

	put(&o, sizeof(o));
	CHECK(get(&answer, sizeof(answer)));
	if (answer)
		fprintf(stderr, "order %c %u: %d\n", letter, value, answer);
	CHECK(!answer);
}

static void fill(uint8_t *at, uint32_t size, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < size; i++)
		at[i] = (uint8_t)((i + seed) * 2654435761u >> 13);
}

static bool is_filled(const uint8_t *at, uint32_t size, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < size; i++)
		if (at[i] != (uint8_t)((i + seed) * 2654435761u >> 13))
			return false;
	return true;
}

/* Is the TCP connection's own address a GID of the device? */
static bool find_gid(void)
{
	struct sockaddr_in6 at;
	socklen_t size = sizeof(at);

	CHECK(!getsockname(tcp, (struct sockaddr *)&at, &size));
	for (gid_index = 0; gid_index < 256; gid_index++)
		if (!ibv_query_gid(context, 1, gid_index, &own.gid) &&
		    !memcmp(&own.gid, &at.sin6_addr, sizeof(own.gid)))
			return true;
	return false;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	CHECK(list);
	for (i = 0; list[i]; i++) {
		context = ibv_open_device(list[i]);
		CHECK(context);
		if (find_gid())
			break;
		ibv_close_device(context);
	}
	CHECK(list[i]);
	is_softnic = !strncmp(ibv_get_device_name(list[i]), "softnic", strlen("softnic"));
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0);
	buffer = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pd && cq && buffer != MAP_FAILED);
	mr = ibv_reg_mr(pd, buffer, 2 * HALF, ANY);
	CHECK(mr);
}

static void create_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = { DEPTH, DEPTH, 1, 1, 64 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = ANY,
	};

	qp = ibv_create_qp(pd, &init);
	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	own.addr = (uintptr_t)buffer;
	own.qpn = qp->qp_num;
	own.rkey = mr->rkey;
	own.psn = (qp->qp_num * 7 + 0xfffff0) & 0xffffff; /* wraps soon, for some */
	own.type = type;
}

static struct ibv_ah_attr path(void)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = peer.gid, .sgid_index = gid_index, .hop_limit = 64 },
	};
}

static void connect_qp(void)
{
	bool is_rc = own.type == IBV_QPT_RC, is_ud = own.type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = path(),
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.rq_psn = peer.psn,
		.sq_psn = own.psn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	CHECK(!ibv_modify_qp(
		qp, &attr,
		IBV_QP_STATE |
			(is_ud ? 0 :
				 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
			(is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN |
				     (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC :
					      0)));
	if (is_ud) {
		ah = ibv_create_ah(pd, &attr.ah_attr);
		CHECK(ah);
	}
}

static struct ibv_wc poll_one(void)
{
	time_t end = time(NULL) + PATIENCE_S;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)) && time(NULL) < end)
		usleep(20);
	CHECK(n == 1);
	return wc;
}

static void post(enum ibv_wr_opcode op, uint32_t offset, uint32_t size, uint32_t remote)
{
	struct ibv_sge sge = { (uintptr_t)buffer + offset, size, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(size),
	};

	if (own.type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = peer.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (op >= IBV_WR_ATOMIC_CMP_AND_SWP && op <= IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = peer.addr + remote;
		wr.wr.atomic.rkey = peer.rkey;
		wr.wr.atomic.compare_add = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 3 : 300;
		wr.wr.atomic.swap = 77;
	} else {
		wr.wr.rdma.remote_addr = peer.addr + remote;
		wr.wr.rdma.rkey = peer.rkey;
	}
	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void execute(enum ibv_wr_opcode op, uint32_t offset, uint32_t size, uint32_t remote)
{
	struct ibv_wc wc;

	post(op, offset, size, remote);
	wc = poll_one();
	if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "opcode %d of %u: %s\n", op, size, ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS);
}

static void post_receive(uint32_t size)
{
	struct ibv_sge sge = { (uintptr_t)buffer + HALF, size, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

/* A message of @size, with its size as immediate. Returns 0 or what is wrong. */
static int32_t take_message(uint32_t size)
{
	uint32_t header = own.type == IBV_QPT_UD ? GRH : 0;
	struct ibv_wc wc = poll_one();

	if (wc.status != IBV_WC_SUCCESS)
		return wc.status;
	if (wc.byte_len != size + header || !(wc.wc_flags & IBV_WC_WITH_IMM) ||
	    wc.imm_data != htonl(size))
		return -1;
	if (header && (wc.src_qp != peer.qpn || !(wc.wc_flags & IBV_WC_GRH)))
		return -2;
	return is_filled(buffer + HALF + header, size, size) ? 0 : -3;
}

/* Answers the sender of the datagram just taken, by its header. */
static int32_t answer_datagram(void)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH, .src_qp = peer.qpn };
	struct ibv_ah *to = ibv_create_ah_from_wc(pd, &wc, (void *)(buffer + HALF), 1);

	if (!to)
		return -1;
	ibv_destroy_ah(ah);
	ah = to;
	fill(buffer, 100, 100);
	execute(IBV_WR_SEND_WITH_IMM, 0, 100, 0);
	return 0;
}

static int32_t obey(const struct far_order *o)
{
	switch (o->letter) {
	case 'p':
		post_receive(o->value);
		return 0;
	case 't':
		return take_message(o->value);
	case 'm': /* at the end of the first half: the write arrived, sooner or later */
		for (int i = 0; i < 5000 && !is_filled(buffer, o->value, o->value); i++)
			usleep(1000);
		return is_filled(buffer, o->value, o->value) ? 0 : -1;
	case 'a':
		return answer_datagram();
	case 'u':
		return munmap(buffer + 2 * HALF - PAGE, PAGE);
	case 'k':
		raise(SIGKILL);
	}
	return -1;
}

static void meet(enum ibv_qp_type type)
{
	int one = 1;

	setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	open_device();
	create_qp(type);
	put(&own, sizeof(own));
	CHECK(get(&peer, sizeof(peer)));
	connect_qp();
	CHECK(write(tcp, "r", 1) == 1 && get(&one, 1));
}

static void print_forged(void)
{
	static struct softnic_process found[PROCESSES];
	size_t count = 0, i;

	CHECK(!softnic_stat(found, PROCESSES, &count));
	for (i = 0; i < count && found[i].pid != getpid(); i++)
		;
	if (!is_softnic)
		return;
	CHECK(i < count);
	printf("forged %llu\n", (unsigned long long)found[i].counters.forged);
}

static void serve(uint16_t port, bool waits)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int listener = socket(AF_INET6, SOCK_STREAM, 0), one = 1;
	struct far_order o;
	int32_t answer;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CHECK(!bind(listener, (void *)&at, sizeof(at)) && !listen(listener, 1));
	puts("ready");
	fflush(stdout);
	tcp = accept(listener, NULL, NULL);
	CHECK(tcp >= 0 && recv(tcp, &peer, sizeof(peer), MSG_WAITALL | MSG_PEEK) == sizeof(peer));
	meet(peer.type);
	printf("qpn %u\n", own.qpn);
	fflush(stdout);
	if (waits)
		getchar();
	while (get(&o, sizeof(o))) {
		answer = obey(&o);
		put(&answer, sizeof(answer));
	}
	print_forged();
}

/* Writes, reads back, sends. */
static void move(uint32_t size)
{
	fill(buffer, size, size);
	execute(IBV_WR_RDMA_WRITE, 0, size, 0);
	memset(buffer + HALF, 0xee, size);
	execute(IBV_WR_RDMA_READ, HALF, size, 0);
	CHECK(is_filled(buffer + HALF, size, size));
	order('p', size ? size : 1);
	execute(IBV_WR_SEND_WITH_IMM, 0, size, 0);
	order('t', size);
}

/* A full send queue, all in flight: each write and atomic must happen once, in order. */
static void pipeline(void)
{
	uint64_t *result = (uint64_t *)(buffer + HALF);
	int i;

	memset(buffer, 0, 8);
	execute(IBV_WR_RDMA_WRITE, 0, 8, 0);
	for (i = 0; i < DEPTH; i++)
		post(IBV_WR_ATOMIC_FETCH_AND_ADD, HALF + 8 * i, 8, 0);
	for (i = 0; i < DEPTH; i++) {
		CHECK(poll_one().status == IBV_WC_SUCCESS);
		CHECK(result[i] == 3ull * i);
	}
	execute(IBV_WR_ATOMIC_CMP_AND_SWP, HALF, 8, 0);
	CHECK(result[0] == 3ull * DEPTH);
	for (i = 0; i < DEPTH; i++)
		fill(buffer + i * 20000, 20000, i);
	for (i = 0; i < DEPTH; i++)
		post(IBV_WR_RDMA_WRITE, i * 20000, 20000, i * 20000);
	for (i = 0; i < DEPTH; i++)
		CHECK(poll_one().status == IBV_WC_SUCCESS);
	for (i = 0; i < DEPTH; i++) {
		execute(IBV_WR_RDMA_READ, HALF, 20000, i * 20000);
		CHECK(is_filled(buffer + HALF, 20000, i));
	}
}

/* A queue pair that has failed repeats no NAK. So if the NAK is lost, only silence follows. */
static bool is_refusal(enum ibv_wc_status status)
{
	const char *faults = getenv("WEIR_SOFTNIC");
	bool is_lossy = faults && strstr(faults, "loss=");

	return status == IBV_WC_REM_ACCESS_ERR || (is_lossy && status == IBV_WC_RETRY_EXC_ERR);
}

static void run_rc(int rounds)
{
	static const uint32_t sizes[] = { 0, 1, 3, 1023, 1024, 1025, 4096, 65536, 1 << 20 };
	size_t i;

	meet(IBV_QPT_RC);
	while (rounds--) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			move(sizes[i]);
		pipeline();
	}
	fill(buffer, 8, 1);
	post(IBV_WR_RDMA_WRITE, 0, 8, 2 * HALF - 4); /* beyond the region */
	CHECK(is_refusal(poll_one().status));
}

static void run_uc(int rounds)
{
	static const uint32_t sizes[] = { 1, 1024, 5000, 65536 };
	size_t i;

	meet(IBV_QPT_UC);
	while (rounds--) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			fill(buffer, sizes[i], sizes[i]);
			execute(IBV_WR_RDMA_WRITE, 0, sizes[i], 0);
			order('m', sizes[i]);
			order('p', sizes[i]);
			execute(IBV_WR_SEND_WITH_IMM, 0, sizes[i], 0);
			order('t', sizes[i]);
		}
	}
}

static void run_ud(int rounds)
{
	static const uint32_t sizes[] = { 0, 1, 1000, 1024 };
	size_t i;

	meet(IBV_QPT_UD);
	while (rounds--) {
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			fill(buffer, sizes[i], sizes[i]);
			order('p', GRH + sizes[i]);
			execute(IBV_WR_SEND_WITH_IMM, 0, sizes[i], 0);
			order('t', sizes[i]);
		}
	}
	post_receive(GRH + 100);
	order('a', 0);
	CHECK(!take_message(100));
	if (!is_softnic)
		return;
	post(IBV_WR_SEND, 0, 1025, 0); /* more than the way bears */
	CHECK(poll_one().status == IBV_WC_LOC_LEN_ERR);
}

/* A region without its last page: an error at both ends, and no crash. */
static void run_unmapped(void)
{
	meet(IBV_QPT_RC);
	order('u', 0);
	execute(IBV_WR_RDMA_WRITE, 0, 100000, 2 * HALF - PAGE - 100000);
	execute(IBV_WR_RDMA_READ, HALF, 100000, 2 * HALF - PAGE - 100000);
	post(IBV_WR_RDMA_WRITE, 0, 100000, 2 * HALF - 100000);
	CHECK(poll_one().status == IBV_WC_REM_OP_ERR);
}

/* The same for our own region, as the target of a read. */
static void run_unmapped_here(void)
{
	meet(IBV_QPT_RC);
	CHECK(!munmap(buffer + 2 * HALF - PAGE, PAGE));
	post(IBV_WR_RDMA_READ, 2 * HALF - 100000, 100000, 0);
	CHECK(poll_one().status == IBV_WC_LOC_PROT_ERR);
}

/* Unlike a near peer's, the death is seen by its silence. */
static void run_kill(void)
{
	const struct far_order o = { 'k', 0 };
	int i, status = IBV_WC_SUCCESS;

	meet(IBV_QPT_RC);
	fill(buffer, 8, 8);
	execute(IBV_WR_RDMA_WRITE, 0, 8, 0);
	put(&o, sizeof(o));
	for (i = 0; status == IBV_WC_SUCCESS && i < 10000; i++) {
		post(IBV_WR_RDMA_WRITE, 0, 8, 0);
		status = poll_one().status;
	}
	CHECK(status == IBV_WC_RETRY_EXC_ERR);
	post(IBV_WR_RDMA_WRITE, 0, 8, 0);
	CHECK(poll_one().status == IBV_WC_WR_FLUSH_ERR);
}

/* A program that only receives hears of the death, too. */
static void run_idle(void)
{
	const struct far_order o = { 'k', 0 };

	meet(IBV_QPT_RC);
	fill(buffer, 8, 8);
	execute(IBV_WR_RDMA_WRITE, 0, 8, 0);
	post_receive(8);
	put(&o, sizeof(o));
	CHECK(poll_one().status == IBV_WC_WR_FLUSH_ERR);
}

static void call(const char *server, uint16_t port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(server, ':') ? "" : "::ffff:", server);
	CHECK(inet_pton(AF_INET6, mapped, &at.sin6_addr) == 1);
	tcp = socket(AF_INET6, SOCK_STREAM, 0);
	CHECK(tcp >= 0 && !connect(tcp, (void *)&at, sizeof(at)));
}

int main(int argc, char **argv)
{
	int rounds = argc > 4 ? atoi(argv[4]) : 1;

	alarm(300);
	CHECK(argc > 2);
	if (!strcmp(argv[1], "serve")) {
		serve(atoi(argv[2]), argc > 3);
		return 0;
	}
	CHECK(argc > 3);
	call(argv[2], atoi(argv[3]));
	if (!strcmp(argv[1], "rc"))
		run_rc(rounds);
	else if (!strcmp(argv[1], "uc"))
		run_uc(rounds);
	else if (!strcmp(argv[1], "ud"))
		run_ud(rounds);
	else if (!strcmp(argv[1], "unmapped"))
		run_unmapped();
	else if (!strcmp(argv[1], "unmapped_here"))
		run_unmapped_here();
	else if (!strcmp(argv[1], "idle"))
		run_idle();
	else
		run_kill();
	puts("right");
	return 0;
}
