/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of the file system, made from the bytes of a fuzz input. */
#ifndef WEIR_TESTS_FUZZ_FS_MESSAGE_H
#define WEIR_TESTS_FUZZ_FS_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/fs.h"

#define MESSAGE_MAX 16384
#define LOCK_BYTES 16 /* locks lie in the first bytes of a file */
#define LOCK_OWNERS 4 /* of each client */

/* The part of an input that was not used yet. */
struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* The next byte, or 0 at the end. */
uint8_t input_take(struct fuzz_input *in);

/**
 * message_make() - make a request that passes the first checks most of the time
 * @op: of enum wire_fs_op
 * @inodes: inode numbers up to this one were used
 * @client: 0 or 1; part of the pid of locks
 * @message: MESSAGE_MAX bytes
 *
 * Names, inodes and ranges come from small sets, so that requests meet.
 *
 * Return: its length.
 */
size_t message_make(struct fuzz_input *in, uint8_t op, uint64_t inodes, unsigned int client,
		    uint8_t *message);

#endif
