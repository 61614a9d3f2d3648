/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The generations of the last mount, in a file of this machine, for the next mount. The donor never
 * has the file. A MAC by the tree's keys tells the state of other sealed files, and damage.
 *
 * A thread writes the file some seconds after a change, and the unmount does so at last. The file
 * says whether the mount has ended so: after a crash the file is some seconds old, and the donor
 * could put blocks back.
 */
#ifndef WEIR_APPS_MOUNT_SEALED_STATE_H
#define WEIR_APPS_MOUNT_SEALED_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/mount/sealed/seen.h"

struct weir_error;
struct weir_sealed_keys;

/* How the mount ended that wrote a file. */
enum seal_state_age {
	SEAL_STATE_NEW, /* there was no file */
	SEAL_STATE_WHOLE, /* the mount has ended in order */
	SEAL_STATE_OLD, /* otherwise: the last writes may be missing */
};

struct seal_state;

/**
 * seal_state_open() - read the file, and keep the file up to date
 * @path: kept; absolute
 * @keys: of the tree; kept until the close
 * @seen: receives the generations; kept until the close
 * @state: receives the state; the caller owes a seal_state_close()
 * @age: receives the age of the file
 * @saved: receives the time of the file, in seconds since 1970, unless new
 * @error: receives the reason
 *
 * Return: 0; -EBADMSG the file is of other sealed files, or damaged; -EACCES others may read it;
 * -ENOMEM; or an errno of open(2), read(2) or write(2).
 */
int seal_state_open(const char *path, const struct weir_sealed_keys *keys,
		    struct seen_blocks *seen, struct seal_state **state, enum seal_state_age *age,
		    int64_t *saved, struct weir_error *error);

/*
 * Writes the file for the last time, when nothing changes any more. NULL is ignored. Return: 0, or
 * why the file could not be written.
 */
int seal_state_close(struct seal_state *state);

#endif
