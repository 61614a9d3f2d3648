/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files of this process's memory that peers may map, as the owner sees them.
 *
 * A region that lies in a shared mapping of a memfd that is sealed against shrinking is
 * reached without a system call: peers are handed the file, and map it too. Such a file is
 * shared from its first region to its last. See near.h for the peers' side.
 */
#ifndef WEIR_SOFTNIC_SHM_EXPORT_H
#define WEIR_SOFTNIC_SHM_EXPORT_H

#include <stddef.h>
#include <stdint.h>

/**
 * share_take() - which file does a range lie in?
 * @addr: where it begins
 * @length: bytes, all of them mapped
 * @offset: written if it lies in one: where in the file
 *
 * Context: any thread, no locks held.
 * Return: the number of the file, for which the caller owes one share_give(); 0 if it lies in
 * none that peers may map, or if there are SHARED_FILES already.
 */
uint32_t share_take(const void *addr, size_t length, uint64_t *offset);

/**
 * share_give() - a region is gone
 * @number: as share_take() returned it; 0 does nothing
 *
 * After the last one, peers are told to let go of the file.
 *
 * Context: any thread, no locks held.
 */
void share_give(uint32_t number);

/** share_send() - hand out a file, or say that there is none of that number. Never blocks. */
void share_send(int socket, uint32_t number);

#endif
