// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic export; devices: softnic; timeout: 120 */
/*
 * Memory mapped by peers: which memory qualifies, how much peers reach, and when peers unmap
 * it.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softnic/shm/peer_map.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp/qp.h"
#include "stuck_file.h"
#include "tests/support/verbs_puppet.h"

enum { PAGE = 4096, SIZE = 16 * PAGE, HUGE = 2 << 20, ROUNDS = 50 };

static uint32_t file_of(const struct ibv_mr *mr)
{
	return load_relaxed(&nic.pub->mrs[mr->handle].file);
}

static int unsealed_file(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, SIZE), 0);
	return fd;
}

static uint8_t *map_unsealed(int *fd)
{
	*fd = unsealed_file();
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

static uint8_t *map_sealed(int *fd)
{
	*fd = sealed_file(SIZE);
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

static uint8_t *map_in_two(int *fd)
{
	uint8_t *at = map_sealed(fd);

	madvise(at + SIZE / 2, PAGE, MADV_DONTFORK);
	return at;
}

static uint8_t *map_with_a_read_only_page(int *fd)
{
	uint8_t *at = map_sealed(fd);

	mprotect(at + SIZE / 2, PAGE, PROT_READ);
	return at;
}

static uint8_t *map_out_of_order(int *fd)
{
	uint8_t *at = map_sealed(fd);

	mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, *fd, 0);
	return at;
}

static uint8_t *map_two_files(int *fd)
{
	uint8_t *at = map_sealed(fd);
	int other = sealed_file(SIZE);

	mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, other, PAGE);
	close(other);
	return at;
}

static uint8_t *map_with_a_private_page(int *fd)
{
	uint8_t *at = map_sealed(fd);

	mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, *fd, PAGE);
	return at;
}

static uint8_t *map_beyond_the_end(int *fd)
{
	*fd = sealed_file(SIZE / 2);
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

static uint8_t *map_a_copy(int *fd)
{
	*fd = sealed_file(SIZE);
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, *fd, 0);
}

static uint8_t *map_anonymous(int *fd)
{
	*fd = -1;
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static uint8_t *map_without_a_descriptor(int *fd)
{
	uint8_t *at = map_sealed(fd);

	close(*fd);
	*fd = -1;
	return at;
}

/* MAP_FAILED without huge pages. */
static uint8_t *map_huge(int *fd)
{
	*fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (*fd < 0 || ftruncate(*fd, HUGE) < 0 || fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return MAP_FAILED;
	return mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

static const struct {
	const char *name;
	uint8_t *(*map)(int *fd);
	bool is_shared;
} memories[] = {
	{ "a file that cannot shrink", map_sealed, true },
	{ "one run of it in several mappings", map_in_two, true },
	{ "a file that may shrink", map_unsealed, false },
	{ "pages of it that are not in order", map_out_of_order, false },
	{ "two files", map_two_files, false },
	{ "a file with a private page amid", map_with_a_private_page, false },
	{ "a mapping longer than its file", map_beyond_the_end, false },
	{ "a private mapping of a file", map_a_copy, false },
	{ "shared memory without a file", map_anonymous, false },
	{ "a file of which some may only be read", map_with_a_read_only_page, false },
	{ "a file that nobody has open", map_without_a_descriptor, false },
	{ "huge pages", map_huge, false },
};

static void test_only_memory_that_stays_valid_is_shared(void **state)
{
	struct endpoint e;
	unsigned int i;

	(void)state;
	end_open(&e, ALL_ACCESS);
	for (i = 0; i < sizeof(memories) / sizeof(memories[0]); i++) {
		int fd;
		uint8_t *at = memories[i].map(&fd);
		struct ibv_mr *mr;

		if (at == MAP_FAILED)
			continue;
		mr = ibv_reg_mr(e.pd, at, SIZE, 0);
		assert_non_null(mr);
		if (!!file_of(mr) != memories[i].is_shared)
			fail_msg("%s: file %u", memories[i].name, file_of(mr));
		assert_int_equal(ibv_dereg_mr(mr), 0);
		munmap(at, memories[i].map == map_huge ? HUGE : SIZE);
		close(fd);
	}
	end_close(&e);
}

/* The peer is a puppet with a sealed file of its own. */
static struct peer_map_file *near_of(const struct endpoint *e)
{
	struct shm_peer *peer = to_qp(e->qp)->remote.peer;
	uint32_t file = load_relaxed(&peer->pub->mrs[e->remote.rkey >> 16].file);

	assert_int_not_equal(file, 0);
	return &peer->peer_map.files[file % SHARED_FILES];
}

static void write_until_mapped(struct endpoint *e)
{
	uint64_t deadline = now_ms() + PATIENCE_MS;
	struct test_wr w;

	do_wr(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	while (!load_acquire(&near_of(e)->number) && now_ms() < deadline)
		do_wr(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_SUCCESS);
	assert_int_not_equal(load_acquire(&near_of(e)->number), 0);
}

enum { SKIP = 2 };

/*
 * The stuck file's descriptor precedes the wanted file. A process that queries the stuck file
 * blocks until the file system behind the file ends.
 */
static void register_beside_a_stuck_file(int told)
{
	struct endpoint e;
	uint8_t *at, result = SKIP;
	int fd;

	setpgid(0, 0);
	if (stuck_file_open() >= 0) {
		at = map_sealed(&fd);
		end_open(&e, ALL_ACCESS);
		result = !!file_of(ibv_reg_mr(e.pd, at, SIZE, IBV_ACCESS_LOCAL_WRITE));
	}
	if (write(told, &result, 1) == 1)
		pause();
	_exit(1);
}

static void test_other_files_of_the_program_are_not_asked(void **state)
{
	struct pollfd p = { .events = POLLIN };
	uint8_t result = 0;
	int ends[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid)
		register_beside_a_stuck_file(ends[1]);
	setpgid(pid, pid);
	close(ends[1]);
	p.fd = ends[0];
	if (poll(&p, 1, PATIENCE_MS) == 1)
		assert_int_equal(read(ends[0], &result, 1), 1);
	close(ends[0]);
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (result == SKIP)
		skip();
	assert_int_equal(result, 1);
}

static void test_a_writer_maps_the_memory_for_all_operations(void **state)
{
	struct puppet_pair *pair = *state;
	struct endpoint *e = &pair->e;
	struct test_wr w;

	write_until_mapped(e);
	memset(e->buf, 0x5a, SIZE);
	do_wr(e, wr_make(&w, e, IBV_WR_RDMA_WRITE, 0, SIZE, PAGE + 1), IBV_WC_SUCCESS);
	assert_int_equal(tell(&pair->p, ORDER_PEEK, SIZE, 0, 0).value, 0x5a5a5a5a5a5a5a5aull);
	tell(&pair->p, ORDER_POKE, SIZE, 0, 41);
	do_wr(e, wr_make(&w, e, IBV_WR_RDMA_READ, 0, 8, SIZE), IBV_WC_SUCCESS);
	assert_int_equal(e->buf[0], 41);
	wr_make(&w, e, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 8, SIZE);
	w.wr.wr.atomic.compare_add = 1;
	do_wr(e, &w, IBV_WC_SUCCESS);
	assert_int_equal(tell(&pair->p, ORDER_PEEK, SIZE, 0, 0).value, 42);
	assert_int_equal(tell(&pair->p, ORDER_POST_RECV, 2 * SIZE, 8, 1).result, 0);
	do_wr(e, wr_make(&w, e, IBV_WR_SEND, 8, 8, 0), IBV_WC_SUCCESS);
	assert_int_equal(tell(&pair->p, ORDER_PEEK, 2 * SIZE, 0, 0).value, 41);
}

static void test_a_peer_lets_go_after_the_last_region_is_gone(void **state)
{
	struct puppet_pair *pair = *state;
	struct peer_map_file *file;
	uint64_t deadline = now_ms() + PATIENCE_MS;
	struct test_wr w;

	write_until_mapped(&pair->e);
	file = near_of(&pair->e);
	assert_int_equal(tell(&pair->p, ORDER_DEREGISTER, 0, 0, 0).result, 0);
	while (load_acquire(&file->number) && now_ms() < deadline)
		usleep(20);
	assert_int_equal(load_acquire(&file->number), 0);
	do_wr(&pair->e, wr_make(&w, &pair->e, IBV_WR_RDMA_WRITE, 0, 8, 0), IBV_WC_REM_ACCESS_ERR);
}

/* The number of descriptors on the tests' files. */
static int num_files(void)
{
	char path[32], name[16];
	int fd, n = 0;

	for (fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n += readlink(path, name, sizeof(name)) >= 12 && !memcmp(name, "/memfd:test ", 12);
	}
	return n;
}

static void test_files_beyond_the_bound_are_not_shared_and_places_come_back(void **state)
{
	struct ibv_mr *mrs[SHARED_FILES + 1];
	uint8_t *at[SHARED_FILES + 1];
	struct endpoint e;
	int i, before;

	(void)state;
	end_open(&e, ALL_ACCESS);
	before = num_files();
	/* The test's endpoint uses one slot. */
	for (i = 0; i <= SHARED_FILES; i++) {
		int fd = sealed_file(SIZE);

		at[i] = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		mrs[i] = ibv_reg_mr(e.pd, at[i], SIZE, IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(mrs[i]);
		close(fd);
	}
	assert_int_equal(file_of(mrs[SHARED_FILES]), 0);
	assert_int_equal(num_files(), before + SHARED_FILES - 1);
	for (i = 0; i <= SHARED_FILES; i++) {
		assert_int_equal(ibv_dereg_mr(mrs[i]), 0);
		munmap(at[i], SIZE);
	}
	assert_int_equal(num_files(), before);
	end_close(&e);
}

/* A UC queue pair connected to itself: a refused write is dropped, and the QP goes on. */
static struct ibv_qp *open_writer(struct endpoint *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UC,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { 1, 1, 1, 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_4096,
		.ah_attr = { .port_num = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = qp->qp_num;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
			 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return qp;
}

struct mapping_writer {
	struct endpoint e;
	struct ibv_qp *qp;
	uint64_t addr;
	uint32_t rkey;
	bool stop;
};

static void *write_on(void *arg)
{
	struct mapping_writer *writer = arg;
	struct ibv_send_wr *bad;
	struct test_wr w;

	while (!load_acquire(&writer->stop)) {
		wr_make(&w, &writer->e, IBV_WR_RDMA_WRITE, 0, SIZE, 0);
		w.wr.wr.rdma.remote_addr = load_acquire(&writer->addr);
		w.wr.wr.rdma.rkey = load_acquire(&writer->rkey);
		if (ibv_post_send(writer->qp, &w.wr, &bad) ||
		    wait_wc_awake(&writer->e).status != IBV_WC_SUCCESS)
			return arg;
	}
	return NULL;
}

/* Deregister a region under a writer: afterwards its bytes no longer change. */
static void come_and_go(struct mapping_writer *writer, uint8_t fill)
{
	const struct shm_peer *peer = to_qp(writer->qp)->remote.peer;
	uint64_t deadline = now_ms() + PATIENCE_MS;
	int fd = sealed_file(SIZE), i;
	uint8_t *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct ibv_mr *mr = ibv_reg_mr(writer->e.pd, at, SIZE, ALL_ACCESS);
	uint32_t file = file_of(mr);

	close(fd);
	store_release(&writer->addr, (uintptr_t)at);
	store_release(&writer->rkey, mr->rkey);
	while (load_acquire(&peer->peer_map.files[file % SHARED_FILES].number) != file &&
	       now_ms() < deadline)
		usleep(20);
	assert_int_equal(load_acquire(&peer->peer_map.files[file % SHARED_FILES].number), file);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	memset(at, fill, SIZE);
	for (i = 0; i < 20; i++)
		sched_yield();
	for (i = 0; i < SIZE; i++)
		assert_int_equal(at[i], fill);
	munmap(at, SIZE);
}

static void test_files_come_and_go_while_they_are_written_to(void **state)
{
	struct mapping_writer *writer = calloc(1, sizeof(*writer));
	struct endpoint *e = &writer->e;
	pthread_t thread;
	void *failed;
	int i;

	(void)state;
	end_open(e, ALL_ACCESS);
	memset(e->buf, 0xff, SIZE);
	writer->qp = open_writer(e);
	writer->addr = (uintptr_t)e->buf + SIZE;
	writer->rkey = e->mr->rkey;
	assert_int_equal(pthread_create(&thread, NULL, write_on, writer), 0);
	for (i = 0; i < ROUNDS; i++)
		come_and_go(writer, i);
	store_release(&writer->stop, true);
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_int_equal(ibv_destroy_qp(writer->qp), 0);
	end_close(e);
	free(writer);
}

/* A peer whose answers the test controls. */
static struct shm_peer *lying_peer(uint32_t number)
{
	struct shared_pub *pub = mmap(NULL, sizeof(*pub), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct shm_peer *peer = calloc(1, sizeof(*peer));

	assert_true(pub != MAP_FAILED);
	pub->files[number % SHARED_FILES] = number;
	peer->pub = pub;
	peer->target.by_mapping = true;
	peer->peer_map.files[number % SHARED_FILES].asked = number;
	return peer;
}

static void free_peer(struct shm_peer *peer)
{
	peer_map_fini(&peer->peer_map);
	munmap((void *)peer->pub, sizeof(*peer->pub));
	free(peer);
}

static void test_a_descriptor_of_the_wrong_kind_is_not_mapped(void **state)
{
	const int wrong[] = { -1, unsealed_file(), open("/dev/zero", O_RDWR), open("/", O_RDONLY) };
	const uint32_t number = SHARED_FILES + 7;
	struct shm_peer *peer = lying_peer(number);
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		peer_map_add(peer, number, wrong[i]);
		assert_int_equal(peer->peer_map.files[7].number, 0);
		close(wrong[i]);
	}
	free_peer(peer);
}

static void test_no_place_outside_of_a_file_is_found(void **state)
{
	static const struct {
		const char *name;
		uint64_t offset, length;
		bool found;
	} places[] = {
		{ "all of it", 0, SIZE, true },
		{ "its last byte", SIZE - 1, 1, true },
		{ "one byte more", SIZE - 1, 2, false },
		{ "behind it", SIZE + 1, 1, false },
		{ "a length that wraps around", 1, UINT64_MAX, false },
		{ "an offset that wraps around", UINT64_MAX, 2, false },
	};
	const uint32_t number = SHARED_FILES + 7;
	struct shm_peer *peer = lying_peer(number);
	int fd = sealed_file(SIZE);
	unsigned int i;

	(void)state;
	peer_map_add(peer, number, fd);
	assert_int_equal(peer->peer_map.files[7].number, number);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct mr_place place = { 0, places[i].offset, number };

		if (!!peer_map_find(peer, &place, places[i].length) != places[i].found)
			fail_msg("%s", places[i].name);
	}
	close(fd);
	free_peer(peer);
}

/* PROCMAP_QUERY of <linux/fs.h>, which older headers lack. */
static bool kernel_tells(void)
{
	uint64_t query[13] = { sizeof(query), 0, (uintptr_t)query };
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool tells = !ioctl(maps, _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, sizeof(query)), query);

	close(maps);
	return tells;
}

/*
 * One thread copies like a peer. The other polls the last word or byte, then checks all bytes
 * before it.
 */
struct fd_message {
	struct copy_target target;
	uint8_t *at;
	size_t length;
	uint8_t round; /* last round read; the copier goes on */
};

enum { LONGEST = 700, TIMES = 3 };

static void *copy_in_rounds(void *arg)
{
	static struct shared_life life;
	struct fd_message *m = arg;
	uint8_t from[LONGEST];
	uint8_t round;

	m->target.life = &life;
	for (round = 1; round <= TIMES; round++) {
		struct iovec here = { from, m->length }, there = { m->at, m->length };

		memset(from, round, sizeof(from));
		assert_int_equal(copy_here(&m->target, true, &here, 1, &there, 1, NULL), 0);
		while (load_acquire(&m->round) != round)
			sched_yield();
	}
	return NULL;
}

/* Whether the whole last word, or byte, is of this round. */
static bool has_come(const uint8_t *end, bool by_word, uint8_t round)
{
	if (by_word)
		return load_acquire((const uint64_t *)end - 1) == 0x0101010101010101ull * round;
	return load_acquire(end - 1) == round;
}

static void read_in_rounds(struct fd_message *m)
{
	const uint8_t *end = m->at + m->length;
	bool by_word = m->length >= 8 && !((uintptr_t)end % 8);
	uint8_t round;
	size_t i;

	for (round = 1; round <= TIMES; round++) {
		while (!has_come(end, by_word, round))
			sched_yield();
		for (i = 0; i < m->length - (by_word ? 8 : 1); i++)
			if (m->at[i] != round)
				fail_msg("byte %zu of %zu came after the last", i, m->length);
		store_release(&m->round, round);
	}
}

static void test_when_the_end_of_a_message_is_there_all_of_it_is(void **state)
{
	static uint8_t memory[LONGEST + 64] __attribute__((aligned(64)));
	struct fd_message m;
	pthread_t thread;
	size_t length;

	(void)state;
	for (length = 1; length <= LONGEST; length += length < 40 ? 1 : 59) {
		m = (struct fd_message){ .at = memory + length % 8, .length = length };
		memset(memory, 0, sizeof(memory));
		assert_int_equal(pthread_create(&thread, NULL, copy_in_rounds, &m), 0);
		read_in_rounds(&m);
		pthread_join(thread, NULL);
	}
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(test_other_files_of_the_program_are_not_asked),
		cmocka_unit_test(test_only_memory_that_stays_valid_is_shared),
		cmocka_unit_test_setup_teardown(test_a_writer_maps_the_memory_for_all_operations,
						pair_up, pair_down),
		cmocka_unit_test_setup_teardown(test_a_peer_lets_go_after_the_last_region_is_gone,
						pair_up, pair_down),
		cmocka_unit_test(test_files_beyond_the_bound_are_not_shared_and_places_come_back),
		cmocka_unit_test(test_files_come_and_go_while_they_are_written_to),
		cmocka_unit_test(test_a_descriptor_of_the_wrong_kind_is_not_mapped),
		cmocka_unit_test(test_no_place_outside_of_a_file_is_found),
		cmocka_unit_test(test_when_the_end_of_a_message_is_there_all_of_it_is),
	};

	if (!kernel_tells()) {
		printf("1..0 # SKIP the kernel does not say what is mapped where: Linux 6.11 "
		       "does\n");
		return 0;
	}
	setenv("TEST_MEMORY", "shared", 1); /* for the puppets too */
	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
