/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A volume's donors: their sessions, and the threads that connect again. */
#ifndef WEIR_LIB_VOLUME_TARGET_H
#define WEIR_LIB_VOLUME_TARGET_H

#include "lib/volume/volume.h"

/* Connects, and starts the thread, at open. Return: 0, or an errno with the reason in @error. */
int weir_volume_target_open(struct weir_volume_target *target, struct weir_error *error);

/* Starts the thread, unless it runs. Return: 0, or an errno. */
int weir_volume_target_start(struct weir_volume_target *target, struct weir_error *error);

/* Makes the thread of a target without a session connect, again and again. */
void weir_volume_target_reconnect(struct weir_volume_target *target);

/*
 * Takes the session that the thread has connected. Context: the maintaining thread. Return: true if
 * there is one.
 */
bool weir_volume_target_adopt(struct weir_volume_target *target);

/* Ends the session, of which no region is in use. Context: the maintaining thread. */
void weir_volume_target_drop(struct weir_volume_target *target);

/* Ends the thread and the session; @volume->closing is set. */
void weir_volume_target_close(struct weir_volume_target *target);

/* Of the donors that are connected: how many know only options.old_key. Context: any thread. */
unsigned int weir_volume_count_old_keys(struct weir_volume *v);

/* The donor's state, as the core names it. Context: the maintaining thread. */
enum weir_extents_donor_state weir_volume_target_state(struct weir_volume_target *target);

#endif
