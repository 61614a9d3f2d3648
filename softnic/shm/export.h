/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files of this process's memory that peers may map, as the owner sees them.
 *
 * A region that lies in a shared mapping of a memfd that is sealed against shrinking is
 * reached without a system call: peers are handed the file, and map it too. Such a file is
 * shared from its first region to its last. See peer_map.h for the peers' side.
 */
#ifndef WEIR_SOFTNIC_SHM_EXPORT_H
#define WEIR_SOFTNIC_SHM_EXPORT_H

#include <stddef.h>
#include <stdint.h>

/**
 * export_get() - which file does a range lie in?
 * @addr: where it begins
 * @length: bytes, all of them mapped
 * @offset: written if it lies in one: where in the file
 *
 * Context: any thread, no locks held.
 * Return: the number of the file, for which the caller owes one export_put(); 0 if it lies in
 * none that peers may map, or if there are SHARED_FILES already.
 */
uint32_t export_get(const void *addr, size_t length, uint64_t *offset);

/**
 * export_put() - a region is gone
 * @number: as export_get() returned it; 0 does nothing
 *
 * After the last one, peers are told to let go of the file.
 *
 * Context: any thread, no locks held.
 */
void export_put(uint32_t number);

/** export_send() - hand out a file, or say that there is none of that number. Never blocks. */
void export_send(int socket, uint32_t number);

#endif
