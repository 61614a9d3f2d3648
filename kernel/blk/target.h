/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A volume's donors: a session to each, and a work of its own that connects to it where it was
 * gone, so that one that does not answer keeps waiting neither the others nor who asks for memory.
 */
#ifndef WEIR_KERNEL_BLK_TARGET_H
#define WEIR_KERNEL_BLK_TARGET_H

#include "kernel/blk/volume.h"

/*
 * Without a session. Of one that is no donor nothing else is used but weir_blk_target_close() and
 * weir_blk_target_abandon().
 */
void weir_blk_target_init(struct weir_blk_target *target, struct weir_blk_volume *volume,
			  const struct sockaddr_storage *address);

/*
 * Connects to it, when the volume is attached.
 *
 * Context: process; sleeps. Return: 0, or a negative errno with the reason in @error.
 */
int weir_blk_target_open(struct weir_blk_target *target, struct kweir_error *error);

/* It has no session: its work tries to connect to it, in a second. With @volume->maintenance held. */
void weir_blk_target_schedule_connect(struct weir_blk_target *target);

/* Nobody waits for it any longer: see kweir_session_abandon(). With @volume->sessions held. */
void weir_blk_target_abandon(struct weir_blk_target *target);

/*
 * Ends its session, if it has one, that nothing is used of.
 *
 * Context: process; sleeps; with @volume->maintenance held, unless no work is left.
 */
void weir_blk_target_close(struct weir_blk_target *target);

void weir_blk_target_add_stat(struct kweir_stat *sum, const struct kweir_stat *stat);

/*
 * Takes what has completed by now, of all its donors.
 *
 * Context: process; never sleeps. Return: how many completions there were.
 */
int weir_blk_targets_poll(struct weir_blk_volume *volume);

int weir_blk_targets_init(void);
void weir_blk_targets_exit(void);

#endif
