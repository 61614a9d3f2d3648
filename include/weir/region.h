/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions: ranges of a donor's memory that a client holds.
 *
 * A region is zeroed before it changes hands. A named region outlives its creator,
 * until it is deleted or the donor ends; a nameless one ends with the session.
 */
#ifndef WEIR_REGION_H
#define WEIR_REGION_H

#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_session;
struct weir_region;

#define WEIR_REGION_NAME_MAX 63 /* bytes, no '/' and no NUL */

#define WEIR_REGION_EXCLUSIVE 1u /* nobody else may hold it while I do */
#define WEIR_REGION_READ_ONLY 2u /* open: writes are refused */

/**
 * weir_region_create() - ask the donor for memory
 * @name: 1 to WEIR_REGION_NAME_MAX bytes, or NULL for a nameless region
 * @length: bytes, rounded up by the donor to its page size
 * @flags: 0 or WEIR_REGION_EXCLUSIVE
 *
 * Blocks. Return: 0; -EEXIST; -EDQUOT over this client's quota; -ENOSPC the donor is full;
 * -EINVAL; -ENOTCONN; -ETIMEDOUT.
 */
int weir_region_create(struct weir_session *session, const char *name, uint64_t length,
		       unsigned int flags, struct weir_region **region, struct weir_error *error);

/* Return: 0; -ENOENT; -EBUSY someone holds it exclusively (or, asking for that, at all). */
int weir_region_open(struct weir_session *session, const char *name, unsigned int flags,
		     struct weir_region **region, struct weir_error *error);

/* Gives it back. Nothing may be in flight to it. A nameless region is gone. Blocks for one message
 * there and back. Context of this and of all that ask the donor: any thread but a callback. */
void weir_region_close(struct weir_region *region);

/* Removes the name; memory is freed when its last holder closes it. Return: 0; -ENOENT; -EBUSY. */
int weir_region_delete(struct weir_session *session, const char *name, struct weir_error *error);

/* What one application passes another in a message so that it can reach a region. */
struct weir_region_token {
	uint64_t addr;
	uint64_t length;
	uint32_t rkey;
	uint32_t flags;
};

/**
 * weir_region_attach() - a region that the application at the donor described itself
 * (see weir_donor_region_create()); close it with weir_region_close(). Sends nothing.
 */
int weir_region_attach(struct weir_session *session, const struct weir_region_token *token,
		       struct weir_region **region);

/* What a program knows of how often it writes somewhere: see enum weir_unloading. */
enum weir_hint {
	WEIR_NO_HINT,
	WEIR_HOT, /* often: small writes go by RDMA */
	WEIR_COLD, /* seldom: small writes are unloaded, unless that is off */
};

/* For all requests to @region that are submitted from now on and have none of their own. */
void weir_region_hint(struct weir_region *region, enum weir_hint hint);

uint64_t weir_region_length(const struct weir_region *region);

struct weir_region_entry {
	char name[WEIR_REGION_NAME_MAX + 1];
	uint64_t length;
	uint32_t holders;
	uint32_t flags;
};

/* Calls @fn for each named region of this key. Return: 0 or an error. */
int weir_region_list(struct weir_session *session,
		     void (*fn)(void *arg, const struct weir_region_entry *entry), void *arg);

#ifdef __cplusplus
}
#endif
#endif
