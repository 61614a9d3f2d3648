/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions, and the check that every local and remote access passes.
 */
#ifndef WEIR_SOFTNIC_VERBS_MR_H
#define WEIR_SOFTNIC_VERBS_MR_H

#include "softnic/shm/shared.h"

/* A region as its program has it. */
struct mr {
	struct ibv_mr ibv;
	/* Of a dma-buf: softnic's own mapping of it. NULL: the program's memory. */
	void *map;
	size_t map_bytes;
};

static inline struct mr *to_mr(struct ibv_mr *mr)
{
	return (struct mr *)mr;
}

/* The owner of the regions, and the owner's queue pair that gives access. */
struct mr_view {
	const struct shared_pub *pub;
	const struct shared_doorbells
		*doorbell_page; /* windows the peer invalidated; NULL for the owner */
	uint32_t pd;
	uint32_t qpn; /* 0 for local keys, which never reach a window */
};

/* A location of memory, in the owner and in the owner's file that peers may map. */
struct mr_place {
	uint64_t addr;
	uint64_t offset; /* in @file */
	uint32_t file; /* 0: in no file */
};

/**
 * mr_translate() - check access to a range of memory, and locate the range
 * @view: the owner and the queue pair
 * @key: lkey or rkey
 * @access: IBV_ACCESS_* flags, all required
 * @iova: start of the range, from the WR
 * @length: in bytes; 0 is always allowed and needs no key
 * @place: written on success: the start of the range
 *
 * Context: Under a guard that ibv_dereg_mr() waits for, else the result may be stale before use.
 * Return: true if access is allowed.
 */
bool mr_translate(const struct mr_view *view, uint32_t key, uint32_t access, uint64_t iova,
		  uint64_t length, struct mr_place *place);

/**
 * mr_may_flush() - check the right to flush a range of a region
 * @whole: the range is the whole region, and @iova and @length do not count
 *
 * Context: As mr_translate().
 */
bool mr_may_flush(const struct mr_view *view, uint32_t key, uint64_t iova, uint64_t length,
		  bool whole);

/**
 * mr_read() - read the region or window of a key
 * @mr: written: a private copy, which the owner cannot change
 *
 * Context: As mr_translate().
 * Return: true if the key is valid through @view.
 */
bool mr_read(const struct mr_view *view, uint32_t key, struct shared_mr *mr);

/** mr_take_key() - allocate a key and its table entry; 0 or -ENOMEM; undone by mr_give_key() */
int mr_take_key(uint32_t *key);

/** mr_give_key() - free the table entry of @key; its next keys come after @key */
void mr_give_key(uint32_t key);

/** mr_publish() - make @mr visible to peers; the caller serialises calls per key */
void mr_publish(uint32_t key, const struct shared_mr *mr);

/** mr_wait_for_copies() - wait for all copies that may use @key, revoked before the call */
void mr_wait_for_copies(uint32_t key);

/**
 * mr_check_rights() - check the access flags of a region or window
 *
 * Return: 0, EOPNOTSUPP for an unknown flag, EINVAL if flags contradict each other.
 */
int mr_check_rights(unsigned int access);

#endif
