/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The devices of this process: "softnic0", with one Ethernet port, as Soft-RoCE has; more of
 * both if WEIR_SOFTNIC says so. All of them are on one network, and all share the process's
 * slot, numbers and keys.
 */
#ifndef WEIR_SOFTNIC_VERBS_DEVICE_H
#define WEIR_SOFTNIC_VERBS_DEVICE_H

#include <stdbool.h>

#include "verbs.h"

enum {
	SOFTNIC_DEVICES_MAX = 8,
	SOFTNIC_PORTS_MAX = 8, /* of each */
	SOFTNIC_PORT = 1, /* the first */
	SOFTNIC_SLOTS = 1024, /* processes of one user; slot 0 is nobody's */
	SOFTNIC_QP_INDEX_BITS = 14, /* QP number: slot above, index below */
	SOFTNIC_GIDS_MAX = 256, /* of a port: an index is a byte */
	SOFTNIC_RD_ATOMIC_MAX = 128, /* reads and atomics under way of a queue pair */
	SOFTNIC_PDS_MAX = 1 << 20,
	SOFTNIC_CQES_MAX = 1 << 22, /* entries one may ask for; none is ever short of them */
	SOFTNIC_INLINE_MIN = 64, /* granted even if not asked for */
	SOFTNIC_INLINE_MAX = 1024,
	SOFTNIC_DATAGRAM_MAX = 4096, /* bytes in one, the port's MTU */
	SOFTNIC_MESSAGE_MAX = 1 << 30, /* bytes in one work request */
};

/**
 * softnic_device() - the first device, without opening it
 *
 * Its address is what ibv_get_device_list() returns and ibv_context.device holds.
 */
struct ibv_device *softnic_device(void);

/** device_index() - 0 for softnic0, and so on */
uint32_t device_index(const struct ibv_device *device);

/** device_has_port() - is there a port of this number? */
bool device_has_port(uint32_t port);

/** device_ports() - how many each device has */
uint32_t device_ports(void);

/**
 * softnic_gid_index() - which entry of the first port's GID table carries an address
 * @gid: for IPv4 the mapped form, ::ffff:a.b.c.d
 *
 * Return: the index, or -ENOENT if it is no address of this host.
 */
int softnic_gid_index(const union ibv_gid *gid);

/**
 * softnic_slot() - the slot that this process has claimed on the host
 *
 * The upper part of all its QP numbers.
 *
 * Return: 1 to SOFTNIC_SLOTS - 1, or 0 while no device is open.
 */
uint32_t softnic_slot(void);

#endif
