/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks requests about regions against the rights of a key. */
#include <errno.h>

#include "lib/base/error.h"
#include "lib/donor/keyring/keyring.h"
#include "wire/control.h"

/* The rights that a request takes. */
static unsigned int rights_for(const struct wire_control_request *request, bool is_own)
{
	switch (request->op) {
	case WIRE_REGION_CREATE:
		return WEIR_RIGHT_WRITE | (request->name_length ? WEIR_RIGHT_REGIONS : 0);
	case WIRE_REGION_OPEN:
		return WEIR_RIGHT_REGIONS |
		       (request->flags == WIRE_REGION_READ_ONLY ? 0 : WEIR_RIGHT_WRITE);
	case WIRE_REGION_DELETE:
		return WEIR_RIGHT_REGIONS | WEIR_RIGHT_WRITE | (is_own ? 0 : WEIR_RIGHT_ADMIN);
	case WIRE_REGION_LIST:
		return WEIR_RIGHT_REGIONS;
	case WIRE_REGION_CLOSE: /* a client may give back all that it holds */
	case WIRE_DONOR_INFO:
		return 0;
	default:
		return WEIR_RIGHT_ADMIN;
	}
}

static const char *name_of(unsigned int right)
{
	switch (right) {
	case WEIR_RIGHT_READ:
		return "read";
	case WEIR_RIGHT_WRITE:
		return "write";
	case WEIR_RIGHT_FILES:
		return "files";
	case WEIR_RIGHT_REGIONS:
		return "regions";
	default:
		return "admin";
	}
}

int weir_keyring_check_request(unsigned int rights, const struct wire_control_request *request,
			       bool is_own, struct weir_error *error)
{
	unsigned int missing = rights_for(request, is_own) & ~rights;

	if (!missing)
		return 0;
	return weir_error_set(error, -EACCES, "this key lacks the right '%s'",
			      name_of(missing & -missing));
}
