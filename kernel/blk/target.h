/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A volume's donors. Each donor has a session, and a work that reconnects after a loss. So a donor
 * that does not answer delays neither the other donors nor a request for memory.
 */
#ifndef WEIR_KERNEL_BLK_TARGET_H
#define WEIR_KERNEL_BLK_TARGET_H

#include "kernel/blk/volume.h"

#define WEIR_BLK_TARGET_JOIN_MS 1000 /* between attempts to connect */

/*
 * Initialises a target without a session. A target that is no donor supports only
 * weir_blk_target_close() and weir_blk_target_abandon(). @address: NULL: not known yet.
 */
void weir_blk_target_init(struct weir_blk_target *target, struct weir_blk_volume *volume,
			  const struct sockaddr_storage *address);

/*
 * Connects to the donor, at attach.
 *
 * Context: process; sleeps. Return: 0, or a negative errno with the reason in @error.
 */
int weir_blk_target_open(struct weir_blk_target *target, struct kweir_error *error);

/*
 * Makes the work of a target without a session connect in @ms, unless it will sooner. With
 * @volume->maintenance held.
 */
void weir_blk_target_connect_soon(struct weir_blk_target *target, unsigned int ms);

/*
 * Return: whether the work does not run any more, until weir_blk_target_connect_soon(). Otherwise
 * it ends soon. With @volume->maintenance held.
 */
bool weir_blk_target_stop_connecting(struct weir_blk_target *target);

/* Stops waiting for the donor: see kweir_session_abandon(). With @volume->sessions held. */
void weir_blk_target_abandon(struct weir_blk_target *target);

/*
 * Ends the target's session, if any. No region of the session is in use.
 *
 * Context: process; sleeps; with @volume->maintenance held, unless no work is left.
 */
void weir_blk_target_close(struct weir_blk_target *target);

void weir_blk_target_add_stat(struct kweir_stat *sum, const struct kweir_stat *stat);

/*
 * Takes pending completions of all donors.
 *
 * Context: process; never sleeps. Return: how many completions there were.
 */
int weir_blk_targets_poll(struct weir_blk_volume *volume);

int weir_blk_targets_init(void);
void weir_blk_targets_exit(void);

#endif
