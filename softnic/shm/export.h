/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Files of this process's memory that peers may map, on the owner's side.
 *
 * A memory region may lie in a shared mapping of a memfd sealed against shrinking. Peers then
 * get the file and map it, too, and reach the region without a system call. A file is exported
 * from the first registration to the last deregistration. See peer_map.h for the peers' side.
 */
#ifndef WEIR_SOFTNIC_SHM_EXPORT_H
#define WEIR_SOFTNIC_SHM_EXPORT_H

#include <stddef.h>
#include <stdint.h>

/**
 * export_get() - export the file that holds a range
 * @addr: start of the range
 * @length: in bytes; the whole range is mapped
 * @offset: set to the range's offset in the file, unless 0 is returned
 *
 * Context: any thread, no locks held.
 * Return: the file's number, for which the caller owes one export_put(). 0 if peers may map no
 * file with this range, or if SHARED_FILES files are exported already.
 */
uint32_t export_get(const void *addr, size_t length, uint64_t *offset);

/**
 * export_put() - release the file of a deregistered region
 * @number: returned by export_get(); 0 does nothing
 *
 * After the last release, peers are told to unmap the file.
 *
 * Context: any thread, no locks held.
 */
void export_put(uint32_t number);

/** export_send() - send the file of that number, if still exported; never blocks */
void export_send(int socket, uint32_t number);

#endif
