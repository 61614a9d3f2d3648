/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/conn/event_channel.h"

int weir_event_channel_open(struct rdma_event_channel **cm, struct weir_error *error)
{
	struct rdma_event_channel *made = rdma_create_event_channel();
	int err = errno;

	if (!made && (err == EMFILE || err == ENFILE || err == ENOMEM))
		return weir_error_set(error, -ENOMEM, "no descriptors: %s", weir_strerror(-err));
	if (!made)
		return weir_error_set(error, -ENODEV,
				      "no RDMA device and no connection manager here (%s): 'weir "
				      "doctor' says what to do",
				      strerror(err));
	fcntl(made->fd, F_SETFL, fcntl(made->fd, F_GETFL) | O_NONBLOCK);
	*cm = made;
	return 0;
}

int weir_event_channel_get(struct rdma_event_channel *cm, struct weir_cm_event *event)
{
	struct rdma_cm_event *next;

	if (rdma_get_cm_event(cm, &next))
		return errno == EAGAIN ? 0 : -errno;
	event->id = next->id;
	event->context = next->id->context;
	event->type = next->event;
	event->status = next->status;
	event->param = next->param.conn;
	if (event->param.private_data)
		event->param.private_data = memcpy(event->data, event->param.private_data,
						   event->param.private_data_len);
	rdma_ack_cm_event(next);
	return 1;
}
