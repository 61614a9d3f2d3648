/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Limits on tenants: no user takes all places, and the last places are root's. */
#ifndef WEIR_APPS_SHARE_TENANT_LIMITS_H
#define WEIR_APPS_SHARE_TENANT_LIMITS_H

#include <errno.h>
#include <stdbool.h>

#define SHARE_TENANTS_MAX 1024
#define SHARE_TENANTS_KEPT 64 /* reserved for root */
#define SHARE_TENANTS_OF_USER_MAX 256 /* except root */

/*
 * Whether a tenant may be admitted to @nr_tenants others, @nr_of_user of the same user. Return:
 * 0; -EPERM; -EAGAIN.
 */
static inline int share_tenant_limits_check(bool is_root, bool is_denied, unsigned int nr_tenants,
					    unsigned int nr_of_user)
{
	if (is_denied && !is_root)
		return -EPERM;
	if (nr_tenants >= SHARE_TENANTS_MAX - (is_root ? 0 : SHARE_TENANTS_KEPT))
		return -EAGAIN;
	if (!is_root && nr_of_user >= SHARE_TENANTS_OF_USER_MAX)
		return -EAGAIN;
	return 0;
}

#endif
