/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regions: ranges of a donor's memory that a client holds.
 *
 * The donor zeroes a region before its memory changes hands. A named region outlives its creator:
 * it exists until it is deleted or the donor ends. An unnamed region ends with its session.
 */
#ifndef WEIR_REGION_H
#define WEIR_REGION_H

#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/tuning.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_session;
struct weir_region;

#define WEIR_REGION_NAME_MAX 63 /* bytes, no '/' and no NUL */

#define WEIR_REGION_EXCLUSIVE 1u /* no other client may hold the region */
#define WEIR_REGION_READ_ONLY 2u /* for open: writes are refused */

/**
 * weir_region_create() - ask the donor for memory
 * @session: the session
 * @name: 1 to WEIR_REGION_NAME_MAX bytes, or NULL for an unnamed region
 * @length: bytes; the donor rounds up to its page size
 * @flags: 0 or WEIR_REGION_EXCLUSIVE
 * @region: receives the region
 * @error: may be NULL
 *
 * The caller owes a weir_region_close().
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: 0, or
 *	-EEXIST     a region of this name exists;
 *	-EDQUOT     over this client's quota;
 *	-ENOSPC     all of the donor's memory is lent;
 *	-EINVAL     a malformed name, length or flag;
 *	-ENOTCONN   the session is down;
 *	-ETIMEDOUT  no reply in time.
 */
int weir_region_create(struct weir_session *session, const char *name, uint64_t length,
		       unsigned int flags, struct weir_region **region, struct weir_error *error);

/**
 * weir_region_open() - open a named region
 * @session: the session
 * @name: the region's name
 * @flags: 0, or WEIR_REGION_EXCLUSIVE, WEIR_REGION_READ_ONLY or both
 * @region: receives the region
 * @error: may be NULL
 *
 * The caller owes a weir_region_close().
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: 0, or
 *	-ENOENT     no region of this name belongs to the session's key;
 *	-EBUSY      another client holds it exclusively, or holds it at all and @flags asks for
 *	            exclusive access;
 *	-EINVAL     a malformed name or flag;
 *	-ENOTCONN   the session is down;
 *	-ETIMEDOUT  no reply in time.
 */
int weir_region_open(struct weir_session *session, const char *name, unsigned int flags,
		     struct weir_region **region, struct weir_error *error);

/**
 * weir_region_close() - return a region to the donor
 * @region: no request to it may be in flight, and it is freed; NULL is allowed
 *
 * An unnamed region ceases to exist. Blocks for one round trip, which an attached region does not
 * need. If the donor does not answer, it takes the memory back when the session ends.
 *
 * Context: Any thread outside callbacks; sleeps.
 */
void weir_region_close(struct weir_region *region);

/**
 * weir_region_delete() - remove the name of a region
 * @session: the session
 * @name: the region's name
 * @error: may be NULL
 *
 * The donor frees the memory when the last holder closes the region.
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: 0, or
 *	-ENOENT     no region of this name belongs to the session's key;
 *	-EBUSY      another client holds it exclusively;
 *	-EINVAL     a malformed name;
 *	-ENOTCONN   the session is down;
 *	-ETIMEDOUT  no reply in time.
 */
int weir_region_delete(struct weir_session *session, const char *name, struct weir_error *error);

/* Describes a region in a message between two applications: see weir_region_attach(). */
struct weir_region_token {
	uint64_t addr;
	uint64_t length;
	uint32_t rkey;
	uint32_t flags;
};

/**
 * weir_region_attach() - access a region described by the donor's application
 * @session: the session
 * @token: from weir_donor_region_create()
 * @region: receives the region
 *
 * Sends nothing: a request finds out whether the donor still has the region. The caller owes a
 * weir_region_close().
 *
 * Context: Any thread; does not block.
 * Return: 0; -EINVAL an impossible range; -ENOMEM.
 */
int weir_region_attach(struct weir_session *session, const struct weir_region_token *token,
		       struct weir_region **region);

/* How often a program writes to a place: see enum weir_unloading. */
enum weir_hint {
	WEIR_NO_HINT,
	WEIR_HOT, /* often: small writes go by RDMA */
	WEIR_COLD, /* rarely: small writes are unloaded, unless unloading is off */
	/*
	 * The class of one request, added to a hint above in struct weir_completion. It counts once
	 * the session has a class, a weight or a region with a class: see enum weir_class.
	 */
	WEIR_REQUEST_URGENT = WEIR_CLASS_URGENT << 2,
	WEIR_REQUEST_NORMAL = WEIR_CLASS_NORMAL << 2,
	WEIR_REQUEST_BULK = WEIR_CLASS_BULK << 2,
	/* The sums, for C++, where an enum takes no integer. */
	WEIR_HOT_URGENT = WEIR_HOT | WEIR_REQUEST_URGENT,
	WEIR_HOT_NORMAL = WEIR_HOT | WEIR_REQUEST_NORMAL,
	WEIR_HOT_BULK = WEIR_HOT | WEIR_REQUEST_BULK,
	WEIR_COLD_URGENT = WEIR_COLD | WEIR_REQUEST_URGENT,
	WEIR_COLD_NORMAL = WEIR_COLD | WEIR_REQUEST_NORMAL,
	WEIR_COLD_BULK = WEIR_COLD | WEIR_REQUEST_BULK,
};

/*
 * Sets the hint for later requests to @region that carry no hint of their own: WEIR_NO_HINT,
 * WEIR_HOT or WEIR_COLD. Context: any thread.
 */
void weir_region_hint(struct weir_region *region, enum weir_hint hint);

/**
 * weir_region_class() - let requests to a region go before others, or behind them
 * @region: the region
 * @class_nr: for later requests through this handle; WEIR_CLASS_DEFAULT: that of the session
 *
 * For a session with requests of several classes: see enum weir_class. The session's NIC has
 * classes from the first call on until the session closes. Requests that overlap keep their order
 * whatever their classes, so an urgent one may wait for bulk. For two classes in the same memory,
 * open a named region twice.
 *
 * Context: Any thread.
 * Return: 0; -EINVAL there is no such class.
 */
int weir_region_class(struct weir_region *region, enum weir_class class_nr);

/* Context: any thread. Return: bytes of @region, rounded up by the donor. */
uint64_t weir_region_length(const struct weir_region *region);

/* A named region, as weir_region_list() finds it. */
struct weir_region_entry {
	size_t size; /* bytes that the library has written */
	char name[WEIR_REGION_NAME_MAX + 1];
	uint64_t length;
	uint32_t holders;
	uint32_t flags;
};

/**
 * weir_region_list() - find the named regions of this key
 * @session: the session
 * @fn: called for each region, in this thread; @entry is valid until it returns
 * @arg: passed to @fn
 *
 * Takes a round trip for each 200 regions or so. A region that is created or deleted meanwhile may
 * be missing.
 *
 * Context: Any thread outside callbacks; sleeps.
 * Return: 0, or, perhaps after some calls of @fn,
 *	-EPROTO     the donor sent an invalid reply;
 *	-ENOMEM     out of memory;
 *	-ENOTCONN   the session is down;
 *	-ETIMEDOUT  no reply in time.
 */
int weir_region_list(struct weir_session *session,
		     void (*fn)(void *arg, const struct weir_region_entry *entry), void *arg);

#ifdef __cplusplus
}
#endif
#endif
