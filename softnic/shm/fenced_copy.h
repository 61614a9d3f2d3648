/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies into a peer's memory that cannot land after the peer has gone on without us.
 *
 * A process may be stopped at any instruction, and woken after a peer has given up waiting for its
 * guard. Before the peer goes on, it sets a word of the guard. Here a restartable sequence reads
 * that word and stores: if the kernel takes the thread off its CPU in the middle, the thread later
 * begins again with reading the word.
 *
 * The last bytes are one store at the very end of the sequence, so they are stored once, and after
 * all others. Where the C library has registered no restartable sequences, or on CPUs other than
 * x86-64, the word is only read first. A host that takes the CPU from a virtual machine in the
 * middle is not seen either, nor is a stop that ends before the kernel has changed to another
 * thread. The second takes microseconds, and a peer waits far longer before it goes on.
 *
 * Source: rseq(2) of Linux 4.18; glibc registers each thread since 2.35.
 */
#ifndef WEIR_SOFTNIC_SHM_FENCED_COPY_H
#define WEIR_SOFTNIC_SHM_FENCED_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Short beside the time that a thread runs at once. Pieces of 16 KiB reached two thirds of the
 * speed of one copy of 1 MiB.
 */
enum { FENCED_BYTES_MAX = 1 << 17 };

/**
 * fenced_copy() - copy, unless the peer has cut us off
 * @to: in the peer's memory, mapped here
 * @n: bytes, from 1 to FENCED_BYTES_MAX; one word is stored last, as one store if aligned
 * @cut: in the guard
 *
 * Context: Any thread.
 * Return: false if @cut was set; then the end is not stored.
 */
bool fenced_copy(void *to, const void *from, size_t n, const uint32_t *cut);

#endif
