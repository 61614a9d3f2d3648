/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Proves a path by data: writes to a donor, reads back, compares, and measures. */
#ifndef WEIR_APPS_DOCTOR_TRANSFER_H
#define WEIR_APPS_DOCTOR_TRANSFER_H

#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/session.h>

/**
 * struct data_proof - a proof, and its results
 * @address: of the donor; @device, @key, @encryption: as in the options of a session
 * @seconds: begin nothing more after this time; a slow path may take longer
 * @bytes: written, read back and found equal
 * @write_mbps, @read_mbps: MB/s; @write_us, @read_us: of 4 KiB
 */
struct data_proof {
	const char *address, *device;
	const struct weir_key *key;
	enum weir_encryption encryption;
	double seconds;

	struct weir_session_info info;
	uint64_t bytes;
	double write_mbps, read_mbps, write_us, read_us;
};

/**
 * transfer_prove() - open a session, move data, and close it
 *
 * Return: 0; -EBADMSG the data differs; -ENOMEM; as weir_session_open() and so on.
 */
int transfer_prove(struct data_proof *t, struct weir_error *error);

#endif
