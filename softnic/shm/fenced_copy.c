// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <string.h>

#include "fenced_copy.h"
#include "shared.h"

enum { PLAIN_BYTES = 1 << 14 };

/*
 * Stores the end after the rest. Programs poll it; memcpy() promises no order. Once cut off, a
 * thread that had lost its CPU may still store as many bytes as it stores between two looks.
 */
static bool plain_copy(char *to, const char *from, size_t n, const uint32_t *cut)
{
	uint64_t word;

	for (; n > PLAIN_BYTES; to += PLAIN_BYTES, from += PLAIN_BYTES, n -= PLAIN_BYTES) {
		if (load_ordered(cut))
			return false;
		memcpy(to, from, PLAIN_BYTES);
	}
	if (load_ordered(cut))
		return false;
	if (n < sizeof(word) || ((uintptr_t)to + n) % sizeof(word)) {
		memcpy(to, from, --n);
		__atomic_store_n(to + n, from[n], __ATOMIC_RELEASE);
		return true;
	}
	n -= sizeof(word);
	memcpy(to, from, n);
	memcpy(&word, from + n, sizeof(word));
	__atomic_store_n((uint64_t *)(to + n), word, __ATOMIC_RELEASE);
	return true;
}

#if defined(__x86_64__) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>

/*
 * The sequence is [1, 2); the kernel continues at 4 if the sequence was interrupted, and demands
 * the signature before 4. The registers that the sequence changes are set again at 5. The store
 * is the sequence's last instruction. The stores of "rep movsb" come in any order, but before it.
 */
#define FENCED_COPY(store)                                      \
	__asm__ volatile(".pushsection __rseq_cs, \"aw\"\n\t"   \
			 ".balign 32\n"                         \
			 "3:\n\t"                               \
			 ".long 0, 0\n\t"                       \
			 ".quad 1f, 2f - 1f, 4f\n\t"            \
			 ".popsection\n"                        \
			 "5:\n\t"                               \
			 "movq %[to], %%rdi\n\t"                \
			 "movq %[from], %%rsi\n\t"              \
			 "movq %[bulk], %%rcx\n\t"              \
			 "leaq 3b(%%rip), %%rax\n\t"            \
			 "movq %%rax, %[sequence]\n"            \
			 "1:\n\t"                               \
			 "cmpl $0, %[cut]\n\t"                  \
			 "jne 6f\n\t"                           \
			 "rep movsb\n\t" store "\n"             \
			 "2:\n\t"                               \
			 "movl $1, %[done]\n\t"                 \
			 "jmp 7f\n"                             \
			 "6:\n\t"                               \
			 "movl $0, %[done]\n"                   \
			 "7:\n\t"                               \
			 "movq $0, %[sequence]\n\t"             \
			 ".pushsection .text.unlikely, \"ax\"\n\t" \
			 ".byte 0x0f, 0xb9, 0x3d\n\t"           \
			 ".long %c[signature]\n"                \
			 "4:\n\t"                               \
			 "jmp 5b\n\t"                           \
			 ".popsection"                          \
			 : [done] "=&r"(done), [sequence] "+m"(*sequence) \
			 : [to] "r"(to), [from] "r"(from), [bulk] "r"(bulk), [end] "r"(end), \
			   [cut] "m"(*cut), [signature] "i"(RSEQ_SIG) \
			 : "rax", "rcx", "rdi", "rsi", "memory", "cc")

bool fenced_copy(void *to, const void *from, size_t n, const uint32_t *cut)
{
	bool by_word = n >= sizeof(uint64_t) && !(((uintptr_t)to + n) % sizeof(uint64_t));
	size_t bulk = n - (by_word ? sizeof(uint64_t) : 1);
	uint64_t end = 0, *sequence;
	struct rseq *rseq;
	int done;

	if (!__rseq_size)
		return plain_copy(to, from, n, cut);
	rseq = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
	sequence = (uint64_t *)&rseq->rseq_cs;
	memcpy(&end, (const char *)from + bulk, n - bulk);
	if (by_word)
		FENCED_COPY("movq %[end], (%%rdi)");
	else
		FENCED_COPY("movb %b[end], (%%rdi)");
	return done;
}

#else

bool fenced_copy(void *to, const void *from, size_t n, const uint32_t *cut)
{
	return plain_copy(to, from, n, cut);
}

#endif
