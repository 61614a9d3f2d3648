/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The GID table of a port: the port's link-local GID, then the addresses of this host, which all
 * ports share. An address keeps its index as long as the host has the address. A removed address
 * leaves an empty entry, as in the kernel's table.
 */
#ifndef WEIR_SOFTNIC_VERBS_GID_H
#define WEIR_SOFTNIC_VERBS_GID_H

#include "device.h"

/**
 * gid_watch() - report address changes to programs (IBV_EVENT_GID_CHANGE)
 *
 * Without netlink notices, each query reads the addresses, and no events are raised.
 *
 * Context: Once per process, when its first device is opened.
 */
void gid_watch(void);

/**
 * gid_guid() - the GUID of a device, or of one of its ports
 * @device: index of the device
 * @port: port number, or 0 for the device; device and first port have the same GUID
 *
 * GUIDs are the same on every host. Between hosts addresses tell ports apart.
 */
uint64_t gid_guid(uint32_t device, uint32_t port);

/**
 * gid_get() - read an entry of a port's table
 * @ifindex: if not NULL, set to the interface that has the address; for the port's own GID this is
 *	the loopback interface, because the GID is local to the host
 *
 * Return: 0, or -ENODATA if the entry is empty or beyond the end.
 */
int gid_get(uint32_t device, uint32_t port, uint32_t index, union ibv_gid *gid, uint32_t *ifindex);

/** gid_index() - find an address in a port's table; the index or -ENOENT */
int gid_index(uint32_t device, uint32_t port, const union ibv_gid *gid);

/** gid_is_here() - does any port of any process have @gid? Others may have more devices. */
bool gid_is_here(const union ibv_gid *gid);

#endif
