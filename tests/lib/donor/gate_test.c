/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor gate; suites: donor; devices: softnic; timeout: 120 */
/*
 * A process of the same user, which the kernel lets attach, connects to a donor, or lets a client
 * connect. It knows the key's id but not the key, and asks softnic for all that softnic has. Before
 * the proof it gets no descriptor through which it could read anything of the other's memory. So it
 * goes for muxes and exchanges, at either end.
 *
 * The rogue has a slot of softnic that no softnic serves, and names a queue pair there.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/exchange.h>
#include <weir/mux.h>
#include <weir/session.h>

#include "softnic/shm/shared.h"
#include "tests/support/donor_fixture.h"
#include "tests/support/silent_slot.h"
#include "wire/exchange.h"

enum { THEIR_INDEX = 5, FDS_MAX = 1024 };

extern char **environ;

static const char *program;

/* Another process, which runs this program in a role. */
struct helper {
	pid_t pid;
	int out;
};

struct rogue {
	uint32_t slot, qpn; /* the queue pair exists in name only */
	int listening, fd;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *id;
	uint32_t their_qpn;
	int fds[FDS_MAX];
	unsigned int nr_fds;
};

static void helper_start(struct helper *h, const char *role, const char *address, char line[64])
{
	char *argv[] = { (char *)program, (char *)role, (char *)address, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	assert_int_equal(posix_spawn(&h->pid, program, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	h->out = fds[0];
	n = read(h->out, line, 63);
	assert_true(n > 0);
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

static void helper_stop(struct helper *h)
{
	kill(h->pid, SIGKILL);
	waitpid(h->pid, NULL, 0);
	close(h->out);
}

static void ready(const char *line)
{
	printf("%s\n", line);
	fflush(stdout);
}

static int role_donor(const char *address)
{
	struct donor_fixture f;

	(void)address;
	donor_fixture_start(&f, NULL);
	ready(f.info.address);
	return sleep(60);
}

/* A client of a donor that proves nothing. */
static int role_caller(const char *address)
{
	const struct weir_session_options options = { .size = sizeof(options), .key = &key_a };
	struct weir_session *session;

	ready("calls");
	return weir_session_open(address, &options, &session, NULL) ? 0 : 1;
}

static int mux_open(struct weir_mux **mux)
{
	struct weir_mux_options options = { .size = sizeof(options), .key = &key_a };
	struct weir_error error = { "" };
	char listen[64];
	int rc;

	snprintf(listen, sizeof(listen), "%s:0", donor_host());
	options.listen = listen;
	rc = weir_mux_open(&options, mux, &error);
	if (rc)
		ready(error.text);
	return rc;
}

static int role_listening_mux(const char *address)
{
	struct weir_mux_info info = { 0 };
	struct weir_mux *mux;

	(void)address;
	if (mux_open(&mux) || weir_mux_info(mux, &info, sizeof(info)))
		return 1;
	ready(info.address);
	return sleep(60);
}

static int role_listening_exchange(const char *address)
{
	struct weir_exchange_options options = { .size = sizeof(options), .key = &key_a };
	struct weir_exchange_listener *listener;
	struct weir_exchange *x;
	char at[64];

	(void)address;
	snprintf(at, sizeof(at), "%s:0", donor_host());
	if (weir_exchange_listen(at, &options, &listener, NULL))
		return 1;
	ready(weir_exchange_address(listener));
	return weir_exchange_accept(listener, WEIR_EXCHANGE_FOREVER, &x, NULL) ? 1 : 0;
}

/* The same, of a mux. */
static int role_mux(const char *address)
{
	struct weir_mux_conn *conn;
	struct weir_mux *mux;

	if (mux_open(&mux))
		return 1;
	ready("calls");
	return weir_mux_connect(mux, address, 5, NULL, &conn, NULL) ? 0 : 1;
}

/* The same, of an exchange. */
static int role_exchange(const char *address)
{
	struct weir_exchange_options options = { .size = sizeof(options), .key = &key_a };
	struct weir_exchange *x;

	ready("calls");
	return weir_exchange_connect(address, &options, &x, NULL) ? 0 : 1;
}

static struct rdma_cm_event *await_event(struct rogue *r, enum rdma_cm_event_type type)
{
	struct pollfd p = { .fd = r->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	assert_int_equal(poll(&p, 1, SOON_MS), 1);
	assert_int_equal(rdma_get_cm_event(r->events, &event), 0);
	assert_int_equal(event->event, type);
	return event;
}

static void await(struct rogue *r, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(await_event(r, type));
}

static void rogue_open(struct rogue *r)
{
	memset(r, 0, sizeof(*r));
	r->listening = claim_slot(&r->slot);
	assert_true(r->listening >= 0);
	r->qpn = r->slot << SOFTNIC_QP_INDEX_BITS | THEIR_INDEX;
	r->events = rdma_create_event_channel();
	assert_non_null(r->events);
}

/* As an honest peer does, with the id of the key. */
static void rogue_connect(struct rogue *r, const char *address, const void *request, size_t length)
{
	struct rdma_conn_param param = {
		.private_data = request,
		.private_data_len = (uint8_t)length,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = r->qpn,
	};
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rdma_cm_event *event;

	assert_int_equal(inet_pton(AF_INET, donor_host(), &to.sin_addr), 1);
	to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	assert_int_equal(rdma_create_id(r->events, &r->id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(r->id, NULL, (struct sockaddr *)&to, SOON_MS), 0);
	await(r, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(r->id, SOON_MS), 0);
	await(r, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(r->id, &param), 0);
	event = await_event(r, RDMA_CM_EVENT_CONNECT_RESPONSE);
	r->their_qpn = event->param.conn.qp_num;
	rdma_ack_cm_event(event);
	assert_int_equal(rdma_establish(r->id), 0);
}

static void rogue_listen(struct rogue *r, char address[64])
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	assert_int_equal(inet_pton(AF_INET, donor_host(), &at.sin_addr), 1);
	assert_int_equal(rdma_create_id(r->events, &r->listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(r->listener, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(r->listener, 1), 0);
	snprintf(address, 64, "%s:%u", donor_host(), ntohs(rdma_get_src_port(r->listener)));
}

static void rogue_accept(struct rogue *r)
{
	struct rdma_cm_event *event = await_event(r, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_conn_param param = { .rnr_retry_count = 7, .qp_num = r->qpn };

	r->id = event->id;
	r->their_qpn = event->param.conn.qp_num;
	param.responder_resources = param.initiator_depth = event->param.conn.initiator_depth;
	assert_int_equal(rdma_accept(r->id, &param), 0);
	rdma_ack_cm_event(event);
	await(r, RDMA_CM_EVENT_ESTABLISHED);
}

/* Takes a message with its descriptors. Return: its type; 0: the connection has ended. */
static uint32_t take_message(struct rogue *r)
{
	struct pollfd p = { r->fd, POLLIN, 0 };
	int fds[SHM_MSG_FDS_MAX], i;
	struct shm_msg m;

	assert_int_equal(poll(&p, 1, SOON_MS), 1);
	if (shm_msg_receive(r->fd, &m, fds))
		return 0;
	for (i = 0; i < SHM_MSG_FDS_MAX; i++)
		if (fds[i] >= 0 && r->nr_fds < FDS_MAX)
			r->fds[r->nr_fds++] = fds[i];
	return m.type;
}

static void await_message(struct rogue *r, uint32_t type)
{
	uint32_t got;

	do
		got = take_message(r);
	while (got && got != type);
	assert_int_equal(got, type);
}

static void say(struct rogue *r, struct shm_msg m)
{
	m.qpn = r->their_qpn;
	m.from = r->qpn;
	assert_int_equal(shm_msg_send(r->fd, &m, NULL, 0), 0);
}

/* After garbage, the other side may have ended the connection already. */
static void insist(struct rogue *r, struct shm_msg m)
{
	int rc;

	m.from = r->qpn;
	rc = shm_msg_send(r->fd, &m, NULL, 0);
	assert_true(!rc || rc == -EPIPE || rc == -ECONNRESET);
}

static const struct shared_pub *rogue_greet(struct rogue *r)
{
	struct sockaddr_un addr;
	socklen_t len = shared_address(r->their_qpn >> SOFTNIC_QP_INDEX_BITS, &addr);
	size_t size;
	void *pub;

	r->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(r->fd, (struct sockaddr *)&addr, len), 0);
	say(r, (struct shm_msg){ .type = MSG_HELLO, .value = r->slot });
	await_message(r, MSG_WELCOME);
	assert_int_equal(r->nr_fds, 2);
	assert_int_equal(shared_map(r->fds[0], sizeof(struct shared_pub), PROT_READ, &pub, &size),
			 0);
	return pub;
}

/* Without this, the test would show nothing: softnic would refuse for another reason. */
static void assert_kernel_allows_attaching(const struct shared_pub *pub)
{
	uint64_t found = 0;
	struct iovec here = { &found, sizeof(found) };
	struct iovec there = { (void *)(uintptr_t)pub->proof_addr, sizeof(found) };

	if (access("/proc/sys/kernel/yama/ptrace_scope", F_OK) == 0)
		return;
	assert_int_equal(process_vm_readv((pid_t)pub->pid, &here, 1, &there, 1, 0), sizeof(found));
	assert_int_equal(found, pub->proof);
}

/* Asks for all, sends what proves nothing, and asks again. */
static void rogue_ask(struct rogue *r, const struct shared_pub *pub)
{
	uint8_t garbage[WIRE_HANDSHAKE_MAX] = { 0x5a };
	struct shm_msg message = { .type = MSG_GATE_SEND, .channel = 1 };
	uint32_t i, type;

	say(r, (struct shm_msg){ .type = MSG_ASK_QP });
	await_message(r, MSG_QP);
	for (i = 0; i < SHARED_FILES; i++)
		if (pub->files[i])
			say(r, (struct shm_msg){ .type = MSG_ASK_FILE, .value = pub->files[i] });
	message.qpn = r->their_qpn;
	message.from = r->qpn;
	message.value = sizeof(garbage);
	assert_int_equal(shm_msg_send_bytes(r->fd, &message, garbage), 0);
	insist(r, (struct shm_msg){ .type = MSG_ASK_QP, .qpn = r->their_qpn });
	for (i = 0; i < SHARED_FILES; i++)
		insist(r, (struct shm_msg){ .type = MSG_ASK_FILE,
					    .qpn = r->their_qpn,
					    .value = pub->files[i] });
	insist(r, (struct shm_msg){ .type = MSG_SET_FAULT, .qpn = UINT32_MAX });
	do
		type = take_message(r);
	while (type && type != MSG_FAULT_SET);
}

/* The table of regions, which is not their memory, and the rogue's own doorbells. */
static bool is_harmless(int fd)
{
	char path[32], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	assert_true(n > 0);
	target[n] = '\0';
	print_message("# got %s\n", target);
	return !strcmp(target, "/memfd:softnic-pub (deleted)") ||
	       !strcmp(target, "/memfd:softnic-bell (deleted)");
}

static void assert_nothing_got(const struct rogue *r)
{
	unsigned int i, bad = 0;

	for (i = 0; i < r->nr_fds; i++)
		bad += !is_harmless(r->fds[i]);
	assert_int_equal(bad, 0);
}

static void rogue_close(struct rogue *r, const struct shared_pub *pub)
{
	unsigned int i;

	munmap((void *)pub, sizeof(*pub));
	for (i = 0; i < r->nr_fds; i++)
		close(r->fds[i]);
	close(r->fd);
	close(r->listening);
	rdma_destroy_id(r->id);
	if (r->listener)
		rdma_destroy_id(r->listener);
	rdma_destroy_event_channel(r->events);
}

static void assert_listener_gives_nothing(const char *role, const void *request, size_t length)
{
	const struct shared_pub *pub;
	struct helper listener;
	struct rogue rogue;
	char address[64];

	helper_start(&listener, role, "", address);
	rogue_open(&rogue);
	rogue_connect(&rogue, address, request, length);
	pub = rogue_greet(&rogue);
	assert_kernel_allows_attaching(pub);
	rogue_ask(&rogue, pub);
	assert_nothing_got(&rogue);
	rogue_close(&rogue, pub);
	helper_stop(&listener);
}

static void a_donor_gives_a_stranger_nothing(void **state)
{
	const struct wire_handshake_connect request = raw_request(&key_a, 0, 0);

	(void)state;
	assert_listener_gives_nothing("donor", &request, sizeof(request));
}

static void a_listening_mux_gives_a_stranger_nothing(void **state)
{
	const struct wire_handshake_connect request = raw_request(&key_a, 0, 0);

	(void)state;
	assert_listener_gives_nothing("listening-mux", &request, sizeof(request));
}

static void a_listening_exchange_gives_a_stranger_nothing(void **state)
{
	const struct wire_exchange_connect request = { WIRE_EXCHANGE_MAGIC, WIRE_EXCHANGE_VERSION,
						       0, weir_key_id(&key_a) };

	(void)state;
	assert_listener_gives_nothing("listening-exchange", &request, sizeof(request));
}

static void assert_caller_gives_nothing(const char *role)
{
	const struct shared_pub *pub;
	struct helper caller;
	struct rogue rogue;
	char address[64], line[64];

	rogue_open(&rogue);
	rogue_listen(&rogue, address);
	helper_start(&caller, role, address, line);
	assert_string_equal(line, "calls");
	rogue_accept(&rogue);
	pub = rogue_greet(&rogue);
	assert_kernel_allows_attaching(pub);
	rogue_ask(&rogue, pub);
	assert_nothing_got(&rogue);
	rogue_close(&rogue, pub);
	helper_stop(&caller);
}

static void a_client_gives_a_false_donor_nothing(void **state)
{
	(void)state;
	assert_caller_gives_nothing("caller");
}

static void a_mux_gives_a_false_peer_nothing(void **state)
{
	(void)state;
	assert_caller_gives_nothing("mux");
}

static void an_exchange_gives_a_false_peer_nothing(void **state)
{
	(void)state;
	assert_caller_gives_nothing("exchange");
}

/* Whether this process has a descriptor of another's memory. */
static bool has_memory_of(pid_t pid)
{
	char path[32], target[64], memory[32];
	bool has = false;
	ssize_t n;
	int fd;

	snprintf(memory, sizeof(memory), "/proc/%d/mem", (int)pid);
	for (fd = 0; fd < FDS_MAX && !has; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		has = !strcmp(target, memory);
	}
	return has;
}

/* So that copies go the same ways as those of a program without a proof. */
static void a_donor_admits_a_client_that_proves_the_key(void **state)
{
	struct wire_control_region region;
	struct raw_client client;
	struct helper donor;
	char address[64];

	(void)state;
	helper_start(&donor, "donor", "", address);
	assert_int_equal(raw_open(&client, address, &key_a), 0);
	assert_int_equal(raw_create(&client, NULL, MIB, 0, &region), 0);
	assert_int_equal(raw_write(&client, region.addr, region.rkey, MIB), 0);
	assert_int_equal(raw_read(&client, region.addr, region.rkey, MIB), 0);
	assert_true(has_memory_of(donor.pid));
	raw_close(&client);
	helper_stop(&donor);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_donor_gives_a_stranger_nothing),
		cmocka_unit_test(a_client_gives_a_false_donor_nothing),
		cmocka_unit_test(a_listening_mux_gives_a_stranger_nothing),
		cmocka_unit_test(a_listening_exchange_gives_a_stranger_nothing),
		cmocka_unit_test(a_mux_gives_a_false_peer_nothing),
		cmocka_unit_test(an_exchange_gives_a_false_peer_nothing),
		cmocka_unit_test(a_donor_admits_a_client_that_proves_the_key),
	};

	program = argv[0];
	if (argc == 3 && !strcmp(argv[1], "donor"))
		return role_donor(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "caller"))
		return role_caller(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "mux"))
		return role_mux(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "exchange"))
		return role_exchange(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "listening-mux"))
		return role_listening_mux(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "listening-exchange"))
		return role_listening_exchange(argv[2]);
	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
