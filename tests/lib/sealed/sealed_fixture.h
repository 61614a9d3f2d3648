/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A sealed region, and the same region as seen by the donor. */
#ifndef WEIR_TESTS_LIB_SEALED_SEALED_FIXTURE_H
#define WEIR_TESTS_LIB_SEALED_SEALED_FIXTURE_H

#include "lib/sealed/slot.h"
#include "tests/support/libweir_fixture.h"

#define FIXTURE_BLOCKS 200u

/**
 * struct sealed_fixture - a region at group_donor, opened twice
 * @session, @region, @sealed: of the client
 * @attacker, @bare: the same memory, plain; an attacker can do more than a donor's root
 */
struct sealed_fixture {
	struct weir_session *session, *attacker;
	struct weir_region *region, *bare;
	struct weir_sealed *sealed;
};

/* The key of all sealed data, unknown to the donor. */
const struct weir_key *sealed_key(void);
/* Opens @region under @name; the test fails on an error. */
struct weir_sealed *sealed_of(struct weir_region *region, const char *name, uint32_t cipher);

/* Creates the region @name, of FIXTURE_BLOCKS blocks. */
void sealed_fixture_open(struct sealed_fixture *f, const char *name);
void sealed_fixture_close(struct sealed_fixture *f, const char *name);
/* Forgets all generations, as after a restart of the client. */
void sealed_fixture_reopen(struct sealed_fixture *f, const char *name);

/* Read and write a block; @fill: all bytes of the block. */
int block_write(struct weir_sealed *sealed, uint64_t block, uint8_t fill);
void block_expect(struct weir_sealed *sealed, uint64_t block, uint8_t fill);
/* The block cannot be read: @status, and a sentence with the block's number. */
void block_refused(struct weir_sealed *sealed, uint64_t block, int status);

/* A slot as stored. */
struct weir_slot slot_of(struct sealed_fixture *f, uint64_t block);
void slot_put(struct sealed_fixture *f, uint64_t block, const struct weir_slot *slot);

#endif
