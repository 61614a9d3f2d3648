// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic verbs odp; devices: softnic; timeout: 120 */
/*
 * Regions that page on demand, null regions, and regions of dma-bufs. Both ends are in the test's
 * process.
 */
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/support/verbs_puppet.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447 /* missing before glibc 2.35 */
#endif

enum { PAGE = 4096, BIG = 40 << 20, ON_DEMAND = ALL_ACCESS | IBV_ACCESS_ON_DEMAND };

struct odp_ends {
	struct endpoint a, b; /* a asks, b has the region */
};

static int setup(void **state)
{
	struct odp_ends *s = calloc(1, sizeof(*s));
	struct endpoint_name to_a, to_b;

	*state = s;
	end_open(&s->a, ALL_ACCESS);
	end_open(&s->b, ALL_ACCESS);
	to_a = end_name(&s->a);
	to_b = end_name(&s->b);
	end_connect(&s->a, &to_b, &plain);
	end_connect(&s->b, &to_a, &plain);
	return 0;
}

static int teardown(void **state)
{
	struct odp_ends *s = *state;

	end_close(&s->a);
	end_close(&s->b);
	free(s);
	return 0;
}

static uint8_t *map_at(void *at, int prot, int flags, int fd, size_t length)
{
	uint8_t *p = mmap(at, length, prot, flags | (at ? MAP_FIXED : 0), fd, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static uint8_t *map_fresh(void *at, size_t length)
{
	return map_at(at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, length);
}

static struct ibv_mr *must_register(struct endpoint *e, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, addr, length, access);

	assert_non_null(mr);
	return mr;
}

/* One work request of @e with a list; the status of its completion. */
static enum ibv_wc_status run(struct endpoint *e, enum ibv_wr_opcode op, struct ibv_sge *sges,
			      int num_sge, uint32_t rkey, void *there)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = sges,
		.num_sge = num_sge,
		.wr.rdma = { (uintptr_t)there, rkey },
	};

	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
	return wait_wc(e).status;
}

static struct ibv_sge piece(const struct ibv_mr *mr, void *addr, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)addr, length, mr->lkey };
}

static enum ibv_wc_status write_byte(struct odp_ends *s, uint8_t value, uint32_t rkey, void *there)
{
	struct ibv_sge sge = piece(s->a.mr, s->a.buf, 1);

	s->a.buf[0] = value;
	return run(&s->a, IBV_WR_RDMA_WRITE, &sge, 1, rkey, there);
}

static void test_the_device_tells_that_it_pages(void **state)
{
	const uint32_t messages = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
	struct ibv_device_attr_ex ex;
	struct odp_ends *s = *state;

	assert_int_equal(ibv_query_device_ex(s->a.ctx, NULL, &ex), 0);
	assert_int_equal(ex.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(ex.odp_caps.per_transport_caps.rc_odp_caps,
			 messages | IBV_ODP_SUPPORT_SRQ_RECV | IBV_ODP_SUPPORT_WRITE |
				 IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC);
	assert_int_equal(ex.odp_caps.per_transport_caps.uc_odp_caps,
			 messages | IBV_ODP_SUPPORT_WRITE);
	assert_int_equal(ex.odp_caps.per_transport_caps.ud_odp_caps,
			 messages | IBV_ODP_SUPPORT_SRQ_RECV);
}

static void test_pages_may_come_after_registration_and_go_before_its_end(void **state)
{
	struct odp_ends *s = *state;
	uint8_t *at = map_at(NULL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, PAGE);
	struct ibv_mr *mr;

	assert_null(ibv_reg_mr(s->b.pd, at, PAGE, ALL_ACCESS));
	assert_int_equal(errno, EFAULT);
	mr = must_register(&s->b, at, PAGE, ON_DEMAND);
	map_fresh(at, PAGE);
	assert_int_equal(write_byte(s, 7, mr->rkey, at + 100), IBV_WC_SUCCESS);
	assert_int_equal(at[100], 7);
	assert_int_equal(munmap(at, PAGE), 0);
	assert_int_equal(write_byte(s, 8, mr->rkey, at + 100), IBV_WC_REM_OP_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* As a NIC that faults pages in would refuse the access: also to code and guard pages. */
static void test_protected_pages_are_not_written(void **state)
{
	struct odp_ends *s = *state;
	uint8_t *at = map_at(NULL, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, PAGE);
	struct ibv_mr *mr = must_register(&s->b, at, PAGE, ON_DEMAND);

	assert_int_equal(write_byte(s, 7, mr->rkey, at + 100), IBV_WC_REM_OP_ERR);
	assert_int_equal(at[100], 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(at, PAGE), 0);
}

/* Also if the CPU could copy, because the peer's memory is mapped here. */
static void test_a_missing_local_page_is_an_error(void **state)
{
	struct odp_ends *s = *state;
	uint8_t *to = map_at(NULL, PROT_READ | PROT_WRITE, MAP_SHARED, sealed_file(PAGE), PAGE);
	uint8_t *at = map_at(NULL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, PAGE);
	struct ibv_mr *far = must_register(&s->b, to, PAGE, ALL_ACCESS);
	struct ibv_mr *mr = must_register(&s->a, at, PAGE, ON_DEMAND);
	struct ibv_sge sge = piece(mr, at, 8);

	assert_int_equal(run(&s->a, IBV_WR_RDMA_WRITE, &sge, 1, far->rkey, to),
			 IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(far), 0);
	assert_int_equal(munmap(at, PAGE), 0);
	assert_int_equal(munmap(to, PAGE), 0);
}

static void test_other_memory_at_the_same_addresses_is_reached(void **state)
{
	struct odp_ends *s = *state;
	int fd = sealed_file(PAGE);
	uint8_t *file = map_at(NULL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	uint8_t *at = map_at(NULL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
	struct ibv_mr *mr = must_register(&s->b, at, PAGE, ON_DEMAND);

	assert_int_equal(write_byte(s, 1, mr->rkey, at), IBV_WC_SUCCESS);
	assert_int_equal(file[0], 1);
	map_fresh(at, PAGE);
	assert_int_equal(write_byte(s, 2, mr->rkey, at), IBV_WC_SUCCESS);
	assert_int_equal(at[0], 2);
	assert_int_equal(file[0], 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(at, PAGE);
	munmap(file, PAGE);
	close(fd);
}

static void test_one_region_may_be_all_addresses(void **state)
{
	struct odp_ends *s = *state;
	struct ibv_mr *here = must_register(&s->a, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *there = must_register(&s->b, NULL, SIZE_MAX, ON_DEMAND);
	uint64_t from = 0x1122334455667788, *to = calloc(1, sizeof(*to));
	struct ibv_sge sge = piece(here, &from, sizeof(from));

	assert_int_equal(run(&s->a, IBV_WR_RDMA_WRITE, &sge, 1, there->rkey, to), IBV_WC_SUCCESS);
	assert_true(*to == from);
	assert_null(ibv_reg_mr(s->a.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(ibv_dereg_mr(here), 0);
	assert_int_equal(ibv_dereg_mr(there), 0);
	free(to);
}

static void test_advice_is_checked_and_taken(void **state)
{
	const enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH;
	const enum ibv_advise_mr_advice write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const enum ibv_advise_mr_advice nothing = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	struct odp_ends *s = *state;
	uint8_t *at = map_fresh(NULL, 2 * PAGE);
	struct ibv_mr *mr = must_register(&s->b, at, 2 * PAGE, ON_DEMAND);
	struct ibv_mr *read_only = must_register(&s->b, at, PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = piece(mr, at, 2 * PAGE), beyond = piece(mr, at, 2 * PAGE + 1);
	struct ibv_sge unknown = { (uintptr_t)at, 1, mr->lkey + 1 };
	struct ibv_sge pinned = piece(s->b.mr, s->b.buf, 1), fixed = piece(read_only, at, 1);
	unsigned char is_there[2];

	assert_int_equal(ibv_advise_mr(s->b.pd, nothing, flush, &sge, 1), 0);
	assert_int_equal(mincore(at, 2 * PAGE, is_there), 0);
	assert_int_equal(is_there[0] & 1, 0);
	assert_int_equal(ibv_advise_mr(s->b.pd, write, flush, &sge, 1), 0);
	assert_int_equal(mincore(at, 2 * PAGE, is_there), 0);
	assert_int_equal(is_there[0] & is_there[1] & 1, 1);
	assert_int_equal(ibv_advise_mr(s->b.pd, read, 0, &fixed, 1), 0);
	assert_int_equal(ibv_advise_mr(s->b.pd, write, 0, &fixed, 1), EPERM);
	assert_int_equal(ibv_advise_mr(s->b.pd, read, 0, &beyond, 1), EFAULT);
	assert_int_equal(ibv_advise_mr(s->b.pd, read, 0, &unknown, 1), ENOENT);
	assert_int_equal(ibv_advise_mr(s->b.pd, read, 0, &pinned, 1), EINVAL);
	assert_int_equal(ibv_advise_mr(s->a.pd, read, 0, &sge, 1), EPERM);
	assert_int_equal(ibv_advise_mr(s->b.pd, read, 0, &sge, 0), EINVAL);
	assert_int_equal(ibv_advise_mr(s->b.pd, read, 1 << 7, &sge, 1), EINVAL);
	assert_int_equal(ibv_advise_mr(s->b.pd, (enum ibv_advise_mr_advice)9, 0, &sge, 1),
			 EOPNOTSUPP);
	/* A thread of softnic could map something in a hole. */
	assert_int_equal(mprotect(at, 2 * PAGE, PROT_NONE), 0);
	assert_int_equal(ibv_advise_mr(s->b.pd, read, 0, &sge, 1), 0);
	assert_int_equal(ibv_advise_mr(s->b.pd, read, flush, &sge, 1), EFAULT);
	munmap(at, 2 * PAGE);
	assert_int_equal(ibv_dereg_mr(read_only), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* The pieces before and after the null piece keep their places. */
static void test_a_null_piece_is_zeros_when_sent(void **state)
{
	struct odp_ends *s = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(s->a.pd);
	struct ibv_sge sges[3];

	assert_non_null(null);
	memcpy(s->a.buf, "abcdef", 6);
	memset(s->b.buf, 'x', 12);
	sges[0] = piece(s->a.mr, s->a.buf, 3);
	sges[1] = piece(null, (void *)-64ul, 5);
	sges[2] = piece(s->a.mr, s->a.buf + 3, 3);
	assert_int_equal(run(&s->a, IBV_WR_RDMA_WRITE, sges, 3, s->b.mr->rkey, s->b.buf),
			 IBV_WC_SUCCESS);
	assert_memory_equal(s->b.buf, "abc\0\0\0\0\0defx", 12);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

static void test_a_null_piece_takes_what_is_read_and_received(void **state)
{
	struct odp_ends *s = *state;
	struct ibv_mr *null_a = ibv_alloc_null_mr(s->a.pd), *null_b = ibv_alloc_null_mr(s->b.pd);
	struct ibv_sge to_a[2], to_b[2], from = piece(s->a.mr, s->a.buf, 8);
	struct ibv_recv_wr recv = { .sg_list = to_b, .num_sge = 2 }, *bad;

	memcpy(s->b.buf, "12345678", 8);
	memset(s->a.buf, 'x', 8);
	to_a[0] = piece(null_a, NULL, 5);
	to_a[1] = piece(s->a.mr, s->a.buf, 3);
	assert_int_equal(run(&s->a, IBV_WR_RDMA_READ, to_a, 2, s->b.mr->rkey, s->b.buf),
			 IBV_WC_SUCCESS);
	assert_memory_equal(s->a.buf, "678xxxxx", 8);

	to_b[0] = piece(null_b, (void *)12345, 6);
	to_b[1] = piece(s->b.mr, s->b.buf, 2);
	memcpy(s->a.buf, "abcdefgh", 8);
	assert_int_equal(ibv_post_recv(s->b.qp, &recv, &bad), 0);
	assert_int_equal(run(&s->a, IBV_WR_SEND, &from, 1, 0, NULL), IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(&s->b).status, IBV_WC_SUCCESS);
	assert_memory_equal(s->b.buf, "gh345678", 8);

	/* Discarded bytes are not sent. */
	to_a[0] = piece(null_a, NULL, 8);
	assert_int_equal(run(&s->a, IBV_WR_RDMA_WRITE, to_a, 1, s->b.mr->rkey, s->b.buf),
			 IBV_WC_SUCCESS);
	assert_memory_equal(s->b.buf, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal(ibv_dereg_mr(null_a), 0);
	assert_int_equal(ibv_dereg_mr(null_b), 0);
}

static void test_a_null_region_has_no_bounds(void **state)
{
	struct odp_ends *s = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(s->a.pd);
	uint8_t *at = map_fresh(NULL, BIG);
	struct ibv_mr *mr = must_register(&s->b, at, BIG, ON_DEMAND);
	struct ibv_sge sge = piece(null, (void *)(UINT64_MAX - 5), BIG);
	size_t i;

	memset(at, 'x', BIG);
	assert_int_equal(run(&s->a, IBV_WR_RDMA_READ, &sge, 1, mr->rkey, at), IBV_WC_SUCCESS);
	assert_int_equal(run(&s->a, IBV_WR_RDMA_WRITE, &sge, 1, mr->rkey, at), IBV_WC_SUCCESS);
	for (i = 0; i < BIG && !at[i]; i++)
		;
	assert_int_equal(i, BIG);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(null), 0);
	munmap(at, BIG);
}

static void test_a_null_region_is_for_its_own_domain_only(void **state)
{
	struct odp_ends *s = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(s->b.pd);

	assert_int_equal(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(null->rkey, 0);
	assert_int_equal(write_byte(s, 1, null->lkey, NULL), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

/* -1: the kernel makes no dma-bufs for this user. */
static int make_dmabuf(size_t size)
{
	struct udmabuf_create create = { .memfd = sealed_file(size), .size = size };
	int maker = open("/dev/udmabuf", O_RDWR), fd = -1;

	if (maker >= 0) {
		fd = ioctl(maker, UDMABUF_CREATE, &create);
		assert_true(fd >= 0);
		close(maker);
	}
	close(create.memfd);
	return fd;
}

/* The region begins within a page of the buffer, and at any address with the same page offset. */
static void check_reads_and_writes(struct odp_ends *s, int fd)
{
	enum { OFFSET = PAGE + 100, LENGTH = PAGE };
	const uint64_t iova = 0x12340064;
	uint8_t *file = map_at(NULL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4 * PAGE);
	struct ibv_mr *there = ibv_reg_dmabuf_mr(s->b.pd, OFFSET, LENGTH, iova, fd, ALL_ACCESS);
	struct ibv_mr *here = ibv_reg_dmabuf_mr(s->a.pd, OFFSET, LENGTH, iova, fd, 0);
	struct ibv_sge sge = piece(s->a.mr, s->a.buf, 8), from;

	assert_non_null(there);
	assert_non_null(here);
	assert_ptr_equal(there->addr, (void *)OFFSET);
	memcpy(s->a.buf, "12345678", 8);
	assert_int_equal(run(&s->a, IBV_WR_RDMA_WRITE, &sge, 1, there->rkey,
			     (void *)(iova + LENGTH - 8)),
			 IBV_WC_SUCCESS);
	assert_int_equal(run(&s->a, IBV_WR_RDMA_READ, &sge, 1, there->rkey,
			     (void *)(iova + LENGTH - 8)),
			 IBV_WC_SUCCESS);
	assert_memory_equal(file + OFFSET + LENGTH - 8, "12345678", 8);
	from = piece(here, (void *)(iova + LENGTH - 8), 8);
	assert_int_equal(run(&s->a, IBV_WR_RDMA_WRITE, &from, 1, s->b.mr->rkey, s->b.buf),
			 IBV_WC_SUCCESS);
	assert_memory_equal(s->b.buf, "12345678", 8);
	assert_int_equal(run(&s->a, IBV_WR_RDMA_WRITE, &sge, 1, there->rkey,
			     (void *)(iova + LENGTH - 7)),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(here), 0);
	assert_int_equal(ibv_dereg_mr(there), 0);
	munmap(file, 4 * PAGE);
}

static void test_a_memfd_is_read_and_written(void **state)
{
	int fd = sealed_file(4 * PAGE);

	check_reads_and_writes(*state, fd);
	close(fd);
}

/* A dma-buf works, or is refused: the kernel decides how it maps the pages. */
static void test_a_dma_buf_is_read_and_written_or_refused(void **state)
{
	struct odp_ends *s = *state;
	int fd = make_dmabuf(4 * PAGE);
	struct ibv_mr *mr;

	if (fd < 0)
		return;
	mr = ibv_reg_dmabuf_mr(s->b.pd, 0, PAGE, 0, fd, ALL_ACCESS);
	if (mr) {
		assert_int_equal(ibv_dereg_mr(mr), 0);
		check_reads_and_writes(s, fd);
	} else {
		assert_int_equal(errno, EOPNOTSUPP);
	}
	close(fd);
}

/*
 * process_vm_readv refuses the pages of a secret memfd as it refuses VM_PFNMAP. Of the files that
 * have a size and are mapped with VM_PFNMAP, most machines let only root open one.
 */
static void test_pages_that_no_peer_can_copy_are_refused(void **state)
{
	struct odp_ends *s = *state;
	int fd = (int)syscall(SYS_memfd_secret, O_CLOEXEC);

	if (fd < 0)
		return; /* before Linux 6.5, only as a boot parameter says */
	assert_int_equal(ftruncate(fd, PAGE), 0);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(s->b.pd, 0, PAGE, 0, fd, ALL_ACCESS));
	assert_int_equal(errno, EOPNOTSUPP);
	close(fd);
}

static void test_a_dma_buf_that_cannot_be_a_region_is_refused(void **state)
{
	const int writes = IBV_ACCESS_LOCAL_WRITE;
	struct odp_ends *s = *state;
	int fd = sealed_file(PAGE), unmappable = open("/proc/self/status", O_RDONLY);
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(s->b.pd, 0, PAGE, PAGE, fd, writes);
	const struct {
		int fd, access, error;
		uint64_t offset, length, iova;
	} wrong[] = {
		{ -1, writes, EBADF, 0, PAGE, 0 },
		{ fd, writes, EINVAL, 0, 0, 0 },
		{ fd, writes, EINVAL, 1, PAGE, 1 }, /* beyond the end */
		{ fd, writes, EINVAL, UINT64_MAX, 2, UINT64_MAX },
		{ fd, writes, EINVAL, 8, 8, 9 }, /* another offset within the page */
		{ fd, IBV_ACCESS_REMOTE_WRITE, EINVAL, 0, PAGE, 0 },
		{ fd, IBV_ACCESS_ON_DEMAND, EOPNOTSUPP, 0, PAGE, 0 },
		{ unmappable, 0, EINVAL, 0, PAGE, 0 },
	};
	size_t i;

	assert_non_null(mr);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		errno = 0;
		assert_null(ibv_reg_dmabuf_mr(s->b.pd, wrong[i].offset, wrong[i].length,
					      wrong[i].iova, wrong[i].fd, wrong[i].access));
		assert_int_equal(errno, wrong[i].error);
	}
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close(unmappable);
	close(fd);
}

static void test_no_option_enhances_a_connection(void **state)
{
	struct odp_ends *s = *state;
	struct ibv_ece ece = { .vendor_id = 1 };

	assert_int_equal(ibv_set_ece(s->a.qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(s->a.qp, &ece), 0);
	assert_int_not_equal(ece.vendor_id, 0);
	assert_int_equal(ece.options | ece.comp_mask, 0);
	assert_int_equal(ibv_set_ece(s->a.qp, &ece), 0);
	ece.comp_mask = 1;
	assert_int_equal(ibv_set_ece(s->a.qp, &ece), EINVAL);
}

#define ODP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static int tests(void)
{
	static const struct CMUnitTest list[] = {
		ODP(test_the_device_tells_that_it_pages),
		ODP(test_pages_may_come_after_registration_and_go_before_its_end),
		ODP(test_protected_pages_are_not_written),
		ODP(test_a_missing_local_page_is_an_error),
		ODP(test_other_memory_at_the_same_addresses_is_reached),
		ODP(test_one_region_may_be_all_addresses),
		ODP(test_advice_is_checked_and_taken),
		ODP(test_a_null_piece_is_zeros_when_sent),
		ODP(test_a_null_piece_takes_what_is_read_and_received),
		ODP(test_a_null_region_has_no_bounds),
		ODP(test_a_null_region_is_for_its_own_domain_only),
		ODP(test_a_memfd_is_read_and_written),
		ODP(test_a_dma_buf_is_read_and_written_or_refused),
		ODP(test_pages_that_no_peer_can_copy_are_refused),
		ODP(test_a_dma_buf_that_cannot_be_a_region_is_refused),
		ODP(test_no_option_enhances_a_connection),
	};

	return cmocka_run_group_tests(list, NULL, NULL);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, tests);
}
