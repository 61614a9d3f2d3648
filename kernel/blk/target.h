/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A volume's donors: a session to each, and a work of its own that connects to it where it was
 * gone, so that one that does not answer keeps waiting neither the others nor who asks for memory.
 */
#ifndef WEIR_KERNEL_BLK_TARGET_H
#define WEIR_KERNEL_BLK_TARGET_H

#include "kernel/blk/volume.h"

/*
 * Without a session. Of one that is no donor nothing else is used but weir_member_close() and
 * weir_member_abandon().
 */
void weir_member_init(struct weir_blk_member *member, struct weir_blk_volume *volume,
		      const struct sockaddr_storage *address);

/*
 * Connects to it, when the volume is attached.
 *
 * Context: process; sleeps. Return: 0, or a negative errno with the reason in @error.
 */
int weir_member_open(struct weir_blk_member *member, struct weir_error *error);

/* It has no session: its work tries to connect to it, in a second. With @volume->tending held. */
void weir_member_join(struct weir_blk_member *member);

/* Nobody waits for it any longer: see weir_session_abandon(). With @volume->sessions held. */
void weir_member_abandon(struct weir_blk_member *member);

/*
 * Ends its session, if it has one, that nothing is used of.
 *
 * Context: process; sleeps; with @volume->tending held, unless no work is left.
 */
void weir_member_close(struct weir_blk_member *member);

void weir_member_add_stat(struct weir_stat *sum, const struct weir_stat *stat);

/*
 * Takes what has completed by now, of all its donors.
 *
 * Context: process; never sleeps. Return: how many completions there were.
 */
int weir_members_poll(struct weir_blk_volume *volume);

int weir_members_init(void);
void weir_members_exit(void);

#endif
