/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks that cost what locks cost: little when nobody else wants them, and more to hand over the
 * more threads wait for the line that the lock lies in. First come, first served.
 */
#ifndef WEIR_SIM_CPU_LOCK_H
#define WEIR_SIM_CPU_LOCK_H

#include "sim/cpu/thread.h"

/**
 * struct sim_lock - one lock
 * @owner: who has it, or NULL
 * @waiters: who wants it, by wait_link
 * @sleeps: who waits sleeps, as on a futex; otherwise it spins
 * @nr_waiters: how many
 * @takes: how often it was taken
 * @contended: how often by one that had to wait
 */
struct sim_lock {
	struct sim_thread *owner;
	struct weir_list waiters;
	bool sleeps;
	uint32_t nr_waiters;
	uint64_t takes;
	uint64_t contended;
};

/* A free lock, *kept* where it is. */
void sim_lock_init(struct sim_lock *lock, bool sleeps);

/* Takes it, after all who wanted it before. */
void sim_lock_take(struct sim_lock *lock, struct sim_thread *self);

/* Takes it if it is free. Return: whether it has it. */
bool sim_lock_try(struct sim_lock *lock, struct sim_thread *self);

/* Gives back what it has, to who waits the longest. */
void sim_lock_give(struct sim_lock *lock, struct sim_thread *self);

#endif
