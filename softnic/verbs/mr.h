/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions, and the one check that every access goes through, local or remote.
 */
#ifndef WEIR_SOFTNIC_VERBS_MR_H
#define WEIR_SOFTNIC_VERBS_MR_H

#include "softnic/shm/shared.h"

/* Whose regions, and by which queue pair of theirs they are reached. */
struct mr_view {
	const struct shared_pub *pub;
	const struct shared_doorbells
		*doorbell_page; /* what the viewer invalidated; NULL: the owner's view */
	uint32_t pd;
	uint32_t qpn; /* 0 for local keys: no window is reached by one */
};

/* Where memory is: in its owner, and in a file of the owner's that peers may map. */
struct mr_place {
	uint64_t addr;
	uint64_t offset; /* in the file */
	uint32_t file; /* 0: it is in none */
};

/**
 * mr_translate() - may this range be accessed, and where is it?
 * @view: whose, and through what
 * @key: lkey or rkey
 * @access: IBV_ACCESS_* that all must be granted
 * @iova: where the range starts, as the work request says
 * @length: 0 is always allowed and needs no key
 * @place: written on success: where it starts
 *
 * Context: under a guard that ibv_dereg_mr() waits for, or the answer may be out of date
 * before it is used.
 * Return: true if it may.
 */
bool mr_translate(const struct mr_view *view, uint32_t key, uint32_t access, uint64_t iova,
		  uint64_t length, struct mr_place *place);

/**
 * mr_read() - may that key be used there at all, and for what?
 * @mr: written: a copy, which its owner cannot change any more
 *
 * Context: as mr_translate().
 * Return: true if it may.
 */
bool mr_read(const struct mr_view *view, uint32_t key, struct shared_mr *mr);

/** mr_take_key() - a place in the table and a key for it. 0 or -ENOMEM; mr_give_key(). */
int mr_take_key(uint32_t *key);

/** mr_give_key() - the place may be used again, with keys that come after @key */
void mr_give_key(uint32_t key);

/** mr_publish() - others may use it from now on. Nobody else may do the same. */
void mr_publish(uint32_t key, const struct shared_mr *mr);

/** mr_wait_for_copies() - nobody copies any more by a key that was taken back before */
void mr_wait_for_copies(void);

/**
 * mr_check_rights() - are these the rights that a region or window can have?
 *
 * Return: 0, EOPNOTSUPP if something is not known here, EINVAL if they contradict.
 */
int mr_check_rights(unsigned int access);

#endif
