/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Another process sends arbitrary messages to softnic, as client or as server. No process is
 * harmed, and other clients are served.
 *
 * The other process is the fuzzer itself under a second slot, because the kernel tells
 * processes apart only by pid. So nothing may be written at the addresses in the messages: only
 * reads and empty sends are posted.
 */
#include <assert.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softnic/verbs/nic.h"

enum {
	DEPTH = 4,
	BYTES = 64,
	PLACES = 8,
	SEGMENT_BYTES = 512, /* of the input */
	WAIT_MS = 60000,
	TURNS = 200, /* given to the engine between two answers */
	THEIR_QP = 5,
	THEIR_KEY = 1 << 16,
	/*
	 * Values that inputs rarely reach by chance, as read by make_segment() and
	 * send_answer().
	 */
	ALL_PROPER_SEGMENT = 2,
	ALL_PROPER_ANSWER = 1 | 16,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct message_input {
	const uint8_t *at;
	size_t left;
};

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_mr *mr;
	struct shared_pub *pub;
	int listen_fd, pub_fd, doorbell_fd;
	uint32_t slot;
	uint64_t secret;
	uint8_t buf[BYTES];
} world;

/* Beyond its end the input is zero. */
static void take_input(struct message_input *in, void *to, size_t n)
{
	size_t have = n < in->left ? n : in->left;

	memset(to, 0, n);
	memcpy(to, in->at, have);
	in->at += have;
	in->left -= have;
}

static uint8_t take_byte(struct message_input *in)
{
	uint8_t byte;

	take_input(in, &byte, 1);
	return byte;
}

static void claim_slot(void)
{
	struct sockaddr_un addr;
	socklen_t len;

	world.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert(world.listen_fd >= 0);
	do {
		len = shared_address(++world.slot, &addr);
		assert(world.slot < SOFTNIC_SLOTS);
	} while (bind(world.listen_fd, (struct sockaddr *)&addr, len));
	assert(!listen(world.listen_fd, SOMAXCONN));
}

static struct shared_mr region_in_order(void)
{
	return (struct shared_mr){
		.key = THEIR_KEY,
		.access = IBV_ACCESS_REMOTE_READ,
		.addr = (uintptr_t)world.buf,
		.length = BYTES,
	};
}

/* A region of the other process, to be read. */
static void make_memory(void)
{
	void *map;

	assert(!shared_create("fuzz-pub", sizeof(*world.pub), false, &world.pub_fd, &map));
	world.pub = map;
	world.pub->proof_addr = (uintptr_t)&world.secret;
	world.pub->proof = world.secret;
	world.pub->mrs[1] = region_in_order();
	assert(!shared_create("fuzz-doorbell_page", sizeof(struct shared_doorbells), false,
			      &world.doorbell_fd, &map));
	munmap(map, sizeof(struct shared_doorbells));
}

static void start_engine(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	assert(list && list[0]);
	world.ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert(world.ctx);
	world.pd = ibv_alloc_pd(world.ctx);
	world.channel = ibv_create_comp_channel(world.ctx);
	world.mr = ibv_reg_mr(world.pd, world.buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	assert(world.pd && world.channel && world.mr);
	world.secret = 0x5eed5eed5eed5eedull;
	make_memory();
	claim_slot();
}

static uint32_t their_qpn(void)
{
	return world.slot << SOFTNIC_QP_INDEX_BITS | THEIR_QP;
}

static void connect_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = their_qpn(),
		.max_dest_rd_atomic = 1,
		.ah_attr = { .port_num = 1 },
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 1, .max_rd_atomic = 1 };

	assert(!ibv_modify_qp(
		qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	assert(!ibv_modify_qp(qp, &rtr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
				      IBV_QP_MAX_DEST_RD_ATOMIC));
	/* Fails if softnic has just noticed the closed connection and ended the queue pair. */
	(void)ibv_modify_qp(qp, &rts,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_qp *make_qp(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(world.pd, &attr);

	assert(qp);
	connect_qp(qp);
	return qp;
}

/* Close the waiting calls: of earlier queue pairs, and of processes that probed the slot. */
static void hang_up_all(void)
{
	int fd;

	while ((fd = accept(world.listen_fd, NULL, NULL)) >= 0)
		close(fd);
}

/* Receive the next message; false at the end. */
static bool receive_message(int fd, struct shm_msg *m)
{
	struct pollfd p = { fd, POLLIN, 0 };
	int fds[SHM_MSG_FDS_MAX], err;

	assert(poll(&p, 1, WAIT_MS) == 1);
	err = shm_msg_receive(fd, m, fds);
	if (!err)
		shm_msg_close_fds(fds);
	return !err;
}

static int call(uint32_t slot_named)
{
	const struct shm_msg hello = { .type = MSG_HELLO, .value = slot_named };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;
	socklen_t len = shared_address(nic.slot, &addr);

	assert(fd >= 0 && !connect(fd, (struct sockaddr *)&addr, len));
	assert(!shm_msg_send(fd, &hello, NULL, 0));
	return fd;
}

static void assert_others_are_served(void)
{
	struct shm_msg m;
	int fd = call(0);

	assert(receive_message(fd, &m) && m.type == MSG_WELCOME);
	close(fd);
}

/*
 * A proper message, changed by the input. Faults are left out, because any process may inject
 * faults.
 */
static void make_up(struct message_input *in, const struct ibv_qp *qp, struct shm_msg *m)
{
	uint8_t wrong = take_byte(in);

	take_input(in, m, sizeof(*m));
	m->type %= 16;
	if (!(wrong & 1))
		m->qpn = qp->qp_num;
	if (!(wrong & 2))
		m->from = their_qpn();
	if (!(wrong & 4))
		m->has &= HAS_SRQ | HAS_WAKEUP | HAS_MEMORY;
	if (m->type == MSG_SET_FAULT)
		m->qpn = UINT32_MAX;
}

/* Questions of all kinds. The answer to the last shows that all were read. */
static void send_message(struct message_input *in, const struct ibv_qp *qp)
{
	const struct shm_msg last = { .type = MSG_SET_FAULT, .qpn = UINT32_MAX };
	struct shm_msg m;
	int fd = call(take_byte(in) & 1 ? world.slot : 0);
	bool lives = true;

	while (in->left && lives) {
		make_up(in, qp, &m);
		lives = !shm_msg_send(fd, &m, NULL, 0);
		while (lives && recv(fd, &m, 1, MSG_DONTWAIT | MSG_PEEK) >= 0)
			lives = receive_message(fd, &m);
	}
	shm_msg_send(fd, &last, NULL, 0);
	while (lives && receive_message(fd, &m) && m.type != MSG_FAULT_SET)
		;
	close(fd);
}

static void post(struct ibv_qp *qp, bool reads)
{
	struct ibv_sge sge = { (uintptr_t)world.buf, BYTES, world.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_SEND,
		.sg_list = &sge,
		.num_sge = reads,
		.wr.rdma = { .rkey = THEIR_KEY },
	};

	(void)ibv_post_send(qp, &wr, &bad);
}

static void put_in_order(struct shared_qp *s, const struct ibv_qp *qp)
{
	s->magic = SHARED_MAGIC;
	s->version = SHARED_VERSION;
	s->state = SHARED_QP_READY;
	s->dest_qpn = qp->qp_num;
	s->type = IBV_QPT_RC;
	s->pd = 0;
	s->access = IBV_ACCESS_REMOTE_READ;
	s->recv_cq %= SHARED_CQS;
}

/* Guards without owner, arrivals, and their receives. */
static void put_parts_in_order(struct shared_qp *s)
{
	struct shared_arrivals *arrivals = (void *)(s->rest + PLACES * sizeof(struct shared_guard));
	struct shared_rq *rq = (void *)(arrivals->at + PLACES);

	s->guards = s->arrivals = PLACES;
	memset(s->rest, 0, PLACES * sizeof(struct shared_guard));
	rq->magic = SHARED_MAGIC;
	rq->version = SHARED_VERSION;
	rq->size = PLACES;
	rq->sges = 1;
}

/* A queue pair of the other process. Mostly softnic's queue pair accepts it as a peer. */
static int make_segment(struct message_input *in, const struct ibv_qp *qp)
{
	static const size_t sizes[] = { 1, sizeof(struct shared_qp), 4096, 65536 };
	uint8_t how = take_byte(in) % 2 ? ALL_PROPER_SEGMENT : take_byte(in);
	size_t size = sizes[how % 4];
	void *map;
	int fd;

	assert(!shared_create("fuzz-qp", size, false, &fd, &map));
	take_input(in, map, size < SEGMENT_BYTES ? size : SEGMENT_BYTES);
	if (size >= sizeof(struct shared_qp) && !(how & 4))
		put_in_order(map, qp);
	if (size > SEGMENT_BYTES && !(how & 8))
		put_parts_in_order(map);
	munmap(map, size);
	return fd;
}

/* Descriptions of a region and of its file, during a read: proper, but changed by the input. */
static void describe_region(struct message_input *in)
{
	const struct shared_mr proper = region_in_order();
	uint8_t wrong = take_byte(in) & take_byte(in) & take_byte(in);
	struct shared_mr mr;

	take_input(in, &mr, sizeof(mr));
	if (!(wrong & 1))
		mr.key = proper.key;
	if (!(wrong & 2))
		mr.access = proper.access;
	if (!(wrong & 4))
		mr.pd = proper.pd;
	if (!(wrong & 8))
		mr.kind = proper.kind;
	if (!(wrong & 16))
		mr.iova = proper.iova;
	if (!(wrong & 32))
		mr.addr = proper.addr;
	if (!(wrong & 64))
		mr.length = proper.length;
	if (!(wrong & 128))
		mr.file %= 4;
	world.pub->mrs[1] = mr;
	world.pub->files[mr.file % SHARED_FILES] = mr.file;
}

static void send_answer(int fd, struct message_input *in, const struct ibv_qp *qp,
			uint64_t question)
{
	uint8_t kind = take_byte(in) % 2 ? ALL_PROPER_ANSWER : take_byte(in);
	struct shm_msg m;
	int fds[SHM_MSG_FDS_MAX];

	make_up(in, qp, &m);
	m.qpn = their_qpn();
	m.from = qp->qp_num;
	if (kind % 4)
		m.type = MSG_QP;
	else if (kind & 128)
		m.type = MSG_FILE;
	if (!(kind & 4))
		m.addr = question;
	if (!(kind & 8))
		m.value = 0;
	if (!(kind & 32))
		m.has = 0;
	if (kind & 64 && m.type == MSG_FILE)
		m.value = world.pub->mrs[1].file;
	fds[0] = make_segment(in, qp);
	fds[1] = make_segment(in, qp);
	fds[2] = dup(world.doorbell_fd);
	fds[3] = dup(world.pub_fd);
	shm_msg_send(fd, &m, fds, kind & 16 ? 1 : SHM_MSG_FDS_MAX);
	shm_msg_close_fds(fds);
}

/*
 * Softnic takes the other process for reachable; then this function answers its questions.
 * Return: the connection, or -1 for none. It ends when unused, because the last bytes are no
 * message.
 */
static int answer(struct message_input *in, struct ibv_qp *qp)
{
	const struct shm_msg welcome = { .type = MSG_WELCOME };
	int fds[] = { world.pub_fd, world.doorbell_fd }, turns;
	int fd = accept4(world.listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct shm_msg m;

	if (fd < 0)
		return -1;
	while (receive_message(fd, &m) && m.type != MSG_ASK_QP)
		;
	shm_msg_send(fd, &welcome, fds, 2);
	post(qp, true);
	post(qp, false);
	while (in->left) {
		describe_region(in);
		post(qp, true);
		send_answer(fd, in, qp, m.addr);
		for (turns = 0; turns < TURNS; turns++)
			sched_yield();
	}
	world.pub->mrs[1] = region_in_order();
	(void)!send(fd, "", 1, MSG_NOSIGNAL);
	return fd;
}

static void await_end(int fd)
{
	struct shm_msg m;

	while (receive_message(fd, &m))
		;
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct message_input in = { data, size };
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int fd = -1;

	if (!world.ctx)
		start_engine();
	hang_up_all();
	cq = ibv_create_cq(world.ctx, 4 * DEPTH, NULL, world.channel, 0);
	assert(cq);
	qp = make_qp(cq);
	if (take_byte(&in) & 1)
		send_message(&in, qp);
	else
		fd = answer(&in, qp);
	assert_others_are_served();
	assert(!ibv_destroy_qp(qp));
	if (fd >= 0)
		await_end(fd);
	assert(!ibv_destroy_cq(cq));
	return 0;
}
