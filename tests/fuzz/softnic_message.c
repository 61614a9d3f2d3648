/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Another process sends arbitrary messages to softnic, as client or as server. No process is
 * harmed, and other clients are served: two queue pairs of this process, the bystanders, stay
 * connected. No process gets another's queue pair, doorbell page or file, anything of a queue pair
 * behind a closed gate, or memory by a queue pair for datagrams. No send succeeds by a bad
 * description.
 *
 * The other process is the fuzzer itself under a second slot, because the kernel tells
 * processes apart only by pid. So nothing may be written at the addresses in the messages: only
 * reads and empty sends are posted.
 */
#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softnic/qp/gate.h"
#include "softnic/verbs/nic.h"

enum {
	DEPTH = 4,
	BYTES = 64,
	LONG_BYTES = 2 * SHM_MSG_BYTES_MAX, /* room for more than a message to a gate has */
	SENT_MAX = 2 * BYTES, /* with such a message */
	PLACES = 8,
	SEGMENT_BYTES = 512, /* of the input */
	WAIT_MS = 60000,
	TURNS = 4, /* given to the engine between two answers */
	THEIR_QP = 5,
	THEIR_KEY = 1 << 16,
	/* Values that inputs rarely reach by chance, as read by send_answer(). */
	ALL_PROPER_ANSWER = 1 | 16,
	OVERFULL_ANSWER = 3 | 16,
	FILE_ANSWER = 16 | 64 | 128,
	FDS_MAX = 16, /* passed with one message */
	FILE_BYTES = 1 << 16,
};

/* How the other process welcomes softnic; all else is proper. */
enum { WELCOME_NONE, WELCOME_WRONG, WELCOMES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct message_input {
	const uint8_t *at;
	size_t left;
};

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_mr *mr, *file_mr; /* the second in a mappable file */
	struct ibv_mr *long_mr; /* of @long_buf */
	struct ibv_qp *bystanders[2];
	struct ibv_cq *cq; /* of the others but the queue pair under test */
	struct ibv_qp *datagrams, *idle; /* of this input, for datagrams; not connected yet */
	struct ibv_qp *gated; /* of this input, connected behind a closed gate */
	bool may_succeed; /* an answer of this input could be accepted */
	struct shared_pub *pub;
	int listen_fd, pub_fd, doorbell_fd;
	int asking_fd; /* a connection of the other process that asks in order */
	uint32_t slot;
	uint64_t secret;
	uint8_t buf[BYTES], long_buf[LONG_BYTES];
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

/* Of the file of world.file_mr. */
static uint32_t file_number(void)
{
	uint32_t i;

	for (i = 0; i < SHARED_FILES; i++)
		if (nic.pub->files[i])
			return nic.pub->files[i];
	return 0;
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

static void register_file(void)
{
	void *map;
	int fd;

	assert(!shared_create("fuzz-file", FILE_BYTES, false, &fd, &map));
	world.file_mr = ibv_reg_mr(world.pd, map, FILE_BYTES, IBV_ACCESS_LOCAL_WRITE);
	assert(world.file_mr && file_number());
	close(fd);
}

static uint32_t their_qpn(void)
{
	return world.slot << SOFTNIC_QP_INDEX_BITS | THEIR_QP;
}

/* Return: false if softnic has ended the queue pair meanwhile. */
static bool connect_qp(struct ibv_qp *qp, uint32_t to)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to,
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
	return !ibv_modify_qp(qp, &rts,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_qp *make_qp(struct ibv_cq *cq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(world.pd, &attr);

	assert(qp);
	return qp;
}

static void make_ready_for_datagrams(struct ibv_qp *qp)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };

	assert(!ibv_modify_qp(qp, &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	assert(!ibv_modify_qp(qp, &rtr, IBV_QP_STATE));
	assert(!ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/* The other process is its peer, and has proven nothing. */
static uint32_t gated_peer(void)
{
	return their_qpn() + 2;
}

static struct ibv_qp *make_gated(void)
{
	struct ibv_sge sge = { (uintptr_t)world.long_buf, LONG_BYTES, world.long_mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_qp *qp = make_qp(world.cq, IBV_QPT_RC);

	assert(!softnic_gate_close(qp));
	(void)connect_qp(qp, gated_peer());
	assert(!ibv_post_recv(qp, &wr, &bad) && !ibv_post_recv(qp, &wr, &bad));
	return qp;
}

static void make_others(void)
{
	world.cq = ibv_create_cq(world.ctx, 8 * DEPTH, NULL, NULL, 0);
	assert(world.cq);
	world.bystanders[0] = make_qp(world.cq, IBV_QPT_RC);
	world.bystanders[1] = make_qp(world.cq, IBV_QPT_RC);
	assert(connect_qp(world.bystanders[0], world.bystanders[1]->qp_num));
	assert(connect_qp(world.bystanders[1], world.bystanders[0]->qp_num));
	world.idle = make_qp(world.cq, IBV_QPT_RC);
}

/* Nothing but what was sent. */
static void assert_gate_gave_no_more(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(world.cq, 1, &wc) > 0)
		assert(wc.qp_num != world.gated->qp_num || wc.byte_len <= SENT_MAX);
}

static void assert_bystanders_are_connected(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int i;

	for (i = 0; i < 2; i++) {
		assert(!ibv_query_qp(world.bystanders[i], &attr, IBV_QP_STATE, &init));
		assert(attr.qp_state == IBV_QPS_RTS);
	}
}

/* Receive the next message, and count its descriptors; false at the end. */
static bool receive_counted(int fd, struct shm_msg *m, unsigned int *nr_fds)
{
	struct pollfd p = { fd, POLLIN, 0 };
	int fds[SHM_MSG_FDS_MAX], i;

	*nr_fds = 0;
	assert(poll(&p, 1, WAIT_MS) == 1);
	if (shm_msg_receive(fd, m, fds))
		return false;
	for (i = 0; i < SHM_MSG_FDS_MAX; i++)
		*nr_fds += fds[i] >= 0;
	shm_msg_close_fds(fds);
	return true;
}

static bool receive_message(int fd, struct shm_msg *m)
{
	unsigned int nr_fds;

	return receive_counted(fd, m, &nr_fds);
}

/* The connection ends, because the last byte is no message. */
static void end_call(int fd)
{
	(void)!send(fd, "", 1, MSG_NOSIGNAL);
}

static void await_end(int fd)
{
	struct shm_msg m;

	while (receive_message(fd, &m))
		;
	close(fd);
}

/*
 * Ends the waiting calls: of earlier queue pairs, and from probes of the slot. Waits until softnic
 * has noticed. Otherwise softnic would use the old connection for the next queue pair.
 */
static void hang_up_all(void)
{
	int fd;

	while ((fd = accept4(world.listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		end_call(fd);
		await_end(fd);
	}
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

static void start_engine(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct shm_msg m;

	assert(list && list[0]);
	world.ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert(world.ctx);
	world.pd = ibv_alloc_pd(world.ctx);
	world.channel = ibv_create_comp_channel(world.ctx);
	world.mr = ibv_reg_mr(world.pd, world.buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	world.long_mr = ibv_reg_mr(world.pd, world.long_buf, LONG_BYTES, IBV_ACCESS_LOCAL_WRITE);
	assert(world.pd && world.channel && world.mr && world.long_mr);
	world.secret = 0x5eed5eed5eed5eedull;
	register_file();
	make_memory();
	claim_slot();
	make_others();
	world.asking_fd = call(0);
	assert(receive_message(world.asking_fd, &m) && m.type == MSG_WELCOME);
}

static void assert_others_are_served(void)
{
	struct shm_msg m;
	int fd = call(0);

	assert(receive_message(fd, &m) && m.type == MSG_WELCOME);
	close(fd);
}

/*
 * Also with more descriptors than a message has room for. Return: false at the end of the
 * connection; not if the kernel refuses descriptors, on Linux 6.16.
 */
static bool send_with(int fd, struct shm_msg *m, struct iovec bytes, const int *fds,
		      unsigned int nr)
{
	union {
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr head;
	} control = { 0 };
	struct iovec parts[] = { { m, sizeof(*m) }, bytes };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };
	struct cmsghdr *c;

	m->magic = SHARED_MAGIC;
	m->version = SHARED_VERSION;
	if (nr) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nr * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nr * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nr * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EPERM;
}

/* Copies of a descriptor with a message. Return: as send_with(). */
static bool send_copies(int fd, struct shm_msg *m, int copied, unsigned int nr)
{
	int fds[FDS_MAX];
	unsigned int i;

	for (i = 0; i < nr; i++)
		fds[i] = copied;
	return send_with(fd, m, (struct iovec){ 0 }, fds, nr);
}

/* A message with bytes, mostly as many as it says. Return: as send_with(). */
static bool send_bytes(struct message_input *in, int fd, struct shm_msg *m)
{
	uint8_t bytes[SENT_MAX], wrong = take_byte(in);
	size_t n = take_byte(in) % sizeof(bytes);

	take_input(in, bytes, n);
	if (!(wrong & 1))
		m->value = n;
	else if (wrong & 4)
		m->value %= LONG_BYTES;
	if (!(wrong & 2))
		m->channel = 1 + wrong / 64;
	return send_with(fd, m, (struct iovec){ bytes, n }, NULL, 0);
}

/* Names a queue pair and a peer. */
static void name_ends(struct message_input *in, const struct ibv_qp *qp, struct shm_msg *m)
{
	uint8_t whom = take_byte(in) % 8;

	if (whom == 0)
		return; /* anything */
	m->qpn = qp->qp_num;
	m->from = their_qpn();
	if (whom == 1) {
		m->qpn = world.bystanders[0]->qp_num;
		m->from = world.bystanders[1]->qp_num;
	} else if (whom == 2) {
		m->from = their_qpn() + 1;
	} else if (whom == 3) {
		m->qpn = world.datagrams->qp_num;
	} else if (whom == 4) {
		m->qpn = world.idle->qp_num;
	} else if (whom == 5 || whom == 6) {
		m->qpn = world.gated->qp_num;
		m->from = gated_peer() + (whom == 6);
	}
}

/*
 * A proper message, changed by the input. Faults are left out, because any process may inject
 * faults.
 */
static void make_up(struct message_input *in, const struct ibv_qp *qp, struct shm_msg *m)
{
	uint8_t wrong = take_byte(in);

	take_input(in, m, sizeof(*m));
	m->type %= MSG_TRAY_EMPTY + 1;
	name_ends(in, qp, m);
	if (!(wrong & 4))
		m->has &= HAS_SRQ | HAS_WAKEUP | HAS_MEMORY | HAS_GATE | HAS_TRAYS |
			  HAS_ATOMICS;
	if (m->type == MSG_ASK_FILE && wrong & 8)
		m->value = file_number();
	if (m->type == MSG_HELLO)
		m->value = wrong & 16 ? world.slot : world.slot + 1;
	if (m->type == MSG_SET_FAULT)
		m->qpn = UINT32_MAX;
}

/*
 * A process gets the doorbell page of the process's slot, and a queue pair connected to the
 * process. Files follow such a queue pair. @is_admitted: by an answer before.
 */
static void check_answer(const struct shm_msg *m, unsigned int nr_fds, const struct ibv_qp *qp,
			 bool has_slot, bool *is_admitted)
{
	if (m->type == MSG_WELCOME)
		assert(nr_fds == 1 || has_slot);
	if (m->type == MSG_FILE)
		assert(*is_admitted);
	if (m->type == MSG_GATE_DONE)
		assert(m->qpn == world.gated->qp_num && m->from == gated_peer());
	if (m->type != MSG_QP || m->value)
		return;
	assert(has_slot);
	if (m->qpn == world.gated->qp_num) {
		assert(m->from == gated_peer() && m->has == HAS_GATE && !nr_fds);
	} else if (m->qpn == world.datagrams->qp_num) {
		assert(!(m->has & HAS_MEMORY));
	} else {
		assert(m->qpn == qp->qp_num && m->from == their_qpn());
		*is_admitted = true;
	}
}

/* Questions of all kinds. The answer to the last shows that all were read. */
static void send_message(struct message_input *in, const struct ibv_qp *qp)
{
	const struct shm_msg last = { .type = MSG_SET_FAULT, .qpn = UINT32_MAX };
	const uint32_t slots[] = { 0, world.slot, world.slot, world.slot + 1 };
	uint32_t slot = slots[take_byte(in) % 4];
	bool lives = true, has_slot = slot == world.slot, is_admitted = false;
	int fd = call(slot);
	struct shm_msg m;
	unsigned int nr;

	while (in->left && lives) {
		make_up(in, qp, &m);
		has_slot |= m.type == MSG_HELLO && m.value == world.slot;
		nr = take_byte(in);
		lives = m.type == MSG_GATE_SEND ?
				send_bytes(in, fd, &m) :
				send_copies(fd, &m, world.pub_fd, nr < FDS_MAX ? nr : 0);
		while (lives && recv(fd, &m, 1, MSG_DONTWAIT | MSG_PEEK) >= 0) {
			lives = receive_counted(fd, &m, &nr);
			if (lives)
				check_answer(&m, nr, qp, has_slot, &is_admitted);
		}
	}
	shm_msg_send(fd, &last, NULL, 0);
	while (lives && receive_counted(fd, &m, &nr) && m.type != MSG_FAULT_SET)
		check_answer(&m, nr, qp, has_slot, &is_admitted);
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

/* The parts of a segment: how many guards, and the sizes of the rings and of a receive. */
struct segment_parts {
	uint32_t guards, arrivals, size, sges;
};

static const struct segment_parts proper_parts = { PLACES, PLACES, PLACES, 1 };

/* Guards without owner, arrivals, and a receive of zeroes. */
static void put_parts_in_order(struct shared_qp *s, const struct segment_parts *parts)
{
	struct shared_arrivals *arrivals =
		(void *)(s->rest + parts->guards * sizeof(struct shared_guard));
	struct shared_rq_own *rq = (void *)(arrivals->at + parts->arrivals);

	s->guards = parts->guards;
	s->arrivals = parts->arrivals;
	memset(s->rest, 0, parts->guards * sizeof(struct shared_guard));
	rq->magic = SHARED_MAGIC;
	rq->version = SHARED_VERSION;
	rq->size = parts->size;
	rq->sges = parts->sges;
}

/* The maker may make an unsealed file shorter, and access to a mapping then fails. */
static int create_unsealed(size_t size, void **map)
{
	int fd = memfd_create("fuzz-unsealed", MFD_CLOEXEC);

	assert(fd >= 0 && !ftruncate(fd, (off_t)size));
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert(*map != MAP_FAILED);
	return fd;
}

/* All proper, but for one value beyond its bound. */
static void spoil(struct message_input *in, struct shared_qp *s)
{
	struct segment_parts parts = proper_parts;

	switch (take_byte(in) % 6) {
	case 0:
		s->recv_cq = SHARED_CQS;
		break;
	case 1:
		parts.guards = SHARED_GUARDS_MAX + 8;
		break;
	case 2:
		parts.arrivals = PLACES + PLACES / 2;
		break;
	case 3:
		parts.size = SHARED_WRS_MAX;
		break;
	case 4:
		parts.sges = SHARED_SGES_MAX + 1;
		break;
	case 5:
		s->type = IBV_QPT_UC;
		break;
	}
	put_parts_in_order(s, &parts);
}

/*
 * struct segment - a queue pair's description
 * @unsealed: another descriptor of an unsealed file, or -1
 * @is_bad: to be refused
 */
struct segment {
	int fd, unsealed;
	bool is_bad;
};

/* A queue pair of the other process. Mostly softnic's queue pair accepts it as a peer. */
static struct segment make_segment(struct message_input *in, const struct ibv_qp *qp)
{
	enum { BAD_SIZE, UNSEALED, ANY_HEAD, ANY_PARTS, SPOILED, PROPER = SPOILED + 4 };
	uint8_t kind = take_byte(in) % (PROPER + 4);
	size_t small = take_byte(in) % 2 ? 1 : sizeof(struct shared_qp);
	size_t size = kind == BAD_SIZE ? small : FILE_BYTES;
	bool is_spoiled = kind >= SPOILED && kind < PROPER;
	struct segment made = { .unsealed = -1, .is_bad = kind <= UNSEALED || is_spoiled };
	void *map;

	if (kind == UNSEALED) {
		made.fd = create_unsealed(size, &map);
		made.unsealed = dup(made.fd);
	} else {
		assert(!shared_create("fuzz-qp", size, false, &made.fd, &map));
	}
	take_input(in, map, size < SEGMENT_BYTES ? size : SEGMENT_BYTES);
	if (size >= sizeof(struct shared_qp) && kind != ANY_HEAD)
		put_in_order(map, qp);
	if (size > SEGMENT_BYTES && kind != ANY_PARTS)
		put_parts_in_order(map, &proper_parts);
	if (is_spoiled)
		spoil(in, map);
	munmap(map, size);
	return made;
}

/* Descriptions of a region and of its file, during a read: proper, but changed by the input. */
static void describe_region(struct message_input *in)
{
	const struct shared_mr proper = region_in_order();
	uint8_t wrong = take_byte(in) & take_byte(in) & take_byte(in) & take_byte(in);
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

/* A mapping of an unsealed file must not be used any more. */
static void shorten(const struct segment *s, struct ibv_qp *qp)
{
	if (s->unsealed < 0)
		return;
	assert(!ftruncate(s->unsealed, 0));
	close(s->unsealed);
	post(qp, true);
	post(qp, false);
}

static bool has_succeeded(struct ibv_cq *cq)
{
	bool succeeded = false;
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		succeeded |= wc.status == IBV_WC_SUCCESS;
	return succeeded;
}

/*
 * The engine takes one message at a time, and takes turns at connections. So it has handled two
 * messages of another connection, a welcome and an answer, before it answers the last question.
 * Each sched_yield() would cost a time slice of the host's other programs instead.
 */
static void await_turns(void)
{
	const struct shm_msg question = { .type = MSG_SET_FAULT, .qpn = UINT32_MAX };
	struct shm_msg m;
	int turns;

	for (turns = 0; turns < TURNS; turns++) {
		assert(!shm_msg_send(world.asking_fd, &question, NULL, 0));
		assert(receive_message(world.asking_fd, &m) && m.type == MSG_FAULT_SET);
	}
}

/* The engine takes the answer. By bad answers alone, no send may succeed. */
static void await_effect(struct ibv_qp *qp, bool is_bad)
{
	await_turns();
	post(qp, true);
	world.may_succeed |= !is_bad;
	if (!world.may_succeed)
		assert(!has_succeeded(qp->send_cq));
}

static void send_answer(int fd, struct message_input *in, struct ibv_qp *qp, uint64_t question)
{
	const uint8_t kinds[] = { ALL_PROPER_ANSWER, ALL_PROPER_ANSWER, FILE_ANSWER,
				  take_byte(in) };
	uint8_t kind = kinds[take_byte(in) % 4];
	struct segment first, second;
	int fds[SHM_MSG_FDS_MAX];
	struct shm_msg m;

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
	first = make_segment(in, qp);
	second = make_segment(in, qp);
	fds[0] = first.fd;
	fds[1] = second.fd;
	fds[2] = dup(second.fd);
	fds[3] = dup(world.doorbell_fd);
	fds[4] = dup(world.pub_fd);
	fds[5] = dup(world.doorbell_fd);
	if (kind == OVERFULL_ANSWER)
		send_copies(fd, &m, world.pub_fd, FDS_MAX);
	else
		shm_msg_send(fd, &m, fds, kind & 16 ? 1 : SHM_MSG_FDS_MAX);
	shm_msg_close_fds(fds);
	/* The owner of a gate may say that it has taken a message. */
	await_effect(qp, (m.type != MSG_QP || first.is_bad) && !(m.has & HAS_GATE));
	shorten(&first, qp);
	shorten(&second, qp);
}

/* Mostly proper; sometimes missing, or with the wrong files. */
static void send_welcome(int fd, struct message_input *in, struct ibv_qp *qp)
{
	const struct shm_msg welcome = { .type = MSG_WELCOME };
	int fds[] = { world.pub_fd, world.doorbell_fd };
	uint8_t how = take_byte(in) % WELCOMES;
	struct segment wrong;

	if (how == WELCOME_NONE)
		return;
	if (how != WELCOME_WRONG) {
		shm_msg_send(fd, &welcome, fds, 2);
		return;
	}
	wrong = make_segment(in, qp);
	fds[take_byte(in) % 2] = wrong.fd;
	shm_msg_send(fd, &welcome, fds, 2);
	close(wrong.fd);
	shorten(&wrong, qp);
}

/*
 * Softnic takes the other process for reachable; then this function answers its questions.
 * Return: the connection, for await_end(), or -1 for none.
 */
static int answer(struct message_input *in, struct ibv_qp *qp)
{
	int fd = accept4(world.listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct shm_msg m;

	if (fd < 0)
		return -1;
	while (receive_message(fd, &m) && m.type != MSG_ASK_QP)
		;
	send_welcome(fd, in, qp);
	post(qp, true);
	post(qp, false);
	while (in->left) {
		describe_region(in);
		post(qp, true);
		send_answer(fd, in, qp, m.addr);
	}
	world.pub->mrs[1] = region_in_order();
	end_call(fd);
	return fd;
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
	qp = make_qp(cq, IBV_QPT_RC);
	world.may_succeed = false;
	(void)connect_qp(qp, their_qpn());
	/* Any client may end a queue pair for datagrams: MSG_QP_ERROR. */
	world.datagrams = make_qp(world.cq, IBV_QPT_UD);
	make_ready_for_datagrams(world.datagrams);
	world.gated = make_gated();
	if (take_byte(&in) & 1)
		send_message(&in, qp);
	else
		fd = answer(&in, qp);
	assert_others_are_served();
	assert_bystanders_are_connected();
	assert_gate_gave_no_more();
	assert(!ibv_destroy_qp(world.gated));
	assert(!ibv_destroy_qp(world.datagrams));
	assert(!ibv_destroy_qp(qp));
	if (fd >= 0)
		await_end(fd);
	assert(!ibv_destroy_cq(cq));
	return 0;
}
