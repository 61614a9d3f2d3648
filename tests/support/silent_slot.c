// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <sys/socket.h>
#include <unistd.h>

#include "silent_slot.h"
#include "softnic/shm/shared.h"
#include "verbs_puppet.h"

uint32_t take_slot(int *fd)
{
	uint32_t slot = SOFTNIC_SLOTS;
	struct sockaddr_un addr;
	socklen_t len;

	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	do
		len = shared_address(--slot, &addr);
	while (slot && bind(*fd, (struct sockaddr *)&addr, len));
	assert_int_not_equal(slot, 0);
	assert_int_equal(listen(*fd, 1), 0);
	return slot;
}

int claim_slot(uint32_t *slot)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;
	socklen_t len;

	for (*slot = 1; *slot < SOFTNIC_SLOTS; ++*slot) {
		len = shared_address(*slot, &addr);
		if (!bind(fd, (struct sockaddr *)&addr, len) && !listen(fd, 64))
			return fd;
	}
	close(fd);
	return -1;
}
