/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib cuda; devices: softnic-gpu; timeout: 60 */
/*
 * Exchanges with slots in GPU memory. tests/lib/exchange/cuda_stub.c stands for the driver, so
 * only weir's part is tested.
 *
 * Argument: none (no driver), staged (the device does not reach the GPU), or reached.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/libweir_fixture.h"

#define TIMEOUT_NS (60 * SECOND_NS)
#define SLOT_BYTES 1000u
#define SLOTS 8u

static bool is_reached;

struct cuda_meeting {
	struct weir_exchange_listener *listener;
	struct weir_exchange *x;
};

static struct weir_exchange_options options_of(enum weir_exchange_memory memory)
{
	return (struct weir_exchange_options){
		.size = sizeof(struct weir_exchange_options),
		.key = fixture_key(),
		.mode = fixture_mode,
		.slots = SLOTS,
		.slot_bytes = SLOT_BYTES,
		.memory = memory,
	};
}

static void *accept_one(void *arg)
{
	struct cuda_meeting *m = arg;

	assert_int_equal(weir_exchange_accept(m->listener, TIMEOUT_NS, &m->x, NULL), 0);
	return NULL;
}

static void meet(enum weir_exchange_memory one, enum weir_exchange_memory other,
		 struct weir_exchange **a, struct weir_exchange **b)
{
	struct weir_exchange_options listens = options_of(other), connects = options_of(one);
	struct weir_error error = { "" };
	struct cuda_meeting m;
	pthread_t thread;

	if (weir_exchange_listen("127.0.0.1:0", &listens, &m.listener, &error))
		fail_msg("cannot listen: %s", error.text);
	assert_int_equal(pthread_create(&thread, NULL, accept_one, &m), 0);
	if (weir_exchange_connect(weir_exchange_address(m.listener), &connects, a, &error))
		fail_msg("cannot connect: %s", error.text);
	pthread_join(thread, NULL);
	weir_exchange_unlisten(m.listener);
	*b = m.x;
}

/* The driver as a user's program sees it. */
struct gpu {
	void *driver;
	int (*retain)(void **context, int device);
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*alloc)(uint64_t *at, size_t bytes);
	int (*free)(uint64_t at);
	int (*copy)(uint64_t to, uint64_t from, size_t bytes);
	int (*wait)(void *stream);
	int (*ask)(void *value, int attribute, uint64_t at);
};

static struct gpu gpu_enter(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
	struct gpu gpu = {
		driver,
		dlsym(driver, "cuDevicePrimaryCtxRetain"),
		dlsym(driver, "cuCtxPushCurrent_v2"),
		dlsym(driver, "cuCtxPopCurrent_v2"),
		dlsym(driver, "cuMemAlloc_v2"),
		dlsym(driver, "cuMemFree_v2"),
		dlsym(driver, "cuMemcpy"),
		dlsym(driver, "cuStreamSynchronize"),
		dlsym(driver, "cuPointerGetAttribute"),
	};

	assert_int_equal(gpu.retain(&context, 0), 0);
	assert_int_equal(gpu.push(context), 0);
	return gpu;
}

static void gpu_leave(struct gpu *gpu)
{
	void *context;

	assert_int_equal(gpu->pop(&context), 0);
	dlclose(gpu->driver);
}

static void gpu_copy(void *to, const void *from, size_t bytes)
{
	struct gpu gpu = gpu_enter();

	assert_int_equal(gpu.copy((uintptr_t)to, (uintptr_t)from, bytes), 0);
	assert_int_equal(gpu.wait(NULL), 0);
	gpu_leave(&gpu);
}

static void *gpu_alloc(size_t bytes)
{
	struct gpu gpu = gpu_enter();
	uint64_t at;

	assert_int_equal(gpu.alloc(&at, bytes), 0);
	gpu_leave(&gpu);
	return (void *)(uintptr_t)at;
}

static void gpu_free(void *at)
{
	struct gpu gpu = gpu_enter();

	assert_int_equal(gpu.free((uintptr_t)at), 0);
	gpu_leave(&gpu);
}

/* Whether a copy to or from @at completes within the call. */
static bool gpu_waits_for(const void *at)
{
	struct gpu gpu = gpu_enter();
	unsigned int is_on = 0;

	assert_int_equal(gpu.ask(&is_on, 6 /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */, (uintptr_t)at),
			 0);
	gpu_leave(&gpu);
	return is_on;
}

static void without_a_driver_the_open_fails_with_a_reason(void **state)
{
	struct weir_exchange_options options = options_of(WEIR_EXCHANGE_CUDA);
	struct weir_exchange_listener *listener;
	struct weir_error error = { "" };
	struct weir_exchange *x;

	(void)state;
	assert_int_equal(weir_exchange_listen("127.0.0.1:0", &options, &listener, &error), -ENODEV);
	assert_non_null(strstr(error.text, "libcuda.so.1"));
	assert_non_null(strstr(error.text, "host memory"));
	assert_int_equal(weir_exchange_connect("127.0.0.1:1", &options, &x, &error), -ENODEV);
	options.memory = 2;
	assert_int_equal(weir_exchange_listen("127.0.0.1:0", &options, &listener, &error), -EINVAL);
}

static void a_gpu_that_is_not_there_is_named(void **state)
{
	struct weir_exchange_options options = options_of(WEIR_EXCHANGE_CUDA);
	struct weir_exchange_listener *listener;
	struct weir_error error = { "" };

	(void)state;
	options.gpu = 3;
	assert_int_equal(weir_exchange_listen("127.0.0.1:0", &options, &listener, &error), -ENODEV);
	assert_non_null(strstr(error.text, "GPU 3: no CUDA-capable device"));
}

/* Message @i, sometimes longer than a slot, sometimes empty. */
static size_t message_of(unsigned int i, char *data)
{
	size_t length = i * 97 % (3 * SLOT_BYTES);

	memset(data, (int)(i * 31 + 1), length);
	return length;
}

struct cuda_sender {
	struct weir_exchange *x;
	unsigned int count;
};

static void *send_all(void *arg)
{
	struct cuda_sender *s = arg;
	char data[3 * SLOT_BYTES];
	unsigned int i;

	for (i = 0; i < s->count; i++) {
		size_t length = message_of(i, data);

		assert_int_equal(weir_exchange_put(s->x, data, length, WEIR_EXCHANGE_FOREVER, NULL),
				 0);
	}
	assert_int_equal(weir_exchange_finish(s->x, TIMEOUT_NS), 0);
	return NULL;
}

static void send_and_get(struct weir_exchange *from, struct weir_exchange *to)
{
	struct cuda_sender sender = { from, 200 };
	char want[3 * SLOT_BYTES], got[3 * SLOT_BYTES];
	size_t length, want_length;
	pthread_t thread;
	unsigned int i;

	assert_int_equal(pthread_create(&thread, NULL, send_all, &sender), 0);
	for (i = 0; i < sender.count; i++) {
		want_length = message_of(i, want);
		assert_int_equal(weir_exchange_get(to, got, sizeof(got), &length, TIMEOUT_NS), 0);
		assert_int_equal(length, want_length);
		assert_memory_equal(got, want, length);
	}
	assert_int_equal(weir_exchange_get(to, got, sizeof(got), &length, TIMEOUT_NS), -ENOENT);
	pthread_join(thread, NULL);
}

static void a_message_put_is_got_in_any_memory(void **state)
{
	static const enum weir_exchange_memory ends[][2] = {
		{ WEIR_EXCHANGE_CUDA, WEIR_EXCHANGE_CUDA },
		{ WEIR_EXCHANGE_CUDA, WEIR_EXCHANGE_HOST },
		{ WEIR_EXCHANGE_HOST, WEIR_EXCHANGE_CUDA },
	};
	struct weir_exchange_info info;
	struct weir_exchange *a, *b;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		meet(ends[i][0], ends[i][1], &a, &b);
		send_and_get(a, b);
		send_and_get(b, a);
		weir_exchange_info(a, &info, sizeof(info));
		assert_int_equal(info.memory, ends[i][0]);
		assert_int_equal(info.staged, ends[i][0] == WEIR_EXCHANGE_CUDA && !is_reached);
		/* Only with separate headers at the peer does a slot take two writes. */
		if (ends[i][1] == WEIR_EXCHANGE_HOST || !is_reached)
			assert_int_equal(info.writes, info.put + 1);
		else
			assert_in_range(info.writes, info.put + 2, 2 * info.put);
		weir_exchange_close(a);
		weir_exchange_close(b);
	}
}

static void slots_are_filled_and_read_in_the_gpu(void **state)
{
	struct weir_exchange_slot slots[SLOTS], got[SLOTS];
	struct weir_exchange *a, *b;
	char data[SLOT_BYTES];
	int i, n;

	(void)state;
	meet(WEIR_EXCHANGE_CUDA, WEIR_EXCHANGE_CUDA, &a, &b);
	assert_int_equal(weir_exchange_acquire(a, slots, SLOTS, 0), SLOTS);
	assert_true(gpu_waits_for(slots[0].data));
	for (i = 0; i < (int)SLOTS; i++) {
		memset(data, i + 1, sizeof(data));
		gpu_copy(slots[i].data, data, sizeof(data));
	}
	assert_int_equal(weir_exchange_commit(a, slots, SLOTS), 0);
	assert_int_equal(weir_exchange_flush(a, TIMEOUT_NS), 0);
	for (n = 0; n < (int)SLOTS; n += i) {
		i = weir_exchange_take(b, got + n, SLOTS - n, TIMEOUT_NS);
		assert_true(i > 0);
	}
	for (i = 0; i < (int)SLOTS; i++) {
		assert_int_equal(got[i].length, SLOT_BYTES);
		assert_true(gpu_waits_for(got[i].data));
		gpu_copy(data, got[i].data, sizeof(data));
		assert_int_equal(data[0], i + 1);
		assert_int_equal(data[SLOT_BYTES - 1], i + 1);
	}
	assert_int_equal(weir_exchange_release(b, got, SLOTS), 0);
	weir_exchange_close(a);
	weir_exchange_close(b);
}

/*
 * Copies within the GPU complete after the driver returns: a slot must be neither sent nor
 * returned before.
 */
static void user_buffers_in_the_gpu_work(void **state)
{
	char *mine = gpu_alloc(SLOT_BYTES), *got = gpu_alloc(SLOTS * 3 * SLOT_BYTES),
	     data[SLOT_BYTES];
	struct weir_exchange *a, *b;
	size_t length, done;
	unsigned int i;

	(void)state;
	meet(WEIR_EXCHANGE_CUDA, WEIR_EXCHANGE_CUDA, &a, &b);
	for (i = 0; i < SLOTS * 3; i++) {
		memset(data, (int)i + 1, sizeof(data));
		gpu_copy(mine, data, sizeof(data));
		assert_int_equal(weir_exchange_put(a, mine, SLOT_BYTES, TIMEOUT_NS, &done), 0);
		assert_int_equal(weir_exchange_flush(a, TIMEOUT_NS), 0);
		assert_int_equal(weir_exchange_get(b, got + i * SLOT_BYTES, SLOT_BYTES, &length,
						   TIMEOUT_NS),
				 0);
	}
	for (i = 0; i < SLOTS * 3; i++) {
		gpu_copy(data, got + i * SLOT_BYTES, sizeof(data));
		assert_int_equal(data[0], i + 1);
		assert_int_equal(data[SLOT_BYTES - 1], i + 1);
	}
	weir_exchange_close(a);
	weir_exchange_close(b);
	gpu_free(mine);
	gpu_free(got);
}

static void a_driver_that_fails_ends_the_exchange(void **state)
{
	struct weir_exchange *a, *b;
	size_t done;

	(void)state;
	meet(WEIR_EXCHANGE_CUDA, WEIR_EXCHANGE_HOST, &a, &b);
	setenv("CUDA_STUB_BROKEN", "1", 1);
	assert_int_equal(weir_exchange_put(a, "x", 1, 0, &done), -EIO);
	unsetenv("CUDA_STUB_BROKEN");
	assert_int_equal(weir_exchange_put(a, "x", 1, 0, &done), -EIO);
	weir_exchange_close(a);
	weir_exchange_close(b);
}

#define MEMBERS 3u

struct cuda_member {
	struct weir_exchange_listener *listener;
	unsigned int number;
};

static void add_bytes(void *into, const void *from, size_t length, void *arg)
{
	char a[3000], b[3000];
	size_t i;

	(void)arg;
	gpu_copy(a, into, length);
	gpu_copy(b, from, length);
	for (i = 0; i < length; i++)
		a[i] = (char)(a[i] + b[i]);
	gpu_copy(into, a, length);
}

/* Gathers and sums up thousands of (member + 1). */
static void *be_member(void *arg)
{
	struct weir_exchange_options options = options_of(WEIR_EXCHANGE_CUDA);
	char mine[MEMBERS * 3000], all[MEMBERS * 3000], sum[3000];
	struct cuda_member *m = arg;
	struct weir_group *g;
	unsigned int i;
	int rc = m->number ? weir_group_join(weir_exchange_address(m->listener), NULL, m->number,
					     MEMBERS, &options, &g, NULL) :
			     weir_group_lead(m->listener, MEMBERS, TIMEOUT_NS, &g, NULL);

	assert_int_equal(rc, 0);
	memset(mine, (int)m->number + 1, sizeof(mine));
	assert_int_equal(weir_group_all_gather(g, mine, 3000, all), 0);
	assert_int_equal(weir_group_wait(g, TIMEOUT_NS), 0);
	for (i = 0; i < sizeof(all); i++)
		assert_int_equal(all[i], i / 3000 + 1);
	assert_int_equal(weir_group_reduce_scatter(g, mine, 3000, sum, add_bytes, NULL), 0);
	assert_int_equal(weir_group_wait(g, TIMEOUT_NS), 0);
	for (i = 0; i < sizeof(sum); i++)
		assert_int_equal(sum[i], 1 + 2 + 3);
	assert_int_equal(weir_group_finish(g), 0);
	assert_int_equal(weir_group_wait(g, TIMEOUT_NS), 0);
	weir_group_close(g);
	return NULL;
}

static void groups_gather_and_sum_up_through_the_gpu(void **state)
{
	struct weir_exchange_options options = options_of(WEIR_EXCHANGE_CUDA);
	struct weir_exchange_listener *listener;
	struct cuda_member members[MEMBERS];
	pthread_t threads[MEMBERS];
	unsigned int i;

	(void)state;
	assert_int_equal(weir_exchange_listen("127.0.0.1:0", &options, &listener, NULL), 0);
	for (i = 0; i < MEMBERS; i++) {
		members[i] = (struct cuda_member){ listener, i };
		assert_int_equal(pthread_create(&threads[i], NULL, be_member, &members[i]), 0);
	}
	for (i = 0; i < MEMBERS; i++)
		pthread_join(threads[i], NULL);
	weir_exchange_unlisten(listener);
}

static int run_without(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_driver_the_open_fails_with_a_reason),
	};

	if (dlopen("libcuda.so.1", RTLD_NOW)) {
		printf("1..0 # SKIP this machine has a CUDA driver\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpu_that_is_not_there_is_named),
		cmocka_unit_test(a_message_put_is_got_in_any_memory),
		cmocka_unit_test(slots_are_filled_and_read_in_the_gpu),
		cmocka_unit_test(user_buffers_in_the_gpu_work),
		cmocka_unit_test(groups_gather_and_sum_up_through_the_gpu),
		cmocka_unit_test(a_driver_that_fails_ends_the_exchange),
	};

	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "none"))
		return run_without();
	is_reached = !strcmp(argv[1], "reached");
	assert_non_null(dlopen("libcuda.so.1", RTLD_NOW)); /* keeps the driver's state loaded */
	return fixture_run_modes(tests, sizeof(tests) / sizeof(tests[0]));
}
