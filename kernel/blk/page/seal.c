// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kmod.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "kernel/blk/page/seal.h"

#define KEY_BYTES 32

static struct workqueue_struct *crypt_wq;

static const struct {
	const char *algorithm, *name;
} ciphers[] = {
	{ "gcm(aes)", "aes-256-gcm" },
	{ "rfc7539(chacha20,poly1305)", "chacha20-poly1305" },
};

/* Without instructions for AES, its portable implementations are slower than ChaCha20. */
static bool is_portable_aes(struct crypto_aead *aead)
{
	const char *driver = crypto_tfm_alg_driver_name(crypto_aead_tfm(aead));

	return strstr(driver, "aes-generic") || strstr(driver, "aes-fixed-time");
}

/* No implementation that allocates memory for a request. */
static struct crypto_aead *find_cipher(const char **name)
{
	struct crypto_aead *aead = ERR_PTR(-ENOENT);
	unsigned int i;

	request_module("crypto-aes"); /* AES by instructions, which no lookup of GCM loads */
	for (i = 0; i < ARRAY_SIZE(ciphers); i++) {
		*name = ciphers[i].name;
		aead = crypto_alloc_aead(ciphers[i].algorithm, 0, CRYPTO_ALG_ALLOCATES_MEMORY);
		if (!IS_ERR(aead) && !is_portable_aes(aead))
			break;
		if (!IS_ERR(aead))
			crypto_free_aead(aead);
		aead = ERR_PTR(-ENOENT);
	}
	return aead;
}

static int set_key(struct crypto_aead *aead)
{
	u8 key[KEY_BYTES];
	int rc = get_random_bytes_wait(key, sizeof(key));

	if (!rc)
		rc = crypto_aead_setkey(aead, key, sizeof(key));
	memzero_explicit(key, sizeof(key));
	return rc ?: crypto_aead_setauthsize(aead, WEIR_PAGE_TAG_BYTES);
}

int weir_blk_cipher_open(struct weir_blk_cipher *cipher, struct kweir_error *error)
{
	struct crypto_aead *aead = find_cipher(&cipher->name);
	int rc = PTR_ERR_OR_ZERO(aead);

	if (rc)
		return kweir_fail(error, rc,
				  "the kernel has neither AES-GCM nor ChaCha20-Poly1305 (%d)", rc);
	rc = set_key(aead);
	if (rc) {
		crypto_free_aead(aead);
		return kweir_fail(error, rc, "%s cannot be used (%d)", cipher->name, rc);
	}
	cipher->aead = aead;
	return 0;
}

void weir_blk_cipher_close(struct weir_blk_cipher *cipher)
{
	crypto_free_aead(cipher->aead);
	cipher->aead = NULL;
}

int weir_blk_seal_alloc(const struct weir_blk_cipher *cipher, unsigned int pieces,
			struct weir_blk_seal **out)
{
	struct weir_blk_seal *seal =
		kzalloc(sizeof(*seal) + crypto_aead_reqsize(cipher->aead), GFP_KERNEL);
	unsigned int i;

	*out = seal;
	if (!seal)
		return -ENOMEM;
	aead_request_set_tfm(&seal->aead, cipher->aead);
	for (i = 0; i < pieces; i++) {
		seal->piece[i] = alloc_pages_exact(WEIR_BLK_SEAL_PIECE_BYTES, GFP_KERNEL);
		if (!seal->piece[i]) {
			weir_blk_seal_free(seal);
			*out = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

void weir_blk_seal_free(struct weir_blk_seal *seal)
{
	unsigned int i;

	for (i = 0; seal && i < WEIR_BLK_SEAL_PIECES; i++) {
		if (seal->piece[i])
			free_pages_exact(seal->piece[i], WEIR_BLK_SEAL_PIECE_BYTES);
	}
	kfree_sensitive(seal);
}

/* Fills in seal->from, the tag included. */
static void list_page(struct weir_blk_seal *seal, struct weir_blk_cursor *cursor)
{
	struct scatterlist *sg = seal->from;
	unsigned int left = PAGE_SIZE;

	sg_init_table(sg, ARRAY_SIZE(seal->from));
	sg_set_buf(sg++, &seal->number, sizeof(seal->number));
	while (left) {
		unsigned int bytes = left;
		void *piece = weir_blk_cursor_next(cursor, &bytes);

		sg_set_buf(sg++, piece, bytes);
		left -= bytes;
	}
	sg_set_buf(sg, seal->tag, sizeof(seal->tag));
	sg_mark_end(sg);
}

/* Fills in seal->to with a page in one piece. */
static void list_target(struct weir_blk_seal *seal, void *page)
{
	sg_init_table(seal->to, ARRAY_SIZE(seal->to));
	sg_set_buf(&seal->to[0], &seal->number, sizeof(seal->number));
	sg_set_buf(&seal->to[1], page, PAGE_SIZE);
	sg_set_buf(&seal->to[2], seal->tag, sizeof(seal->tag));
}

/* From seal->from to @to. */
static int crypt_page(struct weir_blk_seal *seal, struct scatterlist *to, u64 number, u64 nonce,
		      bool encrypts)
{
	struct aead_request *req = &seal->aead;
	unsigned int bytes = encrypts ? PAGE_SIZE : PAGE_SIZE + WEIR_PAGE_TAG_BYTES;
	__le64 wire_nonce = cpu_to_le64(nonce);
	DECLARE_CRYPTO_WAIT(wait);

	seal->number = cpu_to_le64(number);
	memset(seal->iv, 0, sizeof(seal->iv));
	memcpy(seal->iv + sizeof(seal->iv) - sizeof(wire_nonce), &wire_nonce, sizeof(wire_nonce));
	aead_request_set_callback(req, CRYPTO_TFM_REQ_MAY_BACKLOG, crypto_req_done, &wait);
	aead_request_set_ad(req, sizeof(seal->number));
	aead_request_set_crypt(req, seal->from, to, bytes, seal->iv);
	return crypto_wait_req(encrypts ? crypto_aead_encrypt(req) : crypto_aead_decrypt(req),
			       &wait);
}

static void *page_of_ciphertext(const struct weir_blk_seal *seal, u32 page)
{
	size_t offset = (size_t)page << PAGE_SHIFT;

	return seal->piece[offset / WEIR_BLK_SEAL_PIECE_BYTES] + offset % WEIR_BLK_SEAL_PIECE_BYTES;
}

int weir_blk_seal_encrypt(struct weir_blk_seal *seal, struct scatterlist *sgl, u64 first, u32 pages,
			  u64 nonce)
{
	struct weir_blk_cursor cursor = { .sg = sgl };
	u32 i;

	for (i = 0; i < pages; i++) {
		int rc;

		list_page(seal, &cursor);
		list_target(seal, page_of_ciphertext(seal, i));
		rc = crypt_page(seal, seal->to, first + i, nonce + i, true);
		if (rc)
			return rc;
		seal->seals[i].nonce = nonce + i;
		memcpy(seal->seals[i].tag, seal->tag, sizeof(seal->tag));
	}
	return 0;
}

unsigned int weir_blk_seal_list(const struct weir_blk_seal *seal, struct scatterlist *sgl,
				u32 pages)
{
	size_t left = (size_t)pages << PAGE_SHIFT;
	unsigned int i, nents = DIV_ROUND_UP(left, WEIR_BLK_SEAL_PIECE_BYTES);

	sg_init_table(sgl, nents);
	for (i = 0; i < nents; i++) {
		size_t bytes = min_t(size_t, left, WEIR_BLK_SEAL_PIECE_BYTES);

		sg_set_buf(&sgl[i], seal->piece[i], bytes);
		left -= bytes;
	}
	return nents;
}

/* Decrypts the page in seal->from, to @to. */
static int open_page(struct weir_blk_seal *seal, struct scatterlist *to, u32 i, u64 number,
		     u32 expected)
{
	int rc;

	memcpy(seal->tag, seal->seals[i].tag, sizeof(seal->tag));
	rc = crypt_page(seal, to, number, seal->seals[i].nonce, false);
	return rc == -EBADMSG && expected == WEIR_SUM_UNKNOWN ? -EIO : rc;
}

int weir_blk_seal_decrypt(struct weir_blk_seal *seal, struct scatterlist *sgl, u64 first, u32 pages,
			  const u32 *expected)
{
	struct weir_blk_cursor cursor = { .sg = sgl };
	int rc = 0;
	u32 i;

	for (i = 0; i < pages; i++) {
		struct weir_blk_cursor begin = cursor;
		int opened = -ENODATA;

		list_page(seal, &cursor);
		if (!weir_page_sum_is_zeroes(expected[i])) {
			opened = open_page(seal, seal->from, i, first + i, expected[i]);
			rc = opened && rc != -EBADMSG ? opened : rc;
		}
		if (opened)
			weir_blk_cursor_clear_page(&begin);
	}
	return rc;
}

int weir_blk_seal_verify(struct weir_blk_seal *seal, struct scatterlist *sgl, u64 first, u32 pages,
			 const u32 *expected)
{
	struct weir_blk_cursor cursor = { .sg = sgl };
	int rc = 0;
	u32 i;

	for (i = 0; i < pages && !rc; i++) {
		struct weir_blk_cursor begin = cursor;

		list_page(seal, &cursor);
		list_target(seal, seal->piece[0]);
		if (weir_page_sum_is_zeroes(expected[i]))
			weir_blk_cursor_clear_page(&begin);
		else if (expected[i] != WEIR_SUM_UNKNOWN)
			rc = open_page(seal, seal->to, i, first + i, expected[i]);
	}
	return rc;
}

void weir_blk_seal_queue(struct weir_blk_seal *seal)
{
	queue_work(crypt_wq, &seal->work);
}

int weir_blk_seal_init(void)
{
	crypt_wq = alloc_workqueue("weir_blk_crypt", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return crypt_wq ? 0 : -ENOMEM;
}

void weir_blk_seal_exit(void)
{
	destroy_workqueue(crypt_wq);
}
