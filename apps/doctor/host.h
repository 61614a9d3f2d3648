/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir doctor HOST: the path between this host and another. */
#ifndef WEIR_APPS_DOCTOR_HOST_H
#define WEIR_APPS_DOCTOR_HOST_H

#include <netdb.h>
#include <weir/key.h>

#include "apps/doctor/report.h"
#include "softnic/udp/probe.h"

/**
 * struct far_host - the other end, and what is known of the path
 * @donor: as the user typed it; @name: its address for messages, without a port
 * @address: the first of the donor's addresses
 * @device: from device_choose()
 * @key: or NULL
 * @is_here: an address of this host
 * @port: of a softnic there
 * @payload: of a packet, as softnic counts
 */
struct far_host {
	const char *donor, *device;
	char name[64];
	struct addrinfo *address;
	struct weir_key *key;
	enum weir_encryption encryption;
	bool is_softnic, is_json, is_here;

	struct probe probe;
	uint16_t port;
	uint32_t payload;
};

/* Adds the findings; in order, the first that fails ends the check. */
void check_host(struct report *report, struct far_host *h);

#endif
