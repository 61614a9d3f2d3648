/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Answers clients' calls about regions. A request that cannot be met is answered with why not. */
#include <errno.h>
#include <string.h>

#include "lib/donor/donor.h"
#include "lib/base/error.h"
#include "lib/donor/messages.h"
#include "lib/donor/client.h"

/* A reply under way. */
struct reply {
	union {
		struct wire_region region;
		struct wire_info info;
		struct {
			struct wire_list list;
			struct wire_entry entries[WIRE_ENTRIES_MAX];
		};
	};
	size_t length;
	struct weir_error error;
};

static void info_fill(const struct weir_peer *peer, struct wire_info *info)
{
	const struct weir_donor *donor = peer->donor;
	const struct weir_arena *arena = &donor->arena;

	*info = (struct wire_info){
		.incarnation = donor->incarnation,
		.memory_bytes = arena->limit > arena->taken ? arena->limit : arena->taken,
		.lent_bytes = arena->taken,
		.quota_bytes = peer->account.quota,
		.charged_bytes = peer->account.charged,
		.clients = donor->nr_peers,
		.regions = donor->lender.nr_lent,
	};
}

/* The donor's lock is held. Return: the status of the reply. */
static int request_do(struct weir_peer *peer, const struct wire_request *request, const char *name,
		      struct reply *reply)
{
	struct weir_lender *lender = &peer->donor->lender;
	struct weir_account *account = &peer->account;

	switch (request->op) {
	case WIRE_REGION_CREATE:
		reply->length = sizeof(reply->region);
		return weir_lender_create(lender, account, name, request->value, request->flags,
					  &reply->region, &reply->error);
	case WIRE_REGION_OPEN:
		reply->length = sizeof(reply->region);
		return weir_lender_open(lender, account, name, request->flags, &reply->region,
					&reply->error);
	case WIRE_REGION_CLOSE:
		if (!weir_lender_close(lender, account, request->value))
			return 0;
		return weir_fail(&reply->error, -ENOENT, "no such region is held");
	case WIRE_REGION_DELETE:
		return weir_lender_delete(lender, account, name, &reply->error);
	case WIRE_REGION_LIST:
		weir_lender_list(lender, peer->tenant, request->value, &reply->list,
				 reply->entries);
		reply->length = sizeof(reply->list) + reply->list.count * sizeof(reply->entries[0]);
		return 0;
	default:
		reply->length = sizeof(reply->info);
		info_fill(peer, &reply->info);
		return 0;
	}
}

int weir_clerk_serve(struct weir_peer *peer, uint64_t tag, const void *body, size_t length)
{
	struct wire_request request;
	char name[WIRE_NAME_MAX + 1];
	struct reply reply;
	int ret;

	reply.length = 0;
	ret = wire_request_decode(body, length, &request, name);
	if (ret == -EPROTO)
		return ret;
	if (ret) {
		weir_fail(&reply.error, ret,
			  "a name has at most %d bytes, and no '/' or NUL among them",
			  WIRE_NAME_MAX);
	} else {
		pthread_mutex_lock(&peer->donor->lock);
		ret = request_do(peer, &request, name, &reply);
		pthread_mutex_unlock(&peer->donor->lock);
	}
	if (ret)
		weir_mail_answer(peer, tag, ret, reply.error.text, strlen(reply.error.text));
	else
		weir_mail_answer(peer, tag, 0, &reply, reply.length);
	return 0;
}
