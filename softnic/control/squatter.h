/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Processes of other users that hold the names of this user's slots. A slot's name has the user ID,
 * but the kernel lets any process bind any abstract name.
 */
#ifndef WEIR_SOFTNIC_CONTROL_SQUATTER_H
#define WEIR_SOFTNIC_CONTROL_SQUATTER_H

#include <stdbool.h>
#include <sys/types.h>

#define SQUATTER_UNKNOWN ((uid_t)-1)

/**
 * softnic_squatter_find() - find another user that holds slots of this user
 * @uid: set to that user, or to SQUATTER_UNKNOWN if the holders of the slots do not say
 *
 * A holder says nothing if it does not listen, or if it has accepted no call for long.
 *
 * Context: Any; waits for nothing.
 * Return: true if another user has slots, or if a slot's holder says nothing.
 */
bool softnic_squatter_find(uid_t *uid);

#endif
