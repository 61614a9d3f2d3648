/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib sealed; devices: softnic; timeout: 180 */
/* Sealed regions: any bytes from any threads, nonces that never repeat, and wrong options. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/rng.h"
#include "tests/lib/sealed/sealed_fixture.h"

#define BYTES ((size_t)FIXTURE_BLOCKS * WEIR_SEALED_BLOCK)
#define THREADS 4u
#define STRIPE 1500u /* stripes of several threads share a block */
#define NONCES_MAX 100000u

/* A nonce: the writer's id, as part of the key, and the counter. */
struct nonce {
	uint8_t writer[WEIR_SLOT_WRITER];
	uint64_t counter;
};

static struct nonce nonces[NONCES_MAX];
static unsigned int nr_nonces;

void __real_weir_slot_seal(struct weir_sealed_keys *keys, const struct weir_slot_place *place,
			   struct weir_slot_trailer *trailer, const uint8_t *text, uint8_t *stored);
void __wrap_weir_slot_seal(struct weir_sealed_keys *keys, const struct weir_slot_place *place,
			   struct weir_slot_trailer *trailer, const uint8_t *text, uint8_t *stored);

void __wrap_weir_slot_seal(struct weir_sealed_keys *keys, const struct weir_slot_place *place,
			   struct weir_slot_trailer *trailer, const uint8_t *text, uint8_t *stored)
{
	unsigned int at = __atomic_fetch_add(&nr_nonces, 1, __ATOMIC_RELAXED);

	assert_true(at < NONCES_MAX);
	memcpy(nonces[at].writer, trailer->writer, sizeof(nonces[at].writer));
	nonces[at].counter = trailer->counter;
	__real_weir_slot_seal(keys, place, trailer, text, stored);
}

static int compare_nonces(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct nonce));
}

static void nonces_never_repeat(void)
{
	qsort(nonces, nr_nonces, sizeof(nonces[0]), compare_nonces);
	for (unsigned int i = 1; i < nr_nonces; i++)
		assert_true(compare_nonces(&nonces[i - 1], &nonces[i]) < 0);
	nr_nonces = 0;
}

static void sizes_are_those_of_slots(void **state)
{
	(void)state;
	assert_int_equal(weir_sealed_region_bytes(0), 0);
	assert_int_equal(weir_sealed_region_bytes(1), WEIR_SEALED_SLOT);
	assert_int_equal(weir_sealed_region_bytes(WEIR_SEALED_BLOCK), WEIR_SEALED_SLOT);
	assert_int_equal(weir_sealed_region_bytes(WEIR_SEALED_BLOCK + 1), 2 * WEIR_SEALED_SLOT);
	assert_int_equal(weir_sealed_region_bytes(1ull << 60), (1ull << 48) * WEIR_SEALED_SLOT);
	assert_true(weir_sealed_region_bytes(UINT64_MAX) == UINT64_MAX);
}

static void refused(struct weir_region *region, struct weir_sealed_options options, int status,
		    const char *word)
{
	struct weir_sealed *sealed;
	struct weir_error error = { "" };

	options.size = sizeof(options);
	assert_int_equal(weir_sealed_open(region, &options, &sealed, &error), status);
	if (!strstr(error.text, word))
		fail_msg("the error does not mention %s: %s", word, error.text);
}

/* Good options but for a change. */
#define OPTIONS(change)                                                           \
	({                                                                        \
		struct weir_sealed_options o = { 0, sealed_key(), "data", 0, 0 }; \
		o.change;                                                         \
		o;                                                                \
	})

static void wrong_options_are_refused(void **state)
{
	struct weir_session *session = session_to(&group_donor, NULL);
	struct weir_region *region = region_of(session, 4 * MIB);
	char long_name[WEIR_SEALED_NAME_MAX + 2];

	(void)state;
	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	refused(region, OPTIONS(key = NULL), -EINVAL, ".key");
	refused(region, OPTIONS(name = NULL), -EINVAL, ".name");
	refused(region, OPTIONS(name = ""), -EINVAL, "name");
	refused(region, OPTIONS(name = long_name), -EINVAL, "255");
	refused(region, OPTIONS(cipher = 3), -EINVAL, "3");
	refused(region, OPTIONS(is_new = 2), -EINVAL, "is_new");
	assert_int_equal(weir_sealed_open(region, NULL, NULL, NULL), -EINVAL);
	weir_region_close(region);
	weir_session_close(session);
}

static void a_key_that_the_donor_has_is_refused(void **state)
{
	const char *given = getenv("WEIR_TEST_KEY"), *path = given ? given : "sealed_test.key";
	struct weir_session_options options = { 0 };
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
	struct weir_key *key;
	char argument[4096];

	(void)state;
	remove("sealed_test.key");
	if (!given)
		assert_int_equal(weir_key_create(path, NULL), 0);
	assert_int_equal(weir_key_load(path, &key, NULL), 0);
	snprintf(argument, sizeof(argument), "key=%s", path);
	/* The fixture gives the donor the key of the environment. */
	donor_process_start(&donor, "16777216", given ? NULL : argument, NULL);
	options.key = key;
	session = session_to(&donor, &options);
	region = region_of(session, MIB);
	refused(region, OPTIONS(key = key), -EINVAL, "the donor knows the key");
	weir_sealed_close(sealed_of(region, "data", WEIR_SEALED_DEFAULT));
	weir_session_close(session);
	donor_process_stop(&donor);
	weir_key_free(key);
	remove("sealed_test.key");
}

static void bounds_are_those_of_the_data(void **state)
{
	struct weir_sealed_info info = { 0 };
	struct weir_error error;
	struct sealed_fixture f;
	char byte = 1;

	(void)state;
	sealed_fixture_open(&f, "bounds");
	assert_int_equal(weir_sealed_info(f.sealed, &info, sizeof(info)), 0);
	assert_true(info.bytes >= BYTES);
	assert_true(info.cipher != WEIR_SEALED_DEFAULT);
	assert_int_equal(weir_sealed_write(f.sealed, info.bytes - 1, &byte, 1, NULL), 0);
	byte = 0;
	assert_int_equal(weir_sealed_read(f.sealed, info.bytes - 1, &byte, 1, NULL), 0);
	assert_int_equal(byte, 1);
	assert_int_equal(weir_sealed_read(f.sealed, info.bytes, &byte, 1, &error), -EINVAL);
	assert_int_equal(weir_sealed_write(f.sealed, 0, &byte, 0, &error), -EINVAL);
	assert_int_equal(weir_sealed_write(f.sealed, UINT64_MAX, &byte, 2, &error), -EINVAL);
	sealed_fixture_close(&f, "bounds");
}

/* A thread with the stripes at, at + THREADS, ... of a region, and a model of the bytes. */
struct striper {
	struct weir_sealed *sealed;
	pthread_t thread;
	unsigned int at;
	uint64_t rng;
	uint8_t *model; /* shared; each thread uses its own stripes */
	int rounds;
};

static void write_some(struct striper *s, size_t start, size_t length)
{
	for (size_t i = 0; i < length; i++)
		s->model[start + i] = (uint8_t)weir_rng_next(&s->rng);
	assert_int_equal(weir_sealed_write(s->sealed, start, s->model + start, length, NULL), 0);
}

static void *stripe(void *arg)
{
	uint8_t got[STRIPE];
	struct striper *s = arg;
	size_t start, skip, length;

	for (int i = 0; i < s->rounds; i++) {
		start = weir_rng_next(&s->rng) % (BYTES / STRIPE / THREADS) * STRIPE * THREADS +
			s->at * STRIPE;
		skip = weir_rng_next(&s->rng) % STRIPE;
		length = 1 + weir_rng_next(&s->rng) % (STRIPE - skip);
		if (weir_rng_next(&s->rng) % 2) {
			write_some(s, start + skip, length);
		} else {
			assert_int_equal(
				weir_sealed_read(s->sealed, start + skip, got, length, NULL), 0);
			assert_memory_equal(got, s->model + start + skip, length);
		}
	}
	return NULL;
}

static void expect_all(struct weir_sealed *sealed, const uint8_t *model)
{
	uint8_t *got = malloc(BYTES);

	assert_int_equal(weir_sealed_read(sealed, 0, got, BYTES, NULL), 0);
	assert_memory_equal(got, model, BYTES);
	free(got);
}

static void threads_share_blocks(void **state)
{
	struct striper stripers[THREADS];
	uint8_t *model = calloc(1, BYTES);
	struct sealed_fixture f;

	(void)state;
	sealed_fixture_open(&f, "threads");
	for (unsigned int i = 0; i < THREADS; i++) {
		stripers[i] = (struct striper){
			f.sealed, 0, i, 1000 + i, model, fixture_rounds(600),
		};
		assert_int_equal(pthread_create(&stripers[i].thread, NULL, stripe, &stripers[i]),
				 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(stripers[i].thread, NULL);
	expect_all(f.sealed, model);
	sealed_fixture_reopen(&f, "threads");
	expect_all(f.sealed, model);
	nonces_never_repeat();
	sealed_fixture_close(&f, "threads");
	free(model);
}

/* Ranges of any place and length, in a region whose openings and ciphers change. */
static void bytes_are_those_of_a_model(void **state)
{
	static const uint32_t ciphers[] = { WEIR_SEALED_DEFAULT, WEIR_SEALED_XCHACHA20_POLY1305 };
	uint8_t *model = calloc(1, BYTES), *got = malloc(BYTES);
	struct sealed_fixture f;
	uint64_t rng = 7;

	(void)state;
	sealed_fixture_open(&f, "model");
	for (int i = 0; i < fixture_rounds(400); i++) {
		size_t start = weir_rng_next(&rng) % BYTES;
		size_t most = weir_rng_next(&rng) % 4 ? 3 * WEIR_SEALED_BLOCK : BYTES;
		size_t length = 1 + weir_rng_next(&rng) % most;

		if (length > BYTES - start)
			length = BYTES - start;
		if (i % 50 == 49) {
			weir_sealed_close(f.sealed);
			f.sealed = sealed_of(f.region, "model", ciphers[i / 50 % 2]);
		}
		if (weir_rng_next(&rng) % 2) {
			memset(model + start, (int)weir_rng_next(&rng), length);
			assert_int_equal(
				weir_sealed_write(f.sealed, start, model + start, length, NULL), 0);
		} else {
			assert_int_equal(weir_sealed_read(f.sealed, start, got, length, NULL), 0);
			assert_memory_equal(got, model + start, length);
		}
	}
	nonces_never_repeat();
	sealed_fixture_close(&f, "model");
	free(model);
	free(got);
}

/* No slot is read before the first write. */
static void a_new_region_is_not_read_before_a_write(void **state)
{
	const struct weir_sealed_options options = {
		.size = sizeof(options),
		.key = sealed_key(),
		.name = "new",
		.is_new = 1,
	};
	struct sealed_fixture f;
	struct weir_slot old;

	(void)state;
	sealed_fixture_open(&f, "new");
	assert_int_equal(block_write(f.sealed, 0, 1), 0);
	old = slot_of(&f, 0);
	weir_sealed_close(f.sealed);
	assert_int_equal(weir_sealed_open(f.region, &options, &f.sealed, NULL), 0);
	block_expect(f.sealed, 1, 0);
	assert_int_equal(block_write(f.sealed, 1, 2), 0);
	block_expect(f.sealed, 1, 2);
	slot_put(&f, 1, &old);
	block_refused(f.sealed, 1, -EBADMSG);
	sealed_fixture_close(&f, "new");
}

/* Two clients see each other's blocks, and no generation is too old for either. */
static void two_clients_take_turns(void **state)
{
	struct weir_sealed *other;
	struct sealed_fixture f;

	(void)state;
	sealed_fixture_open(&f, "turns");
	other = sealed_of(f.bare, "turns", WEIR_SEALED_XCHACHA20_POLY1305);
	for (unsigned int i = 0; i < 50; i++) {
		assert_int_equal(block_write(f.sealed, i % 3, (uint8_t)(2 * i)), 0);
		block_expect(other, i % 3, (uint8_t)(2 * i));
		assert_int_equal(block_write(other, i % 2, (uint8_t)(2 * i + 1)), 0);
		assert_int_equal(block_write(f.sealed, i % 2, (uint8_t)(2 * i + 2)), 0);
		block_expect(other, i % 2, (uint8_t)(2 * i + 2));
	}
	weir_sealed_close(other);
	sealed_fixture_close(&f, "turns");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_those_of_slots),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(a_key_that_the_donor_has_is_refused),
		cmocka_unit_test(bounds_are_those_of_the_data),
		cmocka_unit_test(threads_share_blocks),
		cmocka_unit_test(bytes_are_those_of_a_model),
		cmocka_unit_test(a_new_region_is_not_read_before_a_write),
		cmocka_unit_test(two_clients_take_turns),
	};

	return cmocka_run_group_tests(tests, group_donor_start, group_donor_stop);
}
