/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir doctor HOST: the path between this host and another. weir doctor --pool: to each donor. */
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
 * @is_quiet: print nothing before the end
 * @packets_only: try no session
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
	bool is_softnic, is_quiet, packets_only, is_here;

	struct probe probe;
	uint16_t port;
	uint32_t payload;
};

/**
 * host_resolve() - fill in the address and the name
 * @h: with its donor; the caller frees the address by freeaddrinfo()
 *
 * Return: 0; -EINVAL the text is not the address of one host; errors of weir_address_resolve().
 */
int host_resolve(struct far_host *h, struct weir_error *error);

/* Adds the findings; in order, the first that fails ends the check. */
void check_host(struct report *report, struct far_host *h);

/**
 * check_donor_path() - check_host(), and add what is not well, or one line
 * @label: of the donor, for the findings
 * @address: of the donor
 * @path: key, device and encryption. Without a key there is no session
 *
 * Adds nothing for this host without a key: no packet is sent.
 */
void check_donor_path(struct report *report, const char *label, const char *address,
		      const struct far_host *path);

#endif
