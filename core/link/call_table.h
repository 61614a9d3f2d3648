/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client's calls. For its caller a call ends once: by the reply, a timeout or the loss of the
 * channel. Its entry may live longer:
 *
 *	FREE --begin--> WAITING --reply--> FREE
 *	                WAITING --expire, abandon--> LATE --reply--> FREE
 *	                                             LATE --a reply that grants a region--> GRANTED
 *	GRANTED --begin, to return the hold--> WAITING
 *	WAITING, LATE --broken--> FREE, or GRANTED while a hold is not returned
 *
 * A call that has timed out keeps its entry until the reply comes: the donor also counts unanswered
 * calls. A region that a late reply granted is in nobody's hands, so its entry keeps the hold until
 * a call has returned it.
 *
 * The host keeps its callers by the index of the entry. The owner serialises.
 */
#ifndef WEIR_CORE_LINK_CALL_TABLE_H
#define WEIR_CORE_LINK_CALL_TABLE_H

#include "core/base/list.h"
#include "core/base/platform.h"
#include "wire/control.h"

enum weir_call_state {
	WEIR_CALL_FREE,
	WEIR_CALL_WAITING, /* has a caller */
	WEIR_CALL_LATE, /* the caller has gone, the reply has not come */
	WEIR_CALL_GRANTED, /* a hold is to be returned */
};

/**
 * struct weir_call_entry - one call
 * @link: in the table's free, waiting or granted, or in no list
 * @tag: on the wire: a generation and the index; 0 while no reply is expected
 * @deadline_ns: when the call expires
 * @hold: granted to a caller that had gone; 0: none
 * @is_kept: by the next weir_call_table_broken()
 */
struct weir_call_entry {
	struct weir_list link;
	enum weir_call_state state;
	uint64_t tag;
	uint64_t deadline_ns;
	uint64_t hold;
	bool is_kept;
};

/**
 * struct weir_call_table - all calls of a session
 * @entries, @count: storage of the host; a power of two
 * @free, @granted: entries in these states; @waiting: in the order of their deadlines
 * @generation: of the next tag
 */
struct weir_call_table {
	struct weir_call_entry *entries;
	unsigned int count;
	struct weir_list free, waiting, granted;
	uint64_t generation;
};

void weir_call_table_init(struct weir_call_table *t, struct weir_call_entry *entries,
			  unsigned int count);

/**
 * weir_call_table_begin() - take an entry for a call
 * @hold: that the call returns to the donor, or 0
 *
 * The tag is in the entry. A call not sent after all owes a weir_call_table_cancel().
 *
 * Return: the entry's index; -EAGAIN too many calls.
 */
int weir_call_table_begin(struct weir_call_table *t, uint64_t deadline_ns, uint64_t hold);
void weir_call_table_cancel(struct weir_call_table *t, unsigned int index);

/**
 * weir_call_table_reply() - take a reply
 * @head, @body: as received; @index: receives the entry's, whose caller gets the reply
 *
 * Return: 0; -ESTALE the caller has gone; -EPROTO no such call.
 */
int weir_call_table_reply(struct weir_call_table *t, const struct wire_control_head *head,
			  const void *body, unsigned int *index);

/* The caller goes, if the call still waits. Return: true if it does. */
bool weir_call_table_abandon(struct weir_call_table *t, unsigned int index);

/* Return: the index of a call whose caller goes at its deadline, call again; -1: no more. */
int weir_call_table_expire(struct weir_call_table *t, uint64_t now_ns);

/* Lets the next weir_call_table_broken() keep the call of @tag, if any: it was not sent yet. */
void weir_call_table_keep(struct weir_call_table *t, uint64_t tag);

/* The channel is lost, for each index. Return: true if the call ends and has a caller to tell. */
bool weir_call_table_broken(struct weir_call_table *t, unsigned int index);

/* When weir_call_table_expire() is due; UINT64_MAX: never. */
static inline uint64_t weir_call_table_deadline_ns(const struct weir_call_table *t)
{
	if (weir_list_is_empty(&t->waiting))
		return UINT64_MAX;
	return container_of(t->waiting.next, struct weir_call_entry, link)->deadline_ns;
}

/* Return: a hold to return to the donor; 0: none. */
uint64_t weir_call_table_granted(const struct weir_call_table *t);

/*
 * Whether a call ended without a reply, which is no refusal: the donor may not even have received
 * the call. -EAGAIN: the table was full; -EINTR: the caller was interrupted.
 */
static inline bool weir_call_is_unanswered(int rc)
{
	return rc == -ETIMEDOUT || rc == -ENOTCONN || rc == -ECONNRESET || rc == -EAGAIN ||
	       rc == -EINTR;
}

#endif
