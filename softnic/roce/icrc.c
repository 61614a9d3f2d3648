// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Eight table lookups take eight bytes at a time ("slicing by 8", Kounavis and Berry, 2008). A
 * table is linear: an entry is the sum of the entries of its index's bits. So eight numbers
 * define each table, and the compiler computes the rest.
 *
 * x86 multiplies polynomials without carries: eight products reduce 64 bytes at a time, or 128, to
 * as many with the same CRC (Gopal et al., "Fast CRC computation for generic polynomials using
 * PCLMULQDQ", Intel, 2009). The tables do the last 16 bytes.
 */
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "softnic/roce/icrc.h"
#include "softnic/roce/packet.h"

#define BIT(i, n, value) ((i) >> (n)&1 ? (value) : 0u)
#define ENTRY(i, a, b, c, d, e, f, g, h)                                                           \
	(BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^ BIT(i, 5, f) ^ \
	 BIT(i, 6, g) ^ BIT(i, 7, h))
#define ENTRIES_4(i, ...)                                                                  \
	ENTRY((i), __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__), \
		ENTRY((i) + 3, __VA_ARGS__)
#define ENTRIES_16(i, ...)                                            \
	ENTRIES_4((i), __VA_ARGS__), ENTRIES_4((i) + 4, __VA_ARGS__), \
		ENTRIES_4((i) + 8, __VA_ARGS__), ENTRIES_4((i) + 12, __VA_ARGS__)
#define ENTRIES_64(i, ...)                                               \
	ENTRIES_16((i), __VA_ARGS__), ENTRIES_16((i) + 16, __VA_ARGS__), \
		ENTRIES_16((i) + 32, __VA_ARGS__), ENTRIES_16((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                 \
	{                                                                          \
		ENTRIES_64(0, __VA_ARGS__), ENTRIES_64(64, __VA_ARGS__),           \
			ENTRIES_64(128, __VA_ARGS__), ENTRIES_64(192, __VA_ARGS__) \
	}

/* Of the reflected polynomial 0xedb88320; table n is followed by n zero bytes. */
static const uint32_t tables[8][256] = {
	TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190,
	      0xedb88320),
	TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05,
	      0x3b83984b),
	TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0,
	      0xe1351b80),
	TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d,
	      0xed59b63b),
	TABLE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849,
	      0xb1e6b092),
	TABLE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c,
	      0x1eb014d8),
	TABLE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579,
	      0x8816eaf2),
	TABLE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed,
	      0x533b85da),
};

enum { FOLD_MIN = 32 }; /* then folding pays */

static uint32_t little_endian(const uint8_t *b)
{
	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

#ifdef __x86_64__

#define FOLDS __attribute__((target("pclmul")))
#define FOLDS_WIDE __attribute__((target("avx2,pclmul,vpclmulqdq,xsave")))

enum { CANNOT_FOLD = 1, CAN_FOLD, CAN_FOLD_WIDE };

/* The kernel saves the wide registers. */
FOLDS_WIDE static bool keeps_wide_registers(void)
{
	return (_xgetbv(0) & 6) == 6;
}

static int find_answer(void)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_PCLMUL))
		return CANNOT_FOLD;
	if (!(c & bit_OSXSAVE) || !keeps_wide_registers())
		return CAN_FOLD;
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2) || !(c & bit_VPCLMULQDQ))
		return CAN_FOLD;
	return CAN_FOLD_WIDE;
}

static int can_fold(void)
{
	static int answer; /* 0: not known; every thread finds the same */
	int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);

	if (!known) {
		known = find_answer();
		__atomic_store_n(&answer, known, __ATOMIC_RELAXED);
	}
	return known;
}

static __m128i load(const uint8_t *at)
{
	return _mm_loadu_si128((const __m128i *)at);
}

/* Moves @x over the distance of @factors, onto @onto. */
FOLDS static __m128i fold(__m128i x, __m128i factors, __m128i onto)
{
	return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, factors, 0x00),
					   _mm_clmulepi64_si128(x, factors, 0x11)),
			     onto);
}

/*
 * The factors of all folds are x^(n + 32) and x^(n - 32) modulo the polynomial, reflected, for a
 * distance of n bits.
 */
static __m128i by_128(void)
{
	return _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
}

FOLDS_WIDE static __m256i load_wide(const uint8_t *at)
{
	return _mm256_loadu_si256((const __m256i *)at);
}

/* As fold(), of two numbers at once. */
FOLDS_WIDE static __m256i fold_wide(__m256i x, __m256i factors, __m256i onto)
{
	return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(x, factors, 0x00),
						 _mm256_clmulepi64_epi128(x, factors, 0x11)),
				onto);
}

/* @size is a multiple of 128, and not 0. */
FOLDS_WIDE static __m128i fold_128_bytes(__m128i first, const uint8_t *at, size_t size)
{
	const __m256i by_1024 = _mm256_set_epi64x(0x14a7fe880, 0x1e88ef372, 0x14a7fe880,
						  0x1e88ef372);
	const __m256i by_256 = _mm256_set_epi64x(0x15a546366, 0x0f1da05aa, 0x15a546366,
						 0x0f1da05aa);
	__m256i a = load_wide(at), b = load_wide(at + 32);
	__m256i c = load_wide(at + 64), d = load_wide(at + 96);

	a = _mm256_xor_si256(a, _mm256_zextsi128_si256(first));
	for (size -= 128, at += 128; size; size -= 128, at += 128) {
		a = fold_wide(a, by_1024, load_wide(at));
		b = fold_wide(b, by_1024, load_wide(at + 32));
		c = fold_wide(c, by_1024, load_wide(at + 64));
		d = fold_wide(d, by_1024, load_wide(at + 96));
	}
	d = fold_wide(fold_wide(fold_wide(a, by_256, b), by_256, c), by_256, d);
	return fold(_mm256_castsi256_si128(d), by_128(), _mm256_extracti128_si256(d, 1));
}

/* @size is a multiple of 64, and not 0. */
FOLDS static __m128i fold_64_bytes(__m128i first, const uint8_t *at, size_t size)
{
	const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
	__m128i a = load(at), b = load(at + 16), c = load(at + 32), d = load(at + 48);

	a = _mm_xor_si128(a, first);
	for (size -= 64, at += 64; size; size -= 64, at += 64) {
		a = fold(a, by_512, load(at));
		b = fold(b, by_512, load(at + 16));
		c = fold(c, by_512, load(at + 32));
		d = fold(d, by_512, load(at + 48));
	}
	return fold(fold(fold(a, by_128(), b), by_128(), c), by_128(), d);
}

/* @size is at least 16 and a multiple of 16. The result continues with a CRC of 0. */
FOLDS static void fold_bytes(uint32_t crc, const uint8_t *at, size_t size, uint8_t *result)
{
	size_t wide = can_fold() == CAN_FOLD_WIDE ? size & ~(size_t)127 : 0;
	size_t done = wide ? wide : size & ~(size_t)63;
	__m128i x = _mm_cvtsi32_si128((int)crc);

	if (wide)
		x = fold_128_bytes(x, at, wide);
	else if (done)
		x = fold_64_bytes(x, at, done);
	else
		x = _mm_xor_si128(x, load(at));
	for (done = done ? done : 16; done < size; done += 16)
		x = fold(x, by_128(), load(at + done));
	_mm_storeu_si128((__m128i *)result, x);
}

#else

enum { CANNOT_FOLD = 1 };

static int can_fold(void)
{
	return CANNOT_FOLD;
}

static void fold_bytes(uint32_t crc, const uint8_t *at, size_t size, uint8_t *result)
{
	(void)crc, (void)at, (void)size, (void)result;
}

#endif

static uint32_t add_bytes(uint32_t crc, const uint8_t *at, size_t size)
{
	uint8_t folded[16];
	uint32_t high;

	if (size >= FOLD_MIN && can_fold() != CANNOT_FOLD) {
		fold_bytes(crc, at, size & ~(size_t)15, folded);
		at += size & ~(size_t)15;
		size &= 15;
		crc = add_bytes(0, folded, sizeof(folded));
	}
	for (; size >= 8; size -= 8, at += 8) {
		crc ^= little_endian(at);
		high = little_endian(at + 4);
		crc = tables[7][crc & 255] ^ tables[6][crc >> 8 & 255] ^
		      tables[5][crc >> 16 & 255] ^ tables[4][crc >> 24] ^ tables[3][high & 255] ^
		      tables[2][high >> 8 & 255] ^ tables[1][high >> 16 & 255] ^
		      tables[0][high >> 24];
	}
	while (size--)
		crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 255];
	return crc;
}

enum {
	LRH_BYTES = 8, /* of ones, in place of InfiniBand's local header */
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	UDP_PROTOCOL = 17,
	BTH_RESERVED = 4, /* the byte with FECN and BECN */
};

static void put_u16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* IPv4's type of service, time to live and checksum are ones. */
static size_t fill_ipv4(const struct roce_flow *flow, size_t udp_bytes, uint8_t *at)
{
	memset(at, 0xff, IPV4_BYTES);
	at[0] = 0x45;
	put_u16(at + 2, IPV4_BYTES + udp_bytes);
	put_u16(at + 4, flow->ip_id);
	put_u16(at + 6, flow->dont_fragment ? 0x4000 : 0);
	at[9] = UDP_PROTOCOL;
	memcpy(at + 12, flow->src, 4);
	memcpy(at + 16, flow->dst, 4);
	return IPV4_BYTES;
}

/* IPv6's traffic class, flow label and hop limit are ones. */
static size_t fill_ipv6(const struct roce_flow *flow, size_t udp_bytes, uint8_t *at)
{
	memset(at, 0xff, IPV6_BYTES);
	at[0] = 0x6f;
	put_u16(at + 4, udp_bytes);
	at[6] = UDP_PROTOCOL;
	memcpy(at + 8, flow->src, 16);
	memcpy(at + 24, flow->dst, 16);
	return IPV6_BYTES;
}

uint32_t roce_icrc(const struct roce_flow *flow, const uint8_t *bytes, size_t size)
{
	uint8_t head[LRH_BYTES + IPV6_BYTES + UDP_BYTES + ROCE_BTH_BYTES], *at = head + LRH_BYTES;
	size_t udp_bytes = UDP_BYTES + size + ROCE_ICRC_BYTES;
	uint32_t crc;

	memset(head, 0xff, LRH_BYTES);
	at += flow->is_ipv6 ? fill_ipv6(flow, udp_bytes, at) : fill_ipv4(flow, udp_bytes, at);
	put_u16(at, flow->src_port);
	put_u16(at + 2, flow->dst_port);
	put_u16(at + 4, udp_bytes);
	memset(at + 6, 0xff, 2); /* UDP's checksum */
	at += UDP_BYTES;
	memcpy(at, bytes, ROCE_BTH_BYTES);
	at[BTH_RESERVED] = 0xff;
	at += ROCE_BTH_BYTES;
	crc = add_bytes(~0u, head, at - head);
	return ~add_bytes(crc, bytes + ROCE_BTH_BYTES, size - ROCE_BTH_BYTES);
}

size_t roce_icrc_append(const struct roce_flow *flow, uint8_t *bytes, size_t size)
{
	uint32_t crc = roce_icrc(flow, bytes, size);
	int i;

	for (i = 0; i < ROCE_ICRC_BYTES; i++)
		bytes[size + i] = (uint8_t)(crc >> (8 * i));
	return size + ROCE_ICRC_BYTES;
}

bool roce_icrc_is_right(const struct roce_flow *flow, const uint8_t *bytes, size_t size)
{
	size -= ROCE_ICRC_BYTES;
	return little_endian(bytes + size) == roce_icrc(flow, bytes, size);
}
