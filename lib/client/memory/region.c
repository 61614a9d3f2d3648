/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/link/call_table.h"
#include "lib/client/message/call.h"
#include "lib/base/error.h"
#include "lib/client/memory/region.h"
#include "lib/client/session.h"

static_assert(WEIR_REGION_NAME_MAX == WIRE_CONTROL_NAME_MAX,
	      "the API promises what the wire carries");
static_assert((int)WEIR_HOT == (int)WEIR_PATH_HINT_HOT &&
		      (int)WEIR_COLD == (int)WEIR_PATH_HINT_COLD,
	      "hints reach the core as they are");
static_assert((unsigned int)WEIR_REQUEST_BULK / WEIR_CLASS_BULK == WEIR_REGION_HINTS + 1,
	      "classes stand above the hints");
static_assert((int)WEIR_CLASS_URGENT == (int)WEIR_WINDOW_URGENT + 1 &&
		      (int)WEIR_CLASS_NORMAL == (int)WEIR_WINDOW_NORMAL + 1 &&
		      (int)WEIR_CLASS_BULK == (int)WEIR_WINDOW_BULK + 1,
	      "classes reach the core as they are");
static_assert(WEIR_REGION_EXCLUSIVE == WIRE_REGION_EXCLUSIVE &&
		      WEIR_REGION_READ_ONLY == WIRE_REGION_READ_ONLY,
	      "flags travel as they are");

/* Room for a region, or for the sentence of a refusal. */
#define REPLY_MAX 512

/* The donor's grant must lie within the address space. */
static bool is_valid_range(uint64_t addr, uint64_t length)
{
	return length && addr + (length - 1) >= addr;
}

static int region_make(struct weir_session *session, uint64_t hold, uint64_t addr, uint64_t length,
		       uint32_t rkey, uint32_t flags, struct weir_region **region)
{
	struct weir_region *r = malloc(sizeof(*r));

	if (!r)
		return -ENOMEM;
	*r = (struct weir_region){
		.session = session,
		.addr = addr,
		.length = length,
		.hold = hold,
		.rkey = rkey,
		.read_only = flags & WEIR_REGION_READ_ONLY,
		.exclusive = flags & WEIR_REGION_EXCLUSIVE,
	};
	weir_session_track(session, &session->regions, &r->link);
	*region = r;
	return 0;
}

static int return_hold(struct weir_session *session, uint64_t hold)
{
	struct wire_control_request request = { .op = WIRE_REGION_CLOSE, .value = hold };
	char reply[REPLY_MAX];
	size_t length;

	return weir_call_control(session, &request, NULL, reply, sizeof(reply), &length, NULL);
}

/* Creates a region, or opens one by name. */
static int hold(struct weir_session *session, struct wire_control_request *request,
		const char *name, struct weir_region **region, struct weir_error *error)
{
	struct wire_control_region granted;
	char reply[REPLY_MAX];
	size_t length;
	int rc;

	rc = weir_call_control(session, request, name, reply, sizeof(reply), &length, error);
	if (rc)
		return rc;
	if (wire_control_region_decode(reply, length, &granted) || !granted.hold ||
	    !is_valid_range(granted.addr, granted.length))
		return weir_error_set(error, -EPROTO, "%s described an impossible region",
				      session->peer);
	rc = region_make(session, granted.hold, granted.addr, granted.length, granted.rkey,
			 granted.flags, region);
	if (rc) {
		return_hold(session, granted.hold);
		return weir_error_set(error, rc, "out of memory");
	}
	return 0;
}

int weir_region_create(struct weir_session *session, const char *name, uint64_t length,
		       unsigned int flags, struct weir_region **region, struct weir_error *error)
{
	struct wire_control_request request = { .op = WIRE_REGION_CREATE,
						.flags = flags,
						.value = length };

	if (!length || flags & ~WEIR_REGION_EXCLUSIVE)
		return weir_error_set(error, -EINVAL,
				      "cannot create a region of %llu bytes with flags %#x",
				      (unsigned long long)length, flags);
	return hold(session, &request, name, region, error);
}

int weir_region_open(struct weir_session *session, const char *name, unsigned int flags,
		     struct weir_region **region, struct weir_error *error)
{
	struct wire_control_request request = { .op = WIRE_REGION_OPEN, .flags = flags };

	if (!name || flags & ~(WEIR_REGION_EXCLUSIVE | WEIR_REGION_READ_ONLY))
		return weir_error_set(error, -EINVAL, "cannot open region '%s' with flags %#x",
				      name ? name : "", flags);
	return hold(session, &request, name, region, error);
}

/* Only this client writes: a lost write may be posted again, as to an exclusive region. */
int weir_region_open_fenced(struct weir_session *session, const char *name, uint64_t epoch,
			    struct weir_region **region, struct weir_error *error)
{
	struct wire_control_request request = { .op = WIRE_REGION_OPEN,
						.flags = WIRE_REGION_FENCED |
							 WIRE_REGION_EXCLUSIVE,
						.value = epoch };

	return hold(session, &request, name, region, error);
}

static void region_free(struct weir_region *region)
{
	weir_session_untrack(region->session, &region->link);
	free(region);
}

void weir_regions_fini(struct weir_session *session)
{
	while (!weir_list_is_empty(&session->regions))
		region_free(weir_list_entry(session->regions.next, struct weir_region, link));
}

void weir_region_forget(struct weir_region *region)
{
	region_free(region);
}

int weir_region_try_close(struct weir_region *region)
{
	int rc = region->hold ? return_hold(region->session, region->hold) : 0;

	if (!weir_call_is_unanswered(rc))
		region_free(region);
	return rc;
}

/* If the donor cannot be reached, it frees the hold when the session ends. */
void weir_region_close(struct weir_region *region)
{
	if (!region)
		return;
	if (region->hold)
		return_hold(region->session, region->hold);
	region_free(region);
}

int weir_region_delete(struct weir_session *session, const char *name, struct weir_error *error)
{
	struct wire_control_request request = { .op = WIRE_REGION_DELETE };
	char reply[REPLY_MAX];
	size_t length;

	if (!name)
		return weir_error_set(error, -EINVAL, "cannot delete a region without a name");
	return weir_call_control(session, &request, name, reply, sizeof(reply), &length, error);
}

int weir_region_attach(struct weir_session *session, const struct weir_region_token *token,
		       struct weir_region **region)
{
	if (!is_valid_range(token->addr, token->length))
		return -EINVAL;
	return region_make(session, 0, token->addr, token->length, token->rkey, token->flags,
			   region);
}

void weir_region_hint(struct weir_region *region, enum weir_hint hint)
{
	__atomic_store_n(&region->hint, hint & WEIR_REGION_HINTS, __ATOMIC_RELAXED);
}

int weir_region_class(struct weir_region *region, enum weir_class class_nr)
{
	struct weir_session *session = region->session;

	if (class_nr > WEIR_CLASS_BULK)
		return -EINVAL;
	if (class_nr) {
		weir_session_lock(session);
		weir_session_join_classes(session);
		weir_session_unlock(session);
	}
	__atomic_store_n(&region->class_nr, (uint8_t)class_nr, __ATOMIC_RELAXED);
	return 0;
}

uint64_t weir_region_length(const struct weir_region *region)
{
	return region->length;
}

static int report_entries(const void *reply, size_t length, struct wire_control_list *list,
			  void (*fn)(void *arg, const struct weir_region_entry *entry), void *arg)
{
	uint32_t i;

	if (wire_control_list_decode(reply, length, list))
		return -EPROTO;
	for (i = 0; i < list->count; i++) {
		struct weir_region_entry entry = { .size = sizeof(entry) };
		struct wire_control_entry in;

		if (wire_control_entry_decode(reply, length, i, &in))
			return -EPROTO;
		memcpy(entry.name, in.name, sizeof(entry.name));
		entry.length = in.length;
		entry.holders = in.holders;
		entry.flags = in.flags;
		fn(arg, &entry);
	}
	return 0;
}

int weir_region_list(struct weir_session *session,
		     void (*fn)(void *arg, const struct weir_region_entry *entry), void *arg)
{
	struct wire_control_request request = { .op = WIRE_REGION_LIST };
	struct wire_control_list list = { 0 };
	char *reply;
	size_t length;
	int rc;

	reply = malloc(WIRE_CONTROL_BODY_MAX);
	if (!reply)
		return -ENOMEM;
	do {
		rc = weir_call_control(session, &request, NULL, reply, WIRE_CONTROL_BODY_MAX,
				       &length, NULL);
		if (!rc)
			rc = report_entries(reply, length, &list, fn, arg);
		request.value = list.next;
	} while (!rc && list.next);
	free(reply);
	return rc;
}
