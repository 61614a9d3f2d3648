/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Encryption of a device's pages, by AEAD of the kernel's crypto API. core/volume/page_seal.h says
 * which nonce and tag belong to a page.
 *
 * Cipher: AES-256-GCM if the kernel has more than its portable AES, else ChaCha20-Poly1305. Nonce:
 * a number that never repeats for the key. Associated data: the number of the page.
 *
 * Key: random at attach, and wiped with the transform at detach. Nothing else needs it. Nonces and
 * tags are in this memory only, so no ciphertext can be read after detach, with or without a key.
 * New replicas and the local disk receive ciphertext of the same key as it is. A donor that is
 * connected again, or returns empty, changes nothing here. A device that is attached again begins
 * with pages that are all NOTHING. A named region outlives its device, and so is not encrypted.
 *
 * Context: a work item of each request encrypts and decrypts. There the CPU's vector instructions
 * may always be used, a cipher may sleep, and several requests proceed on several CPUs. In the
 * softirq or the work of a connection that reports completions, a request would delay all others
 * for the time that its pages take. A read decrypts where the data arrived. A write needs memory of
 * its own for the ciphertext, which each tag has from the start.
 */
#ifndef WEIR_KERNEL_BLK_PAGE_SEAL_H
#define WEIR_KERNEL_BLK_PAGE_SEAL_H

#include <crypto/aead.h>
#include <linux/blk-mq.h>

#include "core/volume/extents.h"
#include "kernel/blk/page/cursor.h"
#include "kernel/weir/weir.h"

#define WEIR_BLK_SEAL_BYTES_MAX SZ_128K /* of a request */
#define WEIR_BLK_SEAL_PIECE_BYTES SZ_32K /* the page allocator finds so much */
#define WEIR_BLK_SEAL_PIECES (WEIR_BLK_SEAL_BYTES_MAX / WEIR_BLK_SEAL_PIECE_BYTES)
#define WEIR_BLK_SEAL_IV_BYTES 12

/* @aead: NULL: not encrypted. @name: for people */
struct weir_blk_cipher {
	struct crypto_aead *aead;
	const char *name;
};

/**
 * struct weir_blk_seal - the encryption of one request or chunk at a time
 * @rq: the request; @work: encrypts or decrypts it
 * @seals: of the pages of a write; expected ones of a read
 * @piece: ciphertext of a write; of a chunk only the first piece, to which pages are decrypted
 * @from, @to: associated data, page and tag, for the cipher
 * @number, @tag, @iv: of the page
 * @aead: the request to the cipher, last because of its context
 */
struct weir_blk_seal {
	struct request *rq;
	struct work_struct work;
	struct weir_page_seal seals[WEIR_EXTENTS_CHUNK_PAGES];
	void *piece[WEIR_BLK_SEAL_PIECES];
	struct scatterlist from[WEIR_BLK_PAGE_PIECES + 2], to[3];
	__le64 number;
	u8 tag[WEIR_PAGE_TAG_BYTES];
	u8 iv[WEIR_BLK_SEAL_IV_BYTES];
	struct aead_request aead;
};

/* Context of all below: process; they sleep. */

/* Draws a key. Return: 0, and the caller owes a weir_blk_cipher_close(); or an errno. */
int weir_blk_cipher_open(struct weir_blk_cipher *cipher, struct kweir_error *error);
void weir_blk_cipher_close(struct weir_blk_cipher *cipher);

/* @pieces: of ciphertext, 1 to WEIR_BLK_SEAL_PIECES. Return: 0; -ENOMEM. */
int weir_blk_seal_alloc(const struct weir_blk_cipher *cipher, unsigned int pieces,
			struct weir_blk_seal **seal);
void weir_blk_seal_free(struct weir_blk_seal *seal);

/*
 * Encrypts @pages pages of @sgl, from number @first on, with nonces from @nonce on. Fills in the
 * seals and the ciphertext, which weir_blk_seal_list() describes. Allocates nothing.
 *
 * Return: 0, or the cipher's errno.
 */
int weir_blk_seal_encrypt(struct weir_blk_seal *seal, struct scatterlist *sgl, u64 first, u32 pages,
			  u64 nonce);

/* Makes @sgl the ciphertext of @pages pages. Return: its length. */
unsigned int weir_blk_seal_list(const struct weir_blk_seal *seal, struct scatterlist *sgl,
				u32 pages);

/*
 * Decrypts the pages in place. Pages whose expected value is NOTHING become zeroes, and so does a
 * page that is not as sealed. Allocates nothing.
 *
 * Return: 0; -EBADMSG: a page is not what was written; -EIO: a page whose last write failed cannot
 * be read; or the cipher's errno.
 */
int weir_blk_seal_decrypt(struct weir_blk_seal *seal, struct scatterlist *sgl, u64 first, u32 pages,
			  const u32 *expected);

/* The same for pages that stay encrypted; pages with an UNKNOWN sum are not verified. */
int weir_blk_seal_verify(struct weir_blk_seal *seal, struct scatterlist *sgl, u64 first, u32 pages,
			 const u32 *expected);

/* Queues the work. Context: any. */
void weir_blk_seal_queue(struct weir_blk_seal *seal);

int weir_blk_seal_init(void);
void weir_blk_seal_exit(void);

#endif
