/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that holds keys: never in a core dump, out of the swap, between guard pages, wiped when it
 * is freed. libsodium provides it. Each piece takes whole pages, so one piece holds what belongs
 * together.
 *
 * A copy of a key elsewhere, such as a local variable, lives for one call, which wipes it. The
 * vector registers are such a place: memcpy() leaves there what it moved, and a core dump has them.
 */
#ifndef WEIR_LIB_BASE_SECRET_H
#define WEIR_LIB_BASE_SECRET_H

#include <stddef.h>

/**
 * weir_secret_alloc() - allocate memory for keys
 * @size: bytes, at least 1
 *
 * A limit on locked memory is no failure. Then the kernel may write the keys to the swap, and the
 * listener of weir_secret_set_listener() hears of it, once.
 *
 * Context: any thread.
 * Return: zeroed memory, aligned to 64 bytes; NULL: out of memory.
 */
void *weir_secret_alloc(size_t size);

/* Wipes and frees, and forgets the registers. @secret may be NULL. */
void weir_secret_free(void *secret);

/**
 * weir_secret_forget_registers() - zero the vector registers that a call need not preserve
 *
 * For the end of a call that moved keys, in the thread that did. Nothing on other CPUs than x86-64
 * and 64-bit ARM.
 *
 * Context: any thread.
 */
void weir_secret_forget_registers(void);

/**
 * weir_secret_set_listener() - have a function called when keys could not be locked
 * @on_unlocked: @status is the negative errno. Called at most once, by the allocating thread
 *
 * Context: before other threads allocate.
 */
void weir_secret_set_listener(void (*on_unlocked)(int status));

#endif
