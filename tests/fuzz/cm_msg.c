// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Bytes from a connection manager's socket are refused, or form a message that encodes back to
 * the same meaning. The input is tried as is, and as a change to a message of each kind,
 * because random bytes rarely begin like a message.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "softnic/cm/msg.h"

enum { CHANGES_MAX = 4, PRIVATE_LEN_AT = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Return: whether the bytes form a message. */
static int check(const uint8_t *data, size_t size)
{
	uint8_t buf[CM_MSG_BYTES_MAX];
	struct cm_msg msg, again;
	size_t len;

	if (cm_msg_decode(&msg, data, size))
		return 0;
	assert(msg.private_len <= cm_msg_private_max(msg.type));
	len = cm_msg_encode(&msg, buf);
	assert(len == size);
	assert(!cm_msg_decode(&again, buf, len));
	assert(!memcmp(&msg, &again, sizeof(msg)));
	return 1;
}

/* A good message; free fields come from the input. */
static size_t make(enum cm_msg_type type, const uint8_t *data, size_t size, uint8_t *buf)
{
	struct cm_msg msg = { .type = type,
			      .src.sa.sa_family = AF_INET,
			      .dst.sa.sa_family = AF_INET6 };
	size_t len = size < cm_msg_private_max(type) ? size : cm_msg_private_max(type);

	if (size >= 4)
		memcpy(&msg.ece_options, data, 4);
	msg.qp_num = msg.ece_options & 0xffffff;
	msg.private_len = (uint8_t)len;
	memcpy(msg.private_data, data, len);
	return cm_msg_encode(&msg, buf);
}

static void change(const uint8_t *data, size_t size, uint8_t *buf, size_t len)
{
	size_t i;

	for (i = 0; i + 2 < size && i < CHANGES_MAX * 3; i += 3)
		buf[(data[i] << 8 | data[i + 1]) % len] ^= data[i + 2];
}

/* More private data than the type may have, and a header that says so. */
static void check_stretched(const uint8_t *buf, size_t len, uint8_t by)
{
	uint8_t longer[CM_MSG_BYTES_MAX + UINT8_MAX] = { 0 };

	if (buf[PRIVATE_LEN_AT] + by > UINT8_MAX)
		return;
	memcpy(longer, buf, len);
	longer[PRIVATE_LEN_AT] += by;
	check(longer, len + by);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t buf[CM_MSG_BYTES_MAX];
	enum cm_msg_type type;
	size_t len;

	check(data, size);
	for (type = CM_MSG_REQ; type <= CM_MSG_SIDR_REP; type++) {
		len = make(type, data, size, buf);
		assert(check(buf, len));
		if (size)
			check_stretched(buf, len, data[0]);
		change(data, size, buf, len);
		check(buf, len);
		check(buf, size % (len + 1));
	}
	return 0;
}
