/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The devices of this process: by default "softnic0" with one Ethernet port, like Soft-RoCE.
 * WEIR_SOFTNIC can set more devices and ports. All devices are on one network and share the
 * process's slot, QP numbers and keys.
 */
#ifndef WEIR_SOFTNIC_VERBS_DEVICE_H
#define WEIR_SOFTNIC_VERBS_DEVICE_H

#include <stdbool.h>

#include "verbs.h"

enum {
	SOFTNIC_DEVICES_MAX = 8,
	SOFTNIC_PORTS_MAX = 8, /* per device */
	SOFTNIC_PORT = 1, /* number of the first port */
	SOFTNIC_SLOTS = 1024, /* processes of one user; slot 0 is unused */
	SOFTNIC_QP_INDEX_BITS = 14, /* QP number: slot above, index below */
	SOFTNIC_GIDS_MAX = 256, /* per port: a GID index is a byte */
	SOFTNIC_RD_ATOMIC_MAX = 128, /* reads and atomics in flight per queue pair */
	SOFTNIC_PDS_MAX = 1 << 20,
	SOFTNIC_CQES_MAX = 1 << 22, /* accepted by ibv_create_cq() */
	SOFTNIC_INLINE_MIN = 64, /* granted always */
	SOFTNIC_INLINE_MAX = 1024,
	SOFTNIC_DATAGRAM_MAX = 4096, /* bytes in a datagram, the port's MTU */
	SOFTNIC_VENDOR = 0xffffff, /* Soft-RoCE's: selects quirks in programs, which reject 0 */
	SOFTNIC_MESSAGE_MAX = 1 << 30, /* bytes in a WR */
};

/**
 * softnic_device() - the first device, without opening it
 *
 * ibv_get_device_list() and ibv_context.device hold the same address.
 */
struct ibv_device *softnic_device(void);

/** device_count() - number of devices; 0 if a setting is invalid or the devices have gone */
uint32_t device_count(void);

/** device_index() - the N of softnicN */
uint32_t device_index(const struct ibv_device *device);

/** device_has_port() - is this a valid port number? */
bool device_has_port(uint32_t port);

/** device_ports() - number of ports of each device */
uint32_t device_ports(void);

/**
 * softnic_gid_index() - find an address in the GID table of the first port
 * @gid: the address; IPv4 in the mapped form, ::ffff:a.b.c.d
 *
 * Return: the index, or -ENOENT if @gid is no address of this host.
 */
int softnic_gid_index(const union ibv_gid *gid);

/**
 * softnic_nic_slot() - the slot of this process on the host
 *
 * The slot is the upper part of all QP numbers of the process.
 *
 * Return: 1 to SOFTNIC_SLOTS - 1, or 0 while no device is open.
 */
uint32_t softnic_nic_slot(void);

#endif
