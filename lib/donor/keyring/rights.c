/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks requests about regions against the rights of a key. */
#include <errno.h>

#include "lib/base/error.h"
#include "lib/donor/donor.h"
#include "lib/donor/keyring/keyring.h"
#include "lib/volume/region_name.h"
#include "wire/control.h"

/* Whether a request names a region of a pool's volume. */
static bool is_for_volume(const struct wire_control_request *request, const char *name)
{
	struct weir_volume_region_name parts;

	return request->name_length && weir_volume_region_name_parse(name, &parts);
}

/*
 * Two tenants would each have memory of the same volume under the same name, and each would find
 * the other's bytes missing. So the volumes are those of one tenant: the pool's.
 */
static bool is_of_other_tenant(const struct weir_donor *donor,
			       const struct weir_donor_secret *secret)
{
	bool has_pool = false;

	for (struct weir_list *link = donor->secrets.next; link != &donor->secrets;
	     link = link->next) {
		const struct weir_donor_secret *other =
			weir_list_entry(link, struct weir_donor_secret, link);

		if (!(other->rights & WEIR_RIGHT_POOL))
			continue;
		if (other->tenant == secret->tenant)
			return false;
		has_pool = true;
	}
	return has_pool;
}

/* The right to delete a named region. */
static unsigned int right_to_delete(unsigned int rights, bool is_own, bool is_for_volume)
{
	if (is_own || (is_for_volume && rights & WEIR_RIGHT_POOL))
		return 0;
	return WEIR_RIGHT_ADMIN;
}

/* The rights that a request takes. @rights: of the key. */
static unsigned int rights_for(const struct wire_control_request *request, unsigned int rights,
			       bool is_own, bool is_for_volume)
{
	switch (request->op) {
	case WIRE_REGION_CREATE:
		return WEIR_RIGHT_WRITE | (request->name_length ? WEIR_RIGHT_REGIONS : 0);
	case WIRE_REGION_OPEN:
		return WEIR_RIGHT_REGIONS |
		       (request->flags == WIRE_REGION_READ_ONLY ? 0 : WEIR_RIGHT_WRITE);
	case WIRE_REGION_DELETE:
		return WEIR_RIGHT_REGIONS | WEIR_RIGHT_WRITE |
		       right_to_delete(rights, is_own, is_for_volume);
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

int weir_keyring_check_request(const struct weir_donor *donor,
			       const struct weir_donor_secret *secret,
			       const struct wire_control_request *request, const char *name,
			       bool is_own, struct weir_error *error)
{
	bool for_volume = is_for_volume(request, name);
	unsigned int missing =
		rights_for(request, secret->rights, is_own, for_volume) & ~secret->rights;

	if (missing)
		return weir_error_set(error, -EACCES, "this key lacks the right '%s'",
				      name_of(missing & -missing));
	if (for_volume && is_of_other_tenant(donor, secret))
		return weir_error_set(error, -EACCES,
				      "the pool's volumes are of another tenant than this key: add "
				      "it with --tenant of the pool's key");
	return 0;
}
