/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Effects of a change of names on attributes. Clients complete changes by these functions, too, and
 * come to the same attributes.
 */
#ifndef WEIR_FSD_INHERIT_H
#define WEIR_FSD_INHERIT_H

#include <stdbool.h>
#include <sys/stat.h>

#include "wire/fs.h"

/* Mode and group of an inode made in a directory. */
static inline void fsd_inherit(uint32_t dir_mode, uint32_t dir_gid, uint32_t *mode, uint32_t *gid)
{
	if (!(dir_mode & S_ISGID))
		return;
	*gid = dir_gid;
	if (S_ISDIR(*mode))
		*mode |= S_ISGID;
}

static inline bool fsd_is_after(const struct wire_fs_time *a, const struct wire_fs_time *b)
{
	return a->sec != b->sec ? a->sec > b->sec : a->nsec > b->nsec;
}

/* A ctime after a change at @now, always later than before. */
static inline void fsd_advance_ctime(struct wire_fs_time *ctime, const struct wire_fs_time *now)
{
	if (fsd_is_after(now, ctime)) {
		*ctime = *now;
	} else if (++ctime->nsec == 1000000000) {
		ctime->sec++;
		ctime->nsec = 0;
	}
}

#endif
