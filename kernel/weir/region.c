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
