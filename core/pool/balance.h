/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Moves places to donors that have few for their memory, such as new ones. A place moves like that
 * of a drained donor: the new member is SYNCING beside the old one, and the coordinator removes the
 * old member when it promotes the new one. So a group never has fewer copies than before.
 *
 * Moves are a function of the map. Each lowers the sum of load * load / memory over all donors: so
 * they come to an end, whatever the order in which they are made.
 *
 * Context of all: any; externally serialised.
 */
#ifndef WEIR_CORE_POOL_BALANCE_H
#define WEIR_CORE_POOL_BALANCE_H

#include "core/pool/coordinator.h"

/**
 * weir_pool_balance_next() - name the next move
 * @map: the map, with the moves applied that have been made since
 * @op: receives the change, for weir_pool_coordinator_did(): a group with one more member
 *
 * A place leaves the donor with the most places for its memory, for the donor with the fewest that
 * may have it. Only a group moves whose members all serve and are there.
 *
 * Return: true if there is a move; false: the pool is as even as failure domains allow, or the
 *	groups that could move are changing.
 */
bool weir_pool_balance_next(const struct weir_pool_map *map, struct weir_pool_op *op);

/* Return: the number of SYNCING members of all groups: moves, drains and rebuilds under way. */
unsigned int weir_pool_balance_moving(const struct weir_pool_map *map);

#endif
