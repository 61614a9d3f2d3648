/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib secret; suites: wire */
/* Memory for keys, and whether the code that uses keys leaves copies behind. */
#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/secret.h"
#include "lib/conn/handshake.h"
#include "lib/conn/identity.h"
#include "lib/sealed/slot.h"
#include "softnic/seal/agree.h"
#include "softnic/seal/secret.h"
#include "tests/support/cmocka_all.h"

#define STACK (1 << 20)
#define REGISTERS 16384 /* more than XSAVE stores on any CPU so far */
#define FRAGMENT 16 /* bytes of a secret that prove a copy */

/* A sanitizer makes mlock() do nothing, and moves variables away from the stack. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

/* ---- The memory itself ---- */

/* Whether the mapping of @address has a flag of /proc/self/smaps. */
static bool mapping_has(const void *address, const char *flag)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool is_here = false, has = false;
	char line[512];

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_here = (uintptr_t)address >= start && (uintptr_t)address < end;
		if (is_here && !strncmp(line, "VmFlags:", 8))
			has = strstr(line, flag);
	}
	fclose(smaps);
	return has;
}

static void check_memory(const uint8_t *secret, size_t size)
{
	assert_non_null(secret);
	assert_true(sodium_is_zero(secret, size));
	assert_true(mapping_has(secret, " dd"));
	assert_true(IS_SANITIZED || mapping_has(secret, " lo"));
	assert_true(IS_SANITIZED || mapping_has(secret + size - 1, " lo"));
}

static void a_secret_is_zeroed_locked_and_in_no_dump(void **state)
{
	static const size_t sizes[] = { 1, 64, 100, 4096, 10000 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *lib = weir_secret_alloc(sizes[i]), *softnic = secret_alloc(sizes[i]);

		check_memory(lib, sizes[i]);
		assert_int_equal((uintptr_t)lib % 64, 0);
		check_memory(softnic, sizes[i]);
		weir_secret_free(lib);
		secret_free(softnic, sizes[i]);
	}
	weir_secret_free(NULL);
	secret_free(NULL, 1);
}

static void no_size_wraps_around(void **state)
{
	(void)state;
	assert_null(weir_secret_alloc(SIZE_MAX));
}

static unsigned int times_heard;

static void count_unlocked(int status)
{
	times_heard += status < 0;
}

/* In a child, without the right to lock memory. Return: an exit status. */
static int be_limited(void)
{
	const struct rlimit none = { 0, 0 };
	uint8_t *first, *second;

	weir_secret_set_listener(count_unlocked);
	if (setrlimit(RLIMIT_MEMLOCK, &none) || (!geteuid() && setuid(65534)))
		return 2;
	first = weir_secret_alloc(100);
	second = weir_secret_alloc(100);
	if (!first || !second || times_heard != (IS_SANITIZED ? 0 : 1))
		return 3;
	first[0] = second[99] = 1;
	weir_secret_free(first);
	weir_secret_free(second);
	return mapping_has(secret_alloc(1), " dd") ? 0 : 4;
}

static void without_locked_memory_keys_load_and_a_listener_hears_once(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (!child)
		_exit(be_limited());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* ---- What users of keys leave on the stack and in registers ---- */

static char path[] = "/tmp/weir-secret-XXXXXX";

/*
 * @work: runs on a stack of its own, which is searched afterwards for @secret
 * @registers: as the thread left them
 */
struct stack_case {
	void (*work)(void);
	uint8_t registers[REGISTERS] __attribute__((aligned(64)));
	uint8_t secret[4][64];
	size_t length[4];
};

static struct weir_key key = { .length = 64 };
static struct weir_sealed_keys *sealed_keys;
static uint8_t psk[WIRE_KEY];

static void load_key(void)
{
	struct weir_error error;
	struct weir_key *loaded;

	if (!weir_key_load(path, &loaded, &error))
		weir_key_free(loaded);
}

static void derive_from_key(void)
{
	struct weir_handshake_setup setup = { .session_id = 1 };
	uint8_t mac[WIRE_MAC];

	weir_handshake_secrets(&setup, &key, false);
	weir_noise_wipe(setup.psk, sizeof(setup.psk));
	weir_key_id(&key);
	weir_key_mac(&key, &(struct iovec){ path, 1 }, 1, mac);
}

/* The ends' own state is as the library keeps it, in memory for keys. */
static void shake_hands(void)
{
	struct weir_handshake *client = weir_handshake_new(), *donor = weir_handshake_new();
	uint8_t out[WIRE_HANDSHAKE_MAX], back[WIRE_HANDSHAKE_MAX];
	const struct wire_handshake_welcome welcome = { .session_id = 1 };
	struct weir_handshake_setup setup = { .session_id = 0 };
	size_t length, answer;

	weir_handshake_secrets(&setup, &key, false);
	weir_handshake_donor(donor, &setup);
	setup = (struct weir_handshake_setup){ .session_id = 0 };
	weir_handshake_secrets(&setup, &key, true);
	weir_handshake_client(client, &setup, out, &length);
	weir_handshake_received(donor, out, length, back, &answer);
	weir_handshake_received(client, back, answer, out, &length);
	weir_handshake_received(donor, out, length, back, &answer);
	weir_handshake_admit(donor, &welcome, back, &answer);
	weir_handshake_received(client, back, answer, out, &length);
	if (client->state != WEIR_HANDSHAKE_DONE)
		abort();
	weir_handshake_free(client);
	weir_handshake_free(donor);
}

static void seal_a_block(void)
{
	static uint8_t text[WEIR_SEALED_BLOCK], stored[WEIR_SEALED_BLOCK];
	const struct weir_slot_place place = { 1, 2 };
	uint32_t ciphers[] = { WEIR_SEALED_XCHACHA20_POLY1305, WEIR_SEALED_AES256_GCM };
	uint64_t generation;

	for (size_t i = 0; i < 2; i++) {
		struct weir_slot_trailer t = { .counter = 1,
					       .generation = 1,
					       .cipher = ciphers[i],
					       .length = sizeof(text) };

		if (!weir_slot_supports(ciphers[i]))
			continue;
		weir_slot_seal(sealed_keys, &place, &t, text, stored);
		if (weir_slot_open(sealed_keys, &place, &t, stored, sizeof(stored), text,
				   &generation))
			abort();
	}
}

static struct agree agree_a, agree_b;

/* Two softnics agree on keys, and seal a packet that needs the next key. */
static void agree_and_seal(void)
{
	static uint8_t packet[256];
	struct agree_message m;
	size_t size;

	agree_ask(&agree_a, 0);
	agree_output(&agree_a, &m, 0);
	agree_input(&agree_b, &m, 0);
	agree_output(&agree_b, &m, 0);
	agree_input(&agree_a, &m, 0);
	if (agree_a.state != AGREE_SEALED)
		abort();
	agree_a.seal.sent = SEAL_KEY_PACKETS - 1;
	agree_b.seal.highest = SEAL_KEY_PACKETS - 1;
	size = seal_close(&agree_a.seal, 2, packet, 64);
	if (!agree_open(&agree_b, packet, size))
		abort();
}

/* Inline, so that nothing runs between the work and this. */
static inline __attribute__((always_inline)) void save_registers(uint8_t *to)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx")) /* then a program may use XSAVE */
		__asm__ volatile("xsave (%0)" : : "r"(to), "a"(-1), "d"(-1) : "memory");
	else
		__asm__ volatile("fxsave (%0)" : : "r"(to) : "memory");
#else
	(void)to;
#endif
}

static void *run_work(void *work)
{
	struct stack_case *c = work;

	c->work();
	save_registers(c->registers);
	return NULL;
}

/* Runs @c on a stack of zeroes. Return: that stack. */
static uint8_t *run_apart(struct stack_case *c)
{
	uint8_t *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	pthread_attr_t attr;
	pthread_t thread;

	assert_ptr_not_equal(stack, MAP_FAILED);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
	assert_int_equal(pthread_create(&thread, &attr, run_work, c), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	return stack;
}

/* Searches the stack, and frees it, and the registers. */
static void find_none(const struct stack_case *c, uint8_t *stack, const char *name)
{
	for (int i = 0; i < 4; i++)
		for (size_t at = 0; at + FRAGMENT <= c->length[i]; at += FRAGMENT)
			if (memmem(stack, STACK, c->secret[i] + at, FRAGMENT))
				fail_msg("%s: secret %d is on the stack", name, i);
			else if (memmem(c->registers, REGISTERS, c->secret[i] + at, FRAGMENT))
				fail_msg("%s: secret %d is in a register", name, i);
	munmap(stack, STACK);
}

static void add_secret(struct stack_case *c, int i, const void *bytes, size_t length)
{
	memcpy(c->secret[i], bytes, length);
	c->length[i] = length;
}

static void put_on_stack(void)
{
	uint8_t copy[64];

	memcpy(copy, key.bytes, sizeof(copy));
	__asm__ volatile("" : : "r"(copy) : "memory"); /* the copy is made */
}

static void put_into_registers(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f"))
		__asm__ volatile("vmovdqu64 (%0), %%zmm31" : : "r"(key.bytes));
	else
		__asm__ volatile("movdqu (%0), %%xmm15" : : "r"(key.bytes) : "xmm15");
#endif
}

static void put_and_forget(void)
{
	put_into_registers();
	weir_secret_forget_registers();
}

static void registers_are_forgotten(void **state)
{
	struct stack_case kept = { .work = put_into_registers }, c = { .work = put_and_forget };

	(void)state;
	munmap(run_apart(&kept), STACK);
#ifdef __x86_64__
	assert_non_null(memmem(kept.registers, REGISTERS, key.bytes, FRAGMENT));
#endif
	add_secret(&c, 0, key.bytes, 64);
	find_none(&c, run_apart(&c), "forgetting");
}

static void the_search_finds_a_copy(void **state)
{
	struct stack_case c = { .work = put_on_stack };
	uint8_t *stack = run_apart(&c);

	(void)state;
	assert_true(IS_SANITIZED || memmem(stack, STACK, key.bytes, FRAGMENT));
	munmap(stack, STACK);
}

static void the_key_is_wiped_after_use(void **state)
{
	static const struct {
		const char *name;
		void (*work)(void);
	} uses[] = {
		{ "loading a file", load_key },
		{ "deriving", derive_from_key },
		{ "a handshake", shake_hands },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		struct stack_case c = { .work = uses[i].work };

		add_secret(&c, 0, key.bytes, 64);
		add_secret(&c, 1, psk, sizeof(psk));
		find_none(&c, run_apart(&c), uses[i].name);
	}
}

/* The key that slot.c derives for the first blocks of a writer of zeroes. */
static void derive_block_key(const uint8_t root[static WIRE_MAC], uint64_t cipher,
			     uint8_t block_key[static 32])
{
	const struct {
		char label[16];
		uint8_t writer[WEIR_SLOT_WRITER];
		uint64_t epoch, cipher;
	} name = { .label = "weir-1 block key", .cipher = cipher };

	crypto_generichash(block_key, 32, (const uint8_t *)&name, sizeof(name), root, WIRE_MAC);
}

static void a_seals_keys_are_wiped_after_use(void **state)
{
	static const char label[] = "weir-1 sealed data";
	const struct iovec pieces[] = { { (char *)label, sizeof(label) }, { "name", 4 } };
	struct stack_case c = { .work = seal_a_block };
	uint8_t root[WIRE_MAC], block_key[32];

	(void)state;
	weir_key_mac(&key, pieces, 2, root);
	sealed_keys = weir_slot_keys_new(&key, "name");
	assert_non_null(sealed_keys);
	assert_true(mapping_has(sealed_keys, " dd"));
	add_secret(&c, 0, root, sizeof(root));
	derive_block_key(root, WEIR_SEALED_XCHACHA20_POLY1305, block_key);
	add_secret(&c, 1, block_key, sizeof(block_key));
	assert_false(sodium_is_zero(block_key, sizeof(block_key)));
	derive_block_key(root, WEIR_SEALED_AES256_GCM, block_key);
	add_secret(&c, 2, block_key, sizeof(block_key));
	find_none(&c, run_apart(&c), "sealing");
	weir_slot_keys_free(sealed_keys);
}

static void softnics_keys_are_wiped_after_use(void **state)
{
	const struct agree_config to_b = { .qpn = 1, .dest_qpn = 2, .receive_psn = 20 };
	const struct agree_config to_a = { .qpn = 2, .dest_qpn = 1, .receive_psn = 10 };
	struct stack_case c = { .work = agree_and_seal };
	uint8_t secret[2][SEAL_KEY_BYTES], *stack;

	(void)state;
	assert_true(seal_ciphers());
	randombytes_buf(secret, sizeof(secret));
	agree_init(&agree_a, &to_b);
	agree_init(&agree_b, &to_a);
	agree_arm(&agree_a, seal_ciphers(), secret[0]);
	agree_arm(&agree_b, seal_ciphers(), secret[1]);
	agree_start(&agree_a, 10, 0);
	agree_start(&agree_b, 20, 0);
	stack = run_apart(&c);
	add_secret(&c, 0, secret[0], SEAL_KEY_BYTES);
	add_secret(&c, 1, secret[1], SEAL_KEY_BYTES);
	add_secret(&c, 2, agree_a.seal.out.bytes, SEAL_KEY_BYTES);
	add_secret(&c, 3, agree_a.seal.in[0].bytes, SEAL_KEY_BYTES);
	find_none(&c, stack, "an agreement");
	agree_fini(&agree_a);
	agree_fini(&agree_b);
}

static int group_setup(void **state)
{
	struct weir_error error;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || sodium_init() < 0)
		return -1;
	close(fd);
	unlink(path);
	if (weir_key_create(path, &error))
		return -1;
	if (weir_key_read_file(path, key.bytes, WEIR_KEY_MAX, &error) != 64)
		return -1;
	weir_key_psk(&key, psk);
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_secret_is_zeroed_locked_and_in_no_dump),
		cmocka_unit_test(no_size_wraps_around),
		cmocka_unit_test(without_locked_memory_keys_load_and_a_listener_hears_once),
		cmocka_unit_test(the_search_finds_a_copy),
		cmocka_unit_test(registers_are_forgotten),
		cmocka_unit_test(the_key_is_wiped_after_use),
		cmocka_unit_test(a_seals_keys_are_wiped_after_use),
		cmocka_unit_test(softnics_keys_are_wiped_after_use),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
