/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared by fuzz_volume*.c: a volume, its loans, and the tasks under way. */
#ifndef WEIR_SIM_HUNT_FUZZ_VOLUME_H
#define WEIR_SIM_HUNT_FUZZ_VOLUME_H

#include "core/volume/borrow.h"
#include "core/volume/extents.h"
#include "sim/hunt/hunt.h"

#define VOLUME_EXTENTS 2
#define VOLUME_PAGES 68 /* of an extent: two chunks of a copy */
#define VOLUME_RUN_MAX 4 /* pages of a read or write */
#define VOLUME_DONORS 4
#define VOLUME_TASKS 8
#define VOLUME_ROOM 4 /* extents of a donor */
#define VOLUME_MAYBE_MAX 8
#define VOLUME_PATIENCE 40u /* steps; how long a request waits */

enum fuzz_volume_task_kind {
	VOLUME_NO_TASK,
	VOLUME_WRITE,
	VOLUME_READ,
	VOLUME_COPY_READ,
	VOLUME_COPY_WRITE,
};

/* An operation at a replica. */
struct fuzz_volume_op {
	bool is_asked, is_done, succeeded;
	uint8_t donor;
	uint32_t turn;
};

struct fuzz_volume_task {
	enum fuzz_volume_task_kind kind;
	struct weir_extents_write write;
	uint32_t extent, page, pages;
	uint32_t values[WEIR_EXTENTS_CHUNK_PAGES], sums[VOLUME_RUN_MAX];
	struct fuzz_volume_op ops[WEIR_EXTENTS_SLOTS_MAX];
	uint8_t tried, failed;
	uint32_t begun;
};

/* Valid contents of a page: @sure, or the value of a later write that has not succeeded. */
struct fuzz_volume_page {
	uint32_t sure, maybe[VOLUME_MAYBE_MAX], nr_maybe;
	bool is_being_written;
	uint32_t changed; /* when a write of the page began or ended */
};

/**
 * struct fuzz_volume_donor - a donor, as it is
 * @is_up: has its memory; @is_mute: answers no request for memory
 * @is_awaited: the volume looks for another process in its place
 * @is_silent: its last request was not answered; no other comes before @quiet_until
 */
struct fuzz_volume_donor {
	bool is_up, is_mute, is_awaited, is_silent;
	uint32_t quiet_until;
};

/**
 * @step: asked, and not yet answered, if @is_asking
 * @retries: of silent donors in this round
 */
struct fuzz_volume {
	struct hunt *hunt;
	struct sim_rng rng;
	struct weir_extents volume;
	struct weir_extent extents[VOLUME_EXTENTS];
	uint32_t sums[VOLUME_EXTENTS][VOLUME_PAGES];
	uint32_t memory[VOLUME_EXTENTS][WEIR_EXTENTS_SLOTS_MAX][VOLUME_PAGES];
	bool is_there[VOLUME_EXTENTS][WEIR_EXTENTS_SLOTS_MAX], was_lost[VOLUME_EXTENTS];
	struct fuzz_volume_page pages[VOLUME_EXTENTS][VOLUME_PAGES];
	struct fuzz_volume_task tasks[VOLUME_TASKS];
	uint32_t chunk[WEIR_EXTENTS_CHUNK_PAGES];
	struct weir_borrow borrow;
	struct weir_borrow_step step;
	struct fuzz_volume_donor donors[VOLUME_DONORS];
	bool is_asking, is_calm;
	uint32_t clock, turns, written, peril, retries;
};

static inline uint32_t hunt_volume_below(struct fuzz_volume *v, uint32_t count)
{
	return (uint32_t)sim_rng_below(&v->rng, count);
}

/* fuzz_volume_tasks.c: starts a task at a random place of a few pages. */
void hunt_volume_task(struct fuzz_volume *v, struct fuzz_volume_task *task,
		      enum fuzz_volume_task_kind kind, uint32_t extent);
bool hunt_volume_may_write(const struct fuzz_volume *v, const struct fuzz_volume_task *task);
/* Whether an operation is under way at a replica. */
bool hunt_volume_is_busy(const struct fuzz_volume *v, uint32_t extent, uint8_t slot);
/* Start @task, which is unused; no effect when there is nothing to do. */
void hunt_volume_write(struct fuzz_volume *v, struct fuzz_volume_task *task);
void hunt_volume_read(struct fuzz_volume *v, struct fuzz_volume_task *task);
void hunt_volume_copy(struct fuzz_volume *v, struct fuzz_volume_task *task);
/* fuzz_volume_loans.c: gives no memory until the first round. */
void hunt_volume_init_loans(struct fuzz_volume *v);
/* The volume asks a donor for memory or gives some back, or the donor answers. */
void hunt_volume_loan(struct fuzz_volume *v);
/* A donor dies, comes back empty, or falls silent. */
void hunt_volume_donor_changes(struct fuzz_volume *v, uint8_t donor);
/* A donor executes or completes an operation. */
void hunt_volume_work(struct fuzz_volume *v);

#endif
