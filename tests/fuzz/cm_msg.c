// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Any bytes off a connection manager's socket are refused, or are a message that means the same
 * when it is sent on.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "softnic/cm_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
	return 0;
}
