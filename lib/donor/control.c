/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Serves clients' calls about regions. A failed request is answered with a reason. */
#include <errno.h>
#include <string.h>

#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"

struct reply {
	union {
		struct wire_control_region region;
		struct wire_control_info info;
		struct {
			struct wire_control_list list;
			struct wire_control_entry entries[WIRE_CONTROL_ENTRIES_MAX];
		};
	};
	size_t length;
	struct weir_error error;
};

static void info_fill(const struct weir_peer *client, struct wire_control_info *info)
{
	const struct weir_donor *donor = client->donor;
	const struct weir_arena *arena = &donor->arena;

	*info = (struct wire_control_info){
		.incarnation = donor->incarnation,
		.memory_bytes = arena->limit > arena->taken ? arena->limit : arena->taken,
		.lent_bytes = arena->taken,
		.quota_bytes = client->account.quota,
		.charged_bytes = client->account.charged,
		.clients = donor->nr_clients,
		.regions = donor->region_table.nr_lent,
	};
}

/* The donor's lock is held. Return: the status of the reply. */
static int serve_request(struct weir_peer *client, const struct wire_control_request *request,
			 const char *name, struct reply *control_reply)
{
	struct weir_region_table *region_table = &client->donor->region_table;
	struct weir_region_account *account = &client->account;

	switch (request->op) {
	case WIRE_REGION_CREATE:
		control_reply->length = sizeof(control_reply->region);
		return weir_region_table_create(region_table, account, name, request->value,
						request->flags, &control_reply->region,
						&control_reply->error);
	case WIRE_REGION_OPEN:
		control_reply->length = sizeof(control_reply->region);
		return weir_region_table_open(region_table, account, name, request->flags,
					      &control_reply->region, &control_reply->error);
	case WIRE_REGION_CLOSE:
		if (!weir_region_table_close(region_table, account, request->value))
			return 0;
		return weir_error_set(&control_reply->error, -ENOENT, "no such region is held");
	case WIRE_REGION_DELETE:
		return weir_region_table_delete(region_table, account, name, &control_reply->error);
	case WIRE_REGION_LIST:
		weir_region_table_list(region_table, client->tenant, request->value,
				       &control_reply->list, control_reply->entries);
		control_reply->length =
			sizeof(control_reply->list) +
			control_reply->list.count * sizeof(control_reply->entries[0]);
		return 0;
	default:
		control_reply->length = sizeof(control_reply->info);
		info_fill(client, &control_reply->info);
		return 0;
	}
}

int weir_donor_control_serve(struct weir_peer *client, uint64_t tag, const void *body,
			     size_t length)
{
	struct wire_control_request request;
	char name[WIRE_CONTROL_NAME_MAX + 1];
	struct reply control_reply;
	int rc;

	control_reply.length = 0;
	rc = wire_control_request_decode(body, length, &request, name);
	if (rc == -EPROTO)
		return rc;
	if (rc) {
		weir_error_set(&control_reply.error, rc,
			       "a name has at most %d bytes, and no '/' or NUL among them",
			       WIRE_CONTROL_NAME_MAX);
	} else {
		pthread_mutex_lock(&client->donor->lock);
		rc = serve_request(client, &request, name, &control_reply);
		pthread_mutex_unlock(&client->donor->lock);
	}
	if (rc)
		weir_donor_messages_reply(client, tag, rc, control_reply.error.text,
					  strlen(control_reply.error.text));
	else
		weir_donor_messages_reply(client, tag, 0, &control_reply, control_reply.length);
	return 0;
}
