/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/control.h"
#include "wire/status.h"

int wire_control_decode(const void *data, size_t length, struct wire_control_head *head,
			const void **body)
{
	struct wire_control_head h;

	if (length < sizeof(h))
		return -EPROTO;
	memcpy(&h, data, sizeof(h));
	if (h.kind < WIRE_APP_ONEWAY || h.kind > WIRE_CONTROL_RECLAIM)
		return -EPROTO;
	if (h.status > 0 || h.length > WIRE_CONTROL_BODY_MAX || h.length != length - sizeof(h))
		return -EPROTO;
	if (h.kind == WIRE_CONTROL_CREDIT && h.length)
		return -EPROTO;
	h.status = wire_status(h.status);
	*head = h;
	*body = (const char *)data + sizeof(h);
	return 0;
}

static int name_check(const char *name, size_t length)
{
	if (length > WIRE_CONTROL_NAME_MAX || memchr(name, '/', length) ||
	    memchr(name, '\0', length))
		return -EINVAL;
	return 0;
}

int wire_control_request_decode(const void *body, size_t length,
				struct wire_control_request *request,
				char name[static WIRE_CONTROL_NAME_MAX + 1])
{
	const char *at = (const char *)body + sizeof(*request);
	struct wire_control_request r;
	int rc;

	if (length < sizeof(r))
		return -EPROTO;
	memcpy(&r, body, sizeof(r));
	if (r.op < WIRE_REGION_CREATE || r.op > WIRE_DONOR_INFO)
		return -EPROTO;
	if (r.name_length != length - sizeof(r))
		return -EPROTO;
	rc = name_check(at, r.name_length);
	if (rc)
		return rc;
	memcpy(name, at, r.name_length);
	name[r.name_length] = '\0';
	*request = r;
	return 0;
}

int wire_control_request_encode(struct wire_control_request *request, const char *name, void *body)
{
	size_t length = name ? strlen(name) : 0;

	if (name && (!length || name_check(name, length)))
		return -EINVAL;
	request->name_length = length;
	memcpy(body, request, sizeof(*request));
	if (length)
		memcpy((char *)body + sizeof(*request), name, length);
	return sizeof(*request) + length;
}

int wire_control_region_decode(const void *body, size_t length, struct wire_control_region *out)
{
	if (length != sizeof(*out))
		return -EPROTO;
	memcpy(out, body, sizeof(*out));
	return 0;
}

int wire_control_list_decode(const void *body, size_t length, struct wire_control_list *out)
{
	struct wire_control_list list;

	if (length < sizeof(list))
		return -EPROTO;
	memcpy(&list, body, sizeof(list));
	if (list.count > WIRE_CONTROL_ENTRIES_MAX ||
	    length != sizeof(list) + list.count * sizeof(struct wire_control_entry))
		return -EPROTO;
	*out = list;
	return 0;
}

int wire_control_entry_decode(const void *body, size_t length, uint32_t index,
			      struct wire_control_entry *out)
{
	size_t at = sizeof(struct wire_control_list) + index * sizeof(*out);

	if (index >= WIRE_CONTROL_ENTRIES_MAX || at + sizeof(*out) > length)
		return -EPROTO;
	memcpy(out, (const char *)body + at, sizeof(*out));
	if (out->name[WIRE_CONTROL_NAME_MAX])
		return -EPROTO;
	return 0;
}

int wire_control_info_decode(const void *body, size_t length, struct wire_control_info *out)
{
	if (length != sizeof(*out))
		return -EPROTO;
	memcpy(out, body, sizeof(*out));
	return 0;
}

int wire_control_reclaim_decode(const void *body, size_t length, struct wire_control_reclaim *out)
{
	if (length != sizeof(*out))
		return -EPROTO;
	memcpy(out, body, sizeof(*out));
	return 0;
}

void wire_control_text_decode(const void *body, size_t length, char *text, size_t size)
{
	size_t i;

	if (length > size - 1)
		length = size - 1;
	if (length)
		memcpy(text, body, length);
	for (i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	text[length] = '\0';
}
