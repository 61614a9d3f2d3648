/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The GID table of a port: its own link-local GID, then the addresses of this host, which
 * every port has.
 */
#ifndef SOFTNIC_GID_H
#define SOFTNIC_GID_H

#include "device.h"

/**
 * gid_guid() - the GUID of a device, or of one of its ports
 * @device: its index
 * @port: its number, or 0 for the device's own, which is also that of its first port
 *
 * The same on every host: peers are never on another one.
 */
uint64_t gid_guid(uint32_t device, uint32_t port);

/** gid_get() - one entry of a port's table. 0, or -ENODATA beyond the last. */
int gid_get(uint32_t device, uint32_t port, uint32_t index, union ibv_gid *gid);

/** gid_count() - how many entries there are */
uint32_t gid_count(void);

#endif
