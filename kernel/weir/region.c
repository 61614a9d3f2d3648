// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>

#include "kernel/weir/session.h"

static int ask(struct weir_session *session, struct wire_request *request, const char *name,
	       struct weir_region *region, struct weir_error *error)
{
	struct wire_region answer;
	int rc;

	rc = weir_mail_call(&session->mail, request, name, &answer, sizeof(answer), error);
	if (rc)
		return rc;
	*region = (struct weir_region){
		.session = session,
		.remote = answer.addr,
		.length = answer.length,
		.hold = answer.hold,
		.rkey = answer.rkey,
	};
	return 0;
}

int weir_region_create(struct weir_session *session, const char *name, u64 length,
		       struct weir_region *region, struct weir_error *error)
{
	struct wire_request request = {
		.op = WIRE_REGION_CREATE,
		.flags = WIRE_EXCLUSIVE,
		.value = length,
	};

	if (!name && session->options.movable)
		request.flags |= WIRE_MOVABLE;

	return ask(session, &request, name, region, error);
}
EXPORT_SYMBOL_GPL(weir_region_create);

int weir_region_open(struct weir_session *session, const char *name, struct weir_region *region,
		     struct weir_error *error)
{
	struct wire_request request = { .op = WIRE_REGION_OPEN, .flags = WIRE_EXCLUSIVE };

	return ask(session, &request, name, region, error);
}
EXPORT_SYMBOL_GPL(weir_region_open);

int weir_region_close(struct weir_region *region, struct weir_error *error)
{
	struct wire_request request = { .op = WIRE_REGION_CLOSE, .value = region->hold };

	return weir_mail_call(&region->session->mail, &request, NULL, NULL, 0, error);
}
EXPORT_SYMBOL_GPL(weir_region_close);

void weir_session_patience(struct weir_session *session, u32 ms)
{
	WRITE_ONCE(session->mail.patience_ms, ms);
}
EXPORT_SYMBOL_GPL(weir_session_patience);

int weir_session_room(struct weir_session *session, u64 *bytes, struct weir_error *error)
{
	struct wire_request request = { .op = WIRE_DONOR_INFO };
	struct wire_info info;
	int rc;

	rc = weir_mail_call(&session->mail, &request, NULL, &info, sizeof(info), error);
	if (rc)
		return rc;
	if (info.lent_bytes > info.memory_bytes || info.charged_bytes > info.quota_bytes)
		return weir_fail(error, -EPROTO, "%s answers nonsense", session->peer);
	*bytes = min(info.memory_bytes - info.lent_bytes, info.quota_bytes - info.charged_bytes);
	return 0;
}
EXPORT_SYMBOL_GPL(weir_session_room);
