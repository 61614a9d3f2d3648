/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How counting gets between a program and its device. Verbs are calls through pointers in the
 * device's objects. This library replaces the pointers and keeps the originals here.
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
/* Counts one completion; @opcode and @bytes matter only for a successful receive. */
void count_completion(enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t bytes);

/* Replaces the pointers of an object; a second call changes nothing. */
void wrap_context(struct ibv_context *context);
void wrap_qp(struct ibv_qp_ex *qp);
void wrap_cq(struct ibv_cq_ex *cq);

/* An address may be reused for an object of another kind. */
enum wrapped_kind { WRAPPED_CONTEXT, WRAPPED_CQ, WRAPPED_QP };

/**
 * wrapped_get() - find or make the record of an object
 * @kind: kind of the object
 * @object: the object
 * @size: of the record; the same for all objects of a kind
 *
 * Lookups take no lock, and records are never freed: a new object at the address of an old one of
 * its kind takes over the record.
 *
 * Return: the record, zeroed if new; NULL: out of memory.
 */
void *wrapped_get(enum wrapped_kind kind, const void *object, size_t size);
/* The record of an object already wrapped; never NULL for such an object. */
void *wrapped_find(enum wrapped_kind kind, const void *object);

#endif
