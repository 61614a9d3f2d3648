/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The GID table of a port: its own link-local GID, then the addresses of this host, which
 * every port has. An address keeps its index for as long as the host has it; what is taken
 * from the host leaves an empty entry, as in the kernel's table.
 */
#ifndef WEIR_SOFTNIC_VERBS_GID_H
#define WEIR_SOFTNIC_VERBS_GID_H

#include "device.h"

/**
 * gid_watch() - tell programs when addresses come and go (IBV_EVENT_GID_CHANGE)
 *
 * Where the kernel does not tell us, they are read at each question, and nobody is told.
 *
 * Context: once a process, when its first device is opened.
 */
void gid_watch(void);

/**
 * gid_guid() - the GUID of a device, or of one of its ports
 * @device: its index
 * @port: its number, or 0 for the device's own, which is also that of its first port
 *
 * The same on every host: peers are never on another one.
 */
uint64_t gid_guid(uint32_t device, uint32_t port);

/**
 * gid_get() - one entry of a port's table
 * @ifindex: set to the interface that has the address, if it is not NULL; the port's own GID leads
 *	nowhere but to this host, so its interface is the loopback
 *
 * Return: 0, or -ENODATA if it is empty or beyond the last.
 */
int gid_get(uint32_t device, uint32_t port, uint32_t index, union ibv_gid *gid, uint32_t *ifindex);

/** gid_index() - which entry of a port's table carries an address, or -ENOENT */
int gid_index(uint32_t device, uint32_t port, const union ibv_gid *gid);

/** gid_is_here() - does any port of any process have it? They may have more devices than we. */
bool gid_is_here(const union ibv_gid *gid);

#endif
