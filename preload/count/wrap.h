/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How counting gets between a program and its device. The verbs are calls through pointers that
 * lie in the device's own objects: they are replaced there, and the original kept here.
 */
#ifndef WEIR_PRELOAD_COUNT_WRAP_H
#define WEIR_PRELOAD_COUNT_WRAP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

#include "count.h"

extern struct verbs_counters verbs_counters;

#define count(field, n) __atomic_fetch_add(&verbs_counters.field, (uint64_t)(n), __ATOMIC_RELAXED)

enum wr_kind { WRITE, READ, SEND, ATOMIC, LOCAL, KINDS };

/* The work requests of one post. */
struct posted_wrs {
	uint64_t wrs[KINDS], bytes[KINDS];
};

enum wr_kind wr_kind_of(enum ibv_wr_opcode opcode);
void count_posted(const struct posted_wrs *posted);
/* One completion; @opcode and @bytes matter if it is a receive that succeeded. */
void count_completion(enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t bytes);

/* Replaces the pointers in these; a second time changes nothing. */
void wrap_context(struct ibv_context *context);
void wrap_qp(struct ibv_qp_ex *qp);
void wrap_cq(struct ibv_cq_ex *cq);

/* An address may come again, for an object of another kind. */
enum wrapped_kind { WRAPPED_CONTEXT, WRAPPED_CQ, WRAPPED_QP };

/**
 * wrapped_get() - what is kept of an object
 * @kind: what it is
 * @object: the object
 * @size: of what is kept; the same for all objects of a kind
 *
 * It is found again without a lock, and never freed: an object that comes to the place of one
 * of its kind that went takes it over.
 *
 * Return: memory of @size, zero if it is new; NULL if there is none left.
 */
void *wrapped_get(enum wrapped_kind kind, const void *object, size_t size);
/* The same for an object that was wrapped; never NULL for one. */
void *wrapped_find(enum wrapped_kind kind, const void *object);

#endif
