/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/sealed/sealed.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <weir/memory.h>

#include "core/base/platform.h"
#include "lib/base/error.h"
#include "lib/base/sized.h"
#include "lib/client/memory/region.h"
#include "lib/client/session.h"
#include "lib/conn/key.h"

uint64_t weir_sealed_region_bytes(uint64_t bytes)
{
	uint64_t blocks = bytes / WEIR_SEALED_BLOCK + !!(bytes % WEIR_SEALED_BLOCK);

	return blocks > UINT64_MAX / WEIR_SEALED_SLOT ? UINT64_MAX : blocks * WEIR_SEALED_SLOT;
}

static int check_options(const struct weir_region *region,
			 const struct weir_sealed_options *options, struct weir_error *error)
{
	const struct weir_key *known = region->session->options.key;
	size_t name_length;

	if (!options->key || !options->name)
		return weir_error_set(error, -EINVAL,
				      "a sealed region needs a key and a name: set .key and .name");
	name_length = strnlen(options->name, WEIR_SEALED_NAME_MAX + 1);
	if (!name_length || name_length > WEIR_SEALED_NAME_MAX)
		return weir_error_set(error, -EINVAL,
				      "the name of sealed data must have 1 to %u bytes",
				      WEIR_SEALED_NAME_MAX);
	if (options->is_new > 1)
		return weir_error_set(error, -EINVAL, "is_new is %u, and must be 0 or 1",
				      options->is_new);
	if (options->cipher > WEIR_SEALED_XCHACHA20_POLY1305)
		return weir_error_set(error, -EINVAL, "no cipher has the number %u",
				      options->cipher);
	if (known && weir_key_same(options->key, known))
		return weir_error_set(error, -EINVAL,
				      "the donor knows the key for \"%s\", because the session "
				      "uses it, too: make another that never leaves the clients",
				      options->name);
	if (region->length < WEIR_SEALED_SLOT)
		return weir_error_set(error, -EINVAL,
				      "the region for \"%s\" has %llu bytes, and a block needs %u",
				      options->name, (unsigned long long)region->length,
				      WEIR_SEALED_SLOT);
	return 0;
}

static int choose_cipher(uint32_t wanted, uint32_t *cipher, struct weir_error *error)
{
	*cipher = wanted;
	if (wanted == WEIR_SEALED_DEFAULT)
		*cipher = weir_slot_supports(WEIR_SEALED_AES256_GCM) ?
				  WEIR_SEALED_AES256_GCM :
				  WEIR_SEALED_XCHACHA20_POLY1305;
	if (weir_slot_supports(*cipher))
		return 0;
	return weir_error_set(error, -EOPNOTSUPP,
			      "this CPU has no AES instructions: seal by XChaCha20-Poly1305");
}

static int alloc_parts(struct weir_sealed *s, const struct weir_sealed_options *options,
		       struct weir_error *error)
{
	s->keys = weir_slot_keys_new(options->key, options->name);
	s->seen = calloc(s->blocks, sizeof(s->seen[0]));
	if (!s->keys || !s->seen)
		return weir_error_set(error, -ENOMEM,
				      "no memory for the generations of %llu blocks",
				      (unsigned long long)s->blocks);
	return weir_pool_create(s->region->session, WEIR_SEALED_CHUNK * WEIR_SEALED_SLOT,
				WEIR_SEALED_BUFFERS, &s->pool, error);
}

int weir_sealed_open(struct weir_region *region, const struct weir_sealed_options *given,
		     struct weir_sealed **sealed, struct weir_error *error)
{
	struct weir_sealed_options options;
	struct weir_sealed *s;
	int rc = weir_sized_in(&options, sizeof(options), given, "weir_sealed_options", error);

	if (!rc)
		rc = check_options(region, &options, error);
	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return weir_error_set(error, -ENOMEM, "out of memory");
	s->region = region;
	s->blocks = region->length / WEIR_SEALED_SLOT;
	s->is_new = options.is_new;
	pthread_mutex_init(&s->range_lock, NULL);
	pthread_cond_init(&s->range_left, NULL);
	weir_list_init(&s->ranges);
	rc = alloc_parts(s, &options, error);
	if (!rc)
		rc = choose_cipher(options.cipher, &s->cipher, error);
	if (rc) {
		weir_sealed_close(s);
		return rc;
	}
	randombytes_buf(s->writer, sizeof(s->writer));
	*sealed = s;
	return 0;
}

void weir_sealed_close(struct weir_sealed *sealed)
{
	if (!sealed)
		return;
	weir_pool_destroy(sealed->pool);
	weir_slot_keys_free(sealed->keys);
	pthread_cond_destroy(&sealed->range_left);
	pthread_mutex_destroy(&sealed->range_lock);
	free(sealed->seen);
	free(sealed);
}

int weir_sealed_info(struct weir_sealed *sealed, struct weir_sealed_info *info, size_t size)
{
	const struct weir_sealed_info known = {
		.bytes = sealed->blocks * WEIR_SEALED_BLOCK,
		.altered = __atomic_load_n(&sealed->altered, __ATOMIC_RELAXED),
		.rolled_back = __atomic_load_n(&sealed->rolled_back, __ATOMIC_RELAXED),
		.cipher = sealed->cipher,
	};

	return weir_sized_out(info, size, &known, sizeof(known));
}

uint64_t weir_sealed_floor(const struct weir_sealed *sealed, uint64_t block)
{
	uint64_t seen = __atomic_load_n(&sealed->seen[block], __ATOMIC_RELAXED);

	return seen || !sealed->is_new ? seen : WEIR_SLOT_NEVER;
}

/* Raises a number. */
static void raise_to(uint64_t *number, uint64_t value)
{
	uint64_t found = __atomic_load_n(number, __ATOMIC_RELAXED);

	while (found < value && !__atomic_compare_exchange_n(number, &found, value, true,
							     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void weir_sealed_saw(struct weir_sealed *sealed, uint64_t block, uint64_t generation)
{
	raise_to(&sealed->seen[block], generation);
}
