/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Serves clients' calls about regions. A failed request is answered with a reason. A call whose
 * region is not ready waits in the region's list; the donor's thread answers it when the worker has
 * populated the memory. Its client may have left or come back meanwhile: then nobody wants the
 * answer, and the region that the call would have created is freed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/size.h"
#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/keyring/keyring.h"
#include "lib/donor/lent.h"
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
		.clients = (uint32_t)weir_counter_read(&donor->nr_clients),
		.regions = donor->region_table.nr_lent,
	};
}

static int wait_for_region(struct weir_peer *client, struct weir_call *call,
			   struct weir_lent_region *lent, uint32_t flags)
{
	struct weir_region_wait *wait = malloc(sizeof(*wait));

	if (!wait)
		return -ENOMEM;
	*wait = (struct weir_region_wait){
		.call = call,
		.account = &client->account,
		.flags = flags,
	};
	weir_list_add_tail(&lent->waits, &wait->link);
	return -EINPROGRESS;
}

/* @rc: of the call that may have freed @lent. The wait is a courtesy: without memory, none. */
static int wait_for_zeroes(struct weir_peer *client, struct weir_call *call,
			   struct weir_lent_region *lent, int rc)
{
	if (rc == -EINPROGRESS)
		rc = wait_for_region(client, call, lent, 0);
	return rc == -ENOMEM ? 0 : rc;
}

static int create_region(struct weir_peer *client, struct weir_call *call,
			 const struct wire_control_request *request, const char *name,
			 struct reply *reply)
{
	struct weir_region_table *region_table = &client->donor->region_table;
	struct weir_lent_region *lent = NULL;
	int rc = weir_region_table_create(region_table, &client->account, name, request->value,
					  request->flags, &lent, &reply->error);

	if (rc == -EINPROGRESS)
		rc = wait_for_region(client, call, lent, request->flags);
	if (rc == -ENOMEM && lent)
		lent->status = weir_error_set(&reply->error, rc, "the donor is out of memory");
	return rc;
}

static int open_region(struct weir_peer *client, struct weir_call *call,
		       const struct wire_control_request *request, const char *name,
		       struct reply *reply)
{
	struct weir_region_table *region_table = &client->donor->region_table;
	struct weir_lent_region *lent = NULL;
	int rc = 0;

	if (request->flags & WIRE_REGION_FENCED)
		rc = weir_region_table_fence(region_table, client->tenant, name, request->value,
					     &reply->error);
	if (!rc)
		rc = weir_region_table_open(region_table, &client->account, name, request->flags,
					    &lent, &reply->region, &reply->error);
	reply->length = sizeof(reply->region);
	if (rc == -EINPROGRESS)
		rc = wait_for_region(client, call, lent, request->flags);
	if (rc == -ENOMEM && lent)
		weir_error_set(&reply->error, rc, "the donor is out of memory");
	return rc;
}

/* The donor's lock is held. Return: the status of the reply; -EINPROGRESS: @call waits. */
static int serve_request(struct weir_peer *client, struct weir_call *call,
			 const struct wire_control_request *request, const char *name,
			 struct reply *control_reply)
{
	struct weir_region_table *region_table = &client->donor->region_table;
	struct weir_region_account *account = &client->account;
	bool is_own = weir_region_table_is_own(region_table, account, name);
	struct weir_lent_region *lent = NULL;
	int rc = weir_keyring_check_request(client->donor, client->secret, request, name,
					    is_own, &control_reply->error);

	if (rc)
		return rc;
	switch (request->op) {
	case WIRE_REGION_CREATE:
		return create_region(client, call, request, name, control_reply);
	case WIRE_REGION_OPEN:
		return open_region(client, call, request, name, control_reply);
	case WIRE_REGION_CLOSE:
		rc = weir_region_table_close(region_table, account, request->value, &lent);
		if (rc == -ENOENT)
			weir_error_set(&control_reply->error, rc, "no such region is held");
		return wait_for_zeroes(client, call, lent, rc);
	case WIRE_REGION_DELETE:
		rc = weir_region_table_delete(region_table, account, name, &lent,
					      &control_reply->error);
		return wait_for_zeroes(client, call, lent, rc);
	case WIRE_REGION_LIST:
		weir_region_table_list(region_table, client->tenant, request->value,
				       &control_reply->list, control_reply->entries);
		control_reply->length =
			sizeof(control_reply->list) +
			control_reply->list.count * sizeof(control_reply->entries[0]);
		return 0;
	case WIRE_DONOR_INFO:
		control_reply->length = sizeof(control_reply->info);
		info_fill(client, &control_reply->info);
		return 0;
	default:
		weir_error_set(&control_reply->error, -EOPNOTSUPP, "request %u is unknown",
			       request->op);
		return -EOPNOTSUPP;
	}
}

static void send_reply(struct weir_call *call, int rc, const struct reply *reply)
{
	if (rc)
		weir_donor_messages_reply(call, rc, reply->error.text, strlen(reply->error.text));
	else
		weir_donor_messages_reply(call, 0, reply, reply->length);
}

int weir_donor_control_serve(struct weir_call *call, struct weir_peer *client, const void *body,
			     size_t length)
{
	struct wire_control_request request;
	char name[WIRE_CONTROL_NAME_MAX + 1];
	struct reply control_reply;
	int rc;

	control_reply.length = 0;
	rc = wire_control_request_decode(body, length, &request, name);
	if (rc == -EPROTO) {
		weir_donor_messages_drop(call);
		return rc;
	}
	if (rc) {
		weir_error_set(&control_reply.error, rc,
			       "a name has at most %d bytes, and no '/' or NUL among them",
			       WIRE_CONTROL_NAME_MAX);
	} else {
		pthread_mutex_lock(&client->donor->lock);
		rc = serve_request(client, call, &request, name, &control_reply);
		pthread_mutex_unlock(&client->donor->lock);
	}
	if (rc != -EINPROGRESS)
		send_reply(call, rc, &control_reply);
	return 0;
}

/* The donor's lock is held. Return: the status of the reply. */
static int end_wait(struct weir_region_table *region_table, struct weir_lent_region *lent,
		    const struct weir_region_wait *wait, struct reply *reply)
{
	reply->length = 0;
	if (lent->state == WEIR_LENT_FREED)
		return 0;
	reply->length = sizeof(reply->region);
	if (!lent->status && !weir_donor_messages_is_wanted(wait->call))
		return weir_error_set(&reply->error, -ECANCELED,
				      "the client has given the call up");
	if (!lent->status)
		return weir_region_table_hold(region_table, wait->account, lent, wait->flags,
					      &reply->region, &reply->error);
	return weir_error_set(&reply->error, lent->status == -ECANCELED ? -ENOENT : lent->status,
			      "the donor cannot supply %s: %s of %s are lent",
			      weir_size_format(lent->length).text,
			      weir_size_format(region_table->arena->taken).text,
			      weir_size_format(region_table->arena->limit).text);
}

/* The creator's wait is the first: if it fails, so do all others. */
static void end_waits(struct weir_region_table *region_table, struct weir_lent_region *lent)
{
	struct weir_region_wait *wait;
	bool is_creator = true;
	struct reply reply;
	int rc;

	while (!weir_list_is_empty(&lent->waits)) {
		wait = weir_list_entry(lent->waits.next, struct weir_region_wait, link);
		weir_list_del(&wait->link);
		rc = end_wait(region_table, lent, wait, &reply);
		if (is_creator && rc)
			lent->status = rc;
		is_creator = false;
		send_reply(wait->call, rc, &reply);
		free(wait);
	}
}

void weir_donor_control_progress(struct weir_donor *donor)
{
	struct weir_lent_region *lent;

	pthread_mutex_lock(&donor->lock);
	while ((lent = weir_lent_next(&donor->region_table))) {
		end_waits(&donor->region_table, lent);
		weir_lent_settle(&donor->region_table, lent);
	}
	pthread_mutex_unlock(&donor->lock);
}

static void stop_waits(struct weir_region_table *region_table, struct weir_list *lents)
{
	struct weir_list *link;

	for (link = lents->next; link != lents; link = link->next) {
		struct weir_lent_region *lent =
			weir_list_entry(link, struct weir_lent_region, link);

		lent->status = -ECANCELED;
		end_waits(region_table, lent);
	}
}

void weir_donor_control_stop(struct weir_donor *donor)
{
	stop_waits(&donor->region_table, &donor->region_table.lent);
	stop_waits(&donor->region_table, &donor->region_table.freed);
}
