/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The strict mode (WEIR_SOFTNIC=strict=1): misuse of verbs that happens to work in software is
 * reported, and fails as on the strictest NIC.
 *
 * The checks stand between the program and the verbs. They replace the functions that programs
 * call by pointer: posting through the context, appending for ibv_wr_*, and taking completions
 * from a CQ. So the data path has no branch for them. The functions below are called from verbs
 * that are not on the data path. Without strict mode these functions do nothing, unless
 * a comment says otherwise.
 */
#ifndef WEIR_SOFTNIC_STRICT_STRICT_H
#define WEIR_SOFTNIC_STRICT_STRICT_H

#include <stdlib.h>

#include "softnic/qp/post.h"

/* The value of the option: 0: off; 1: report; 2: end the program at the first finding. */
extern int strict_level;

/** strict_begin() - read the options, when a device is opened; idempotent */
void strict_begin(void);

/** strict_wrap_context(), strict_wrap_cq() - put the checks in front of posting and polling */
void strict_wrap_context(struct ibv_context *context);
void strict_wrap_cq(struct cq *cq);

/** strict_post_append() - the function with which ibv_wr_* appends a WR: post_append() if off */
post_fn *strict_post_append(void);

/**
 * strict_forget() - forget the WRs of a queue that is reset or destroyed
 * @queue: a struct send_queue or struct recv_queue
 */
void strict_forget(const void *queue);

/** strict_drop() - forget one receive that will have no completion; @wr_id: as posted */
void strict_drop(uint64_t wr_id);

/** strict_forget_pd() - free what the checks keep for a protection domain */
void strict_forget_pd(uint32_t pd);

/** strict_overrun() - report that a CQ has overrun */
void strict_overrun(const struct cq *cq);

/** strict_region_ends() - report WRs that still use a region; @call: the verb */
void strict_region_ends(const struct ibv_mr *mr, const char *call);

/** strict_ah_ends() - report WRs that still use an address handle */
void strict_ah_ends(const struct ibv_ah *ah);

/** strict_busy() - report that @call is refused with EBUSY; @why: the objects in the way */
void strict_busy(const char *call, const char *why);

/**
 * strict_refuse_modify() - report why ibv_modify_qp() refuses a transition
 * @needed: the attributes that the transition needs
 * @allowed: those that it may have
 * @exists: is there such a transition for the transport?
 */
void strict_refuse_modify(const struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
			  int mask, int needed, int allowed, bool exists);

/**
 * strict_wait_for_ack() - wait for the program to acknowledge events
 * @call: the verb that waits
 * @missing: events that are not acknowledged
 *
 * Without strict mode, waits for the condition without end. With it, waits for two seconds, and
 * then reports.
 *
 * Context: @mutex held.
 * Return: false if the caller should wait no longer.
 */
bool strict_wait_for_ack(pthread_cond_t *cond, pthread_mutex_t *mutex, const char *call,
			 uint32_t missing);

/** strict_is_destroyed() - report a destroyed object that is used again */
bool strict_is_destroyed(const struct ibv_context *context, const char *call);

/**
 * strict_free() - free a destroyed object; in strict mode, keep it for a while, to know it again
 * @context: the member of the object that points to its context
 */
void strict_free(void *object, struct ibv_context **context);

#endif
