/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sealed regions: data that the donor, the network and other tenants can neither read, nor alter,
 * nor roll back unnoticed. The client encrypts and authenticates; the donor stores.
 *
 * Data is cut into blocks of 4096 bytes. Each is stored as a slot: ciphertext and, beside it, a
 * trailer with the authentication tag. So one RDMA read or write moves data and tags. A slot is
 * bound to the key, to the name of the data, to its block number and to its generation. Each
 * write of a block has a greater generation than the one before.
 *
 * Alteration: a slot that this key did not seal for this name and this block ends a read with
 * -EBADMSG. An interrupted write leaves such a slot, too, if it ends inside a slot: its client
 * died or its channel broke. This cannot be told from an attack. The block is lost; a write of the
 * whole block makes it readable. Other blocks of the write are old or new.
 *
 * Rollback: the client remembers the generation of each block that it has read or written, and an
 * older slot ends a read with -ESTALE. Zeroes in the place of a slot are also older. After
 * a write whose outcome is unknown, both the old and the new block are accepted.
 *
 * Not promised:
 *
 *	- A new opening knows no generations. It trusts the first slot that it sees of each block,
 *	  if that was ever valid, and zeroes, as a block that was never written. To know more, keep
 *	  weir_sealed_state_export() of an earlier opening where the donor cannot change it.
 *	- Of two clients that write a block without having seen each other's write, the donor may
 *	  choose which one others see. Generations follow the clocks, so clients that write the same
 *	  blocks by turns need clocks that differ by less than a turn takes. Otherwise a good
 *	  block may be reported as rolled back.
 *	- A write of a part of a block reads, changes and writes the whole block: atomically for the
 *	  threads of one handle, not for other handles and clients.
 *	- The donor knows sizes, which blocks are read and written, and when. It can lose the data.
 *	- Every holder of the key can read, write and forge.
 *
 * Only the name binds slots to a region: two regions with the same key must differ in it, also one
 * that is gone and one that takes its place. Else the donor could serve slots of the first.
 */
#ifndef WEIR_SEALED_H
#define WEIR_SEALED_H

#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/key.h>
#include <weir/region.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_sealed;

#define WEIR_SEALED_BLOCK 4096u /* bytes of data in a block */
#define WEIR_SEALED_SLOT 4160u /* bytes of the region that store a block */
#define WEIR_SEALED_NAME_MAX 255u

/* The cipher of writes. A slot says its own, so that clients may differ. */
enum weir_sealed_cipher {
	/* AES-256-GCM if this CPU has the instructions, else XChaCha20-Poly1305 */
	WEIR_SEALED_DEFAULT,
	WEIR_SEALED_AES256_GCM, /* only a CPU with AES instructions reads it */
	WEIR_SEALED_XCHACHA20_POLY1305, /* any CPU reads it */
};

/* How to open a sealed region. Zero means the default, except where noted. */
struct weir_sealed_options {
	size_t size; /* sizeof(struct weir_sealed_options) */
	/* required; another than the session's, which the donor knows. Not kept */
	const struct weir_key *key;
	/* 1 to WEIR_SEALED_NAME_MAX bytes; required: the same for all openings of the data */
	const char *name;
	uint32_t cipher; /* enum weir_sealed_cipher */
	/*
	 * 1: the region has just been created, and nobody has written to it. So a block's first
	 * write need not look for an earlier generation.
	 */
	uint32_t is_new;
};

/**
 * weir_sealed_region_bytes() - find the size of the region for an amount of data
 * @bytes: of data
 *
 * Context: Any thread; does not block.
 * Return: the length for weir_region_create(), or UINT64_MAX if there is no such length.
 */
uint64_t weir_sealed_region_bytes(uint64_t bytes);

/**
 * weir_sealed_open() - read and write a region through a key
 * @region: kept until weir_sealed_close(); not both plain and sealed data can lie in it
 * @options: copied
 * @sealed: receives the sealed region
 * @error: may be NULL
 *
 * Sends nothing: a wrong key or name shows when a block that was written is read, as -EBADMSG.
 * Takes 8 bytes of memory for each block that is used, and 4 MiB of registered buffers. The caller
 * owes a weir_sealed_close().
 *
 * Context: Any thread outside callbacks.
 * Return: 0, or
 *	-EINVAL      an option is missing or out of range, the region is smaller than a slot, or
 *	             the donor knows the key;
 *	-E2BIG       an option is unknown to this library;
 *	-EOPNOTSUPP  this CPU does not have the instructions for @options->cipher;
 *	-ENOMEM      out of memory (@error names RLIMIT_MEMLOCK if that limit is the cause).
 */
int weir_sealed_open(struct weir_region *region, const struct weir_sealed_options *options,
		     struct weir_sealed **sealed, struct weir_error *error);

/*
 * Wipes the keys and frees @sealed, which no thread may still use; NULL is allowed. The region
 * stays open. Context: any thread outside callbacks.
 */
void weir_sealed_close(struct weir_sealed *sealed);

/**
 * weir_sealed_read() - read, decrypt and verify
 * @sealed: the sealed region
 * @offset: in bytes of data; offset and length must lie within weir_sealed_info.bytes
 * @buf: receives the bytes; after an error its contents are undefined, but never unverified bytes
 * @length: at least 1
 * @error: says which block failed, and how; may be NULL
 *
 * Blocks that were never written read as zeroes. A read beside another client's write to the same
 * block looks again for up to 50 ms before it reports -EBADMSG.
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: 0, or
 *	-EBADMSG     a block is not what a holder of the key wrote there;
 *	-ESTALE      a block is older than one that this handle has read or written;
 *	-EOPNOTSUPP  a block is sealed by AES-256-GCM, and this CPU has no AES instructions;
 *	-EINVAL      bad bounds; or a status of weir_read().
 */
int weir_sealed_read(struct weir_sealed *sealed, uint64_t offset, void *buf, size_t length,
		     struct weir_error *error);

/**
 * weir_sealed_write() - encrypt and write
 * @sealed: the sealed region
 * @offset: in bytes of data, as for weir_sealed_read()
 * @buf: the bytes
 * @length: at least 1
 * @error: as for weir_sealed_read()
 *
 * First reads blocks covered in part, and blocks without a known generation. Whole blocks are
 * written whatever was there. Writes of one handle to the same block take turns.
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: as weir_sealed_read(), of blocks that it covers in part; or a status of weir_write().
 *	After an error each whole block is old, or new, or unreadable if the status is
 *	-ECONNRESET, -ETIMEDOUT or -EIO.
 */
int weir_sealed_write(struct weir_sealed *sealed, uint64_t offset, const void *buf, size_t length,
		      struct weir_error *error);

/* A description of a handle. */
struct weir_sealed_info {
	size_t size; /* bytes that the library has written */
	uint64_t bytes; /* of data that fit */
	uint64_t altered; /* blocks that ended a read or a write with -EBADMSG */
	uint64_t rolled_back; /* the same with -ESTALE */
	uint32_t cipher; /* enum weir_sealed_cipher of later writes, never the default */
};

/**
 * weir_sealed_info() - describe a sealed region
 * @sealed: the sealed region
 * @info: receives the information
 * @size: sizeof(struct weir_sealed_info)
 *
 * Context: Any thread; does not block.
 * Return: 0; -EINVAL @size leaves no room for a field.
 */
int weir_sealed_info(struct weir_sealed *sealed, struct weir_sealed_info *info, size_t size);

/* Context: any thread. Return: bytes of weir_sealed_state_export(), 8 for each block and 56. */
size_t weir_sealed_state_bytes(const struct weir_sealed *sealed);

/**
 * weir_sealed_state_export() - save the generations that this handle knows
 * @sealed: the sealed region
 * @state: receives weir_sealed_state_bytes() bytes, authenticated by the key
 *
 * A later opening that imports them notices also a rollback to before it. Keep them where the
 * donor cannot put an older state back. They tell when each block was written.
 *
 * Context: Any thread; does not block.
 */
void weir_sealed_state_export(struct weir_sealed *sealed, void *state);

/**
 * weir_sealed_state_import() - add the generations of an earlier opening
 * @sealed: the sealed region
 * @state: from weir_sealed_state_export(), for the same key, name and size
 * @length: bytes of @state
 *
 * Context: Any thread; does not block.
 * Return: 0; -EBADMSG not such a state.
 */
int weir_sealed_state_import(struct weir_sealed *sealed, const void *state, size_t length);

#ifdef __cplusplus
}
#endif
#endif
