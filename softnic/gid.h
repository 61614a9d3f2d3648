/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The GID table: the port's link-local GID, then the addresses of this host.
 */
#ifndef SOFTNIC_GID_H
#define SOFTNIC_GID_H

#include "device.h"

/* The same on every host: peers are never on another one. "weir" with the local bit set. */
#define SOFTNIC_GUID 0x0277656972000001ull

/** gid_get() - one entry. 0, or -ENODATA beyond the last. */
int gid_get(uint32_t index, union ibv_gid *gid);

/** gid_count() - how many entries there are */
uint32_t gid_count(void);

#endif
