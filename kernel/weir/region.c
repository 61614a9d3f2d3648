// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>

#include "kernel/weir/session.h"

static int call_for_region(struct kweir_session *session, struct wire_control_request *request,
			   const char *name, struct kweir_region *region, struct kweir_error *error)
{
	struct wire_control_region answer;
	int rc;

	rc = kweir_control_call(&session->control, request, name, &answer, sizeof(answer), error);
	if (rc)
		return rc;
	*region = (struct kweir_region){
		.session = session,
		.remote = answer.addr,
		.length = answer.length,
		.hold = answer.hold,
		.rkey = answer.rkey,
	};
	return 0;
}

int kweir_region_create(struct kweir_session *session, const char *name, u64 length,
			struct kweir_region *region, struct kweir_error *error)
{
	struct wire_control_request request = {
		.op = WIRE_REGION_CREATE,
		.flags = WIRE_REGION_EXCLUSIVE,
		.value = length,
	};

	if (!name && session->options.movable)
		request.flags |= WIRE_REGION_MOVABLE;

	return call_for_region(session, &request, name, region, error);
}
EXPORT_SYMBOL_GPL(kweir_region_create);

int kweir_region_open(struct kweir_session *session, const char *name, struct kweir_region *region,
		      struct kweir_error *error)
{
	struct wire_control_request request = { .op = WIRE_REGION_OPEN,
						.flags = WIRE_REGION_EXCLUSIVE };

	return call_for_region(session, &request, name, region, error);
}
EXPORT_SYMBOL_GPL(kweir_region_open);

int kweir_region_open_fenced(struct kweir_session *session, const char *name, u64 epoch,
			     struct kweir_region *region, struct kweir_error *error)
{
	struct wire_control_request request = { .op = WIRE_REGION_OPEN,
						.flags = WIRE_REGION_FENCED | WIRE_REGION_EXCLUSIVE,
						.value = epoch };

	return call_for_region(session, &request, name, region, error);
}
EXPORT_SYMBOL_GPL(kweir_region_open_fenced);

int kweir_region_delete(struct kweir_session *session, const char *name, struct kweir_error *error)
{
	struct wire_control_request request = { .op = WIRE_REGION_DELETE };

	return kweir_control_call(&session->control, &request, name, NULL, 0, error);
}
EXPORT_SYMBOL_GPL(kweir_region_delete);

u64 kweir_session_incarnation(const struct kweir_session *session)
{
	return session->incarnation;
}
EXPORT_SYMBOL_GPL(kweir_session_incarnation);

int kweir_region_close(struct kweir_region *region, struct kweir_error *error)
{
	struct wire_control_request request = { .op = WIRE_REGION_CLOSE, .value = region->hold };

	return kweir_control_call(&region->session->control, &request, NULL, NULL, 0, error);
}
EXPORT_SYMBOL_GPL(kweir_region_close);

void kweir_session_set_answer_timeout(struct kweir_session *session, u32 ms)
{
	WRITE_ONCE(session->control.timeout_ms, ms);
}
EXPORT_SYMBOL_GPL(kweir_session_set_answer_timeout);

int kweir_session_room(struct kweir_session *session, u64 *bytes, struct kweir_error *error)
{
	struct wire_control_request request = { .op = WIRE_DONOR_INFO };
	struct wire_control_info info;
	int rc;

	rc = kweir_control_call(&session->control, &request, NULL, &info, sizeof(info), error);
	if (rc)
		return rc;
	if (info.lent_bytes > info.memory_bytes || info.charged_bytes > info.quota_bytes)
		return kweir_fail(error, -EPROTO, "%s answers nonsense", session->peer);
	*bytes = min(info.memory_bytes - info.lent_bytes, info.quota_bytes - info.charged_bytes);
	return 0;
}
EXPORT_SYMBOL_GPL(kweir_session_room);
