/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks with modelled cost: an uncontended take is cheap; a handover costs more for each thread
 * that spins on the lock's cache line. Waiters get the lock in order of arrival.
 */
#ifndef WEIR_SIM_CPU_LOCK_H
#define WEIR_SIM_CPU_LOCK_H

#include "sim/cpu/thread.h"

/**
 * struct sim_lock - one lock
 * @owner: the holder, or NULL
 * @waiters: threads that wait, by wait_link
 * @sleeps: waiters sleep, as on a futex; otherwise waiters spin
 * @nr_waiters: length of @waiters
 * @takes: successful takes so far
 * @contended: takes that had to wait
 */
struct sim_lock {
	struct sim_thread *owner;
	struct weir_list waiters;
	bool sleeps;
	uint32_t nr_waiters;
	uint64_t takes;
	uint64_t contended;
};

/* Initialises a free lock, *kept*. */
void sim_lock_init(struct sim_lock *lock, bool sleeps);

/* Takes the lock, after all earlier waiters. */
void sim_lock_take(struct sim_lock *lock, struct sim_thread *self);

/* Takes the lock if free. Return: whether @self now holds the lock. */
bool sim_lock_try(struct sim_lock *lock, struct sim_thread *self);

/* Gives the lock to the oldest waiter. @self must hold the lock. */
void sim_lock_give(struct sim_lock *lock, struct sim_thread *self);

#endif
