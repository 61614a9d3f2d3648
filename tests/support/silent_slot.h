/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_TESTS_SUPPORT_SILENT_SLOT_H
#define WEIR_TESTS_SUPPORT_SILENT_SLOT_H

#include <stdint.h>

/* Take a free slot of softnic. The holder never answers until the socket is closed. */
uint32_t take_slot(int *fd);
/*
 * Take a free slot beside softnic's: to the kernel one process holds both. Return: a listening
 * socket, or -1 if no slot is free.
 */
int claim_slot(uint32_t *slot);

#endif
