/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdio.h>
#include <string.h>

#include "lib/conn/key.h"
#include "tests/lib/sealed/sealed_fixture.h"

const struct weir_key *sealed_key(void)
{
	static const struct weir_key key = { 26, "of clients, not the donor's" };

	return &key;
}

struct weir_sealed *sealed_of(struct weir_region *region, const char *name, uint32_t cipher)
{
	const struct weir_sealed_options options = {
		.size = sizeof(options),
		.key = sealed_key(),
		.name = name,
		.cipher = cipher,
	};
	struct weir_error error = { "" };
	struct weir_sealed *sealed;

	if (weir_sealed_open(region, &options, &sealed, &error))
		fail_msg("cannot open the sealed region: %s", error.text);
	return sealed;
}

void sealed_fixture_open(struct sealed_fixture *f, const char *name)
{
	const uint64_t bytes = weir_sealed_region_bytes(FIXTURE_BLOCKS * WEIR_SEALED_BLOCK);

	f->session = session_to(&group_donor, NULL);
	f->attacker = session_to(&group_donor, NULL);
	assert_int_equal(weir_region_create(f->session, name, bytes, 0, &f->region, NULL), 0);
	assert_int_equal(weir_region_open(f->attacker, name, 0, &f->bare, NULL), 0);
	f->sealed = sealed_of(f->region, name, WEIR_SEALED_DEFAULT);
}

void sealed_fixture_close(struct sealed_fixture *f, const char *name)
{
	weir_sealed_close(f->sealed);
	weir_region_close(f->region);
	weir_region_close(f->bare);
	assert_int_equal(weir_region_delete(f->session, name, NULL), 0);
	weir_session_close(f->session);
	weir_session_close(f->attacker);
}

void sealed_fixture_reopen(struct sealed_fixture *f, const char *name)
{
	weir_sealed_close(f->sealed);
	f->sealed = sealed_of(f->region, name, WEIR_SEALED_DEFAULT);
}

int block_write(struct weir_sealed *sealed, uint64_t block, uint8_t fill)
{
	uint8_t text[WEIR_SEALED_BLOCK];

	memset(text, fill, sizeof(text));
	return weir_sealed_write(sealed, block * WEIR_SEALED_BLOCK, text, sizeof(text), NULL);
}

void block_expect(struct weir_sealed *sealed, uint64_t block, uint8_t fill)
{
	uint8_t text[WEIR_SEALED_BLOCK], expected[WEIR_SEALED_BLOCK];
	struct weir_error error = { "" };

	memset(expected, fill, sizeof(expected));
	if (weir_sealed_read(sealed, block * WEIR_SEALED_BLOCK, text, sizeof(text), &error))
		fail_msg("cannot read block %llu: %s", (unsigned long long)block, error.text);
	assert_memory_equal(text, expected, sizeof(text));
}

void block_refused(struct weir_sealed *sealed, uint64_t block, int status)
{
	uint8_t text[WEIR_SEALED_BLOCK];
	struct weir_error error = { "" };
	char number[32];

	snprintf(number, sizeof(number), "block %llu ", (unsigned long long)block);
	assert_int_equal(weir_sealed_read(sealed, block * WEIR_SEALED_BLOCK, text, sizeof(text),
					  &error),
			 status);
	assert_non_null(strstr(error.text, number));
}

struct weir_slot slot_of(struct sealed_fixture *f, uint64_t block)
{
	struct weir_slot slot;

	assert_int_equal(weir_read(f->bare, block * sizeof(slot), &slot, sizeof(slot)), 0);
	return slot;
}

void slot_put(struct sealed_fixture *f, uint64_t block, const struct weir_slot *slot)
{
	assert_int_equal(weir_write(f->bare, block * sizeof(*slot), slot, sizeof(*slot)), 0);
}
