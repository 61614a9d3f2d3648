/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cost of protecting a page of 4 KiB, in nanoseconds: the keyed checksum of volumes and block
 * devices, beside other checksums and beside encryption.
 *
 *   page-sums [RUNS]    medians of RUNS runs by turns, default 9
 *
 * "hot" works on eight pages, "64 MiB" on so many bytes, as a program that pages out does.
 */
#include <isa-l/crc.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/volume/checksum.h"

#define BYTES WEIR_VOLUME_PAGE_BYTES
#define PAGES (64u * 256u)
#define HOT 8u
#define RUNS_MAX 99

static struct weir_volume_checksum_key key;
static crypto_aead_aes256gcm_state gcm;
static unsigned char sealed[BYTES + crypto_aead_aes256gcm_ABYTES];
static unsigned char nonce[crypto_aead_aes256gcm_NPUBBYTES];
static uint32_t found; /* keeps the compiler from leaving out the work */

static void crc32c(const unsigned char *page)
{
	found += crc32_iscsi((unsigned char *)page, BYTES, ~0u);
}

static void keyed(const unsigned char *page)
{
	found += weir_volume_checksum(&key, 7, page);
}

static void siphash(const unsigned char *page)
{
	unsigned char hash[crypto_shorthash_BYTES];

	crypto_shorthash(hash, page, BYTES, key.hash);
	found += hash[0];
}

static void poly1305(const unsigned char *page)
{
	unsigned char tag[crypto_onetimeauth_BYTES];

	crypto_onetimeauth(tag, page, BYTES, (const unsigned char *)key.digest);
	found += tag[0];
}

static void aes256gcm(const unsigned char *page)
{
	crypto_aead_aes256gcm_encrypt_afternm(sealed, NULL, page, BYTES, nonce, 8, NULL, nonce,
					      &gcm);
	found += sealed[0];
}

static void chacha20poly1305(const unsigned char *page)
{
	crypto_aead_chacha20poly1305_ietf_encrypt(sealed, NULL, page, BYTES, nonce, 8, NULL, nonce,
						  (const unsigned char *)key.digest);
	found += sealed[0];
}

static const struct {
	const char *name;
	void (*protect)(const unsigned char *page);
} ways[] = {
	{ "CRC32C", crc32c },
	{ "keyed checksum", keyed },
	{ "SipHash-2-4", siphash },
	{ "Poly1305", poly1305 },
	{ "AES-256-GCM", aes256gcm },
	{ "ChaCha20-Poly1305", chacha20poly1305 },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

static double ns_per_page(const unsigned char *bytes, size_t way, size_t pages)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (size_t i = 0; i < PAGES; i++)
		ways[way].protect(bytes + i % pages * BYTES);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((double)(end.tv_sec - begin.tv_sec) * 1e9 +
		(double)(end.tv_nsec - begin.tv_nsec)) /
	       PAGES;
}

static int is_less(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), is_less);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	static double hot[WAYS][RUNS_MAX], walked[WAYS][RUNS_MAX];
	int runs = argc > 1 ? atoi(argv[1]) : 9;
	unsigned char *bytes = malloc((size_t)PAGES * BYTES);

	if (runs < 1 || runs > RUNS_MAX || !bytes || weir_volume_checksum_new_key(&key)) {
		fprintf(stderr, "Usage: page-sums [1 to %d]\n", RUNS_MAX);
		return 2;
	}
	randombytes_buf(bytes, (size_t)PAGES * BYTES);
	if (crypto_aead_aes256gcm_is_available())
		crypto_aead_aes256gcm_beforenm(&gcm, (const unsigned char *)key.digest);
	for (int run = 0; run < runs; run++) {
		for (size_t way = 0; way < WAYS; way++) {
			if (ways[way].protect == aes256gcm && !crypto_aead_aes256gcm_is_available())
				continue;
			hot[way][run] = ns_per_page(bytes, way, HOT);
			walked[way][run] = ns_per_page(bytes, way, PAGES);
		}
	}
	printf("%-18s %8s %8s  ns for 4 KiB\n", "", "hot", "64 MiB");
	for (size_t way = 0; way < WAYS; way++)
		printf("%-18s %8.0f %8.0f\n", ways[way].name, median(hot[way], runs),
		       median(walked[way], runs));
	free(bytes);
	return found == 1;
}
