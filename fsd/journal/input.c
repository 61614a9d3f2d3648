/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/journal/state.h"

#include <string.h>

#include "fsd/client.h"

bool fsd_message_is(const void *message, size_t length, enum wire_fs_op op)
{
	struct wire_fs_head head;

	if (length < sizeof(head))
		return false;
	memcpy(&head, message, sizeof(head));
	return head.op == op;
}

bool fsd_message_awaits_lock(const void *message, size_t length)
{
	struct wire_fs_lock lock;

	if (length < sizeof(lock) || !fsd_message_is(message, length, FS_SETLK))
		return false;
	memcpy(&lock, message, sizeof(lock));
	return lock.flags & FS_LOCK_WAIT;
}

int fsd_call_reply_status(const struct fsd_call *call)
{
	struct wire_fs_reply reply;

	if (call->state == FSD_CALL_WAITS)
		return 1;
	memcpy(&reply, call->reply, sizeof(reply));
	return reply.status;
}

struct fsd_mount *fsd_service_add_mount(struct fsd_service *s, uint64_t id)
{
	struct fsd_mount *mount = fsd_calls_add_mount(&s->calls, id);

	if (!mount)
		return NULL;
	if (fsd_join(s->fsd, NULL, &mount->client)) {
		fsd_calls_remove_mount(&s->calls, mount);
		return NULL;
	}
	mount->client_id = mount->client->id;
	return mount;
}

void fsd_service_remove_mount(struct fsd_service *s, struct fsd_mount *mount)
{
	fsd_leave(mount->client);
	fsd_calls_remove_mount(&s->calls, mount);
}

void fsd_service_run(struct fsd_service *s, struct fsd_call *call, const void *message,
		     size_t length)
{
	fsd_request(call->mount->client, call, message, length);
	s->has_freed |= fsd_has_freed(s->fsd);
}
