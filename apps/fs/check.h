/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Has a donor check the state of its file server, by way of a mount. */
#ifndef WEIR_APPS_FS_CHECK_H
#define WEIR_APPS_FS_CHECK_H

#include <stdint.h>

/**
 * struct check - results so far
 * @failures: faults of a donor's state, after a message each
 * @inodes, @names: that donors have checked
 * @unchecked: mounts whose donors have not checked anything, after a message each
 */
struct check {
	uint64_t failures, inodes, names, unchecked;
};

/* Checks the state behind a mount. */
void check_donor(struct check *check, const char *cmd, const char *mountpoint);

#endif
