/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that holds keys: never in a core dump, and out of the swap. libsodium may be missing here,
 * so the kernel is asked directly. There are no guard pages, because neighbours then share one of
 * the few mappings that a process may have.
 *
 * Context: any thread.
 */
#ifndef WEIR_SOFTNIC_SEAL_SECRET_H
#define WEIR_SOFTNIC_SEAL_SECRET_H

#include <stddef.h>

/**
 * secret_alloc() - allocate whole pages
 *
 * If the pages cannot be locked, the process prints a line, once.
 *
 * Return: zeroed memory; NULL: out of memory.
 */
void *secret_alloc(size_t size);

/** secret_free() - wipe and free; @size: as allocated */
void secret_free(void *secret, size_t size);

/**
 * secret_forget_registers() - zero the vector registers that a call need not preserve
 *
 * For the end of a call that moved keys. memcpy() and ciphers leave there what they moved, and a
 * core dump has the registers. Nothing on other CPUs than x86-64 and 64-bit ARM. softnic depends on
 * nothing of weir, so this is its own weir_secret_forget_registers().
 */
void secret_forget_registers(void);

#endif
