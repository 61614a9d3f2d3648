/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How many calls crossed memory, and how many of the same files the kernel did. */
#ifndef WEIR_PRELOAD_FILES_COUNT_H
#define WEIR_PRELOAD_FILES_COUNT_H

enum counted { COUNT_READ, COUNT_WRITE, COUNT_KERNEL, COUNTS };

void count(enum counted call);
void counts_forget(void);

#endif
