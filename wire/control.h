/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control messages: sent by SEND on channel 0 once both ends have proven the key.
 *
 * Each message begins with a wire_control_head. Applications send ONEWAY, CALL and REPLY; weir's
 * own calls, about regions, are CONTROL_CALL and CONTROL_REPLY. Every message takes one credit,
 * that is one of the receiver's posted buffers: core/link/credit.h.
 *
 * Little-endian, naturally aligned, no padding, sizes asserted. The decoders are pure: they check
 * every length and copy.
 */
#ifndef WEIR_WIRE_CONTROL_H
#define WEIR_WIRE_CONTROL_H

#include "wire/platform.h"

#define WIRE_CONTROL_MESSAGE_BYTES 16384 /* size of a receive buffer */
#define WIRE_CONTROL_BODY_MAX 16000 /* of a message, without the head */
#define WIRE_CONTROL_NAME_MAX 63 /* of a region's name; no '/' and no NUL */
#define WIRE_CONTROL_CALLS_MAX 1024 /* unanswered CALLs and CONTROL_CALLs of a session */

/*
 * Flag of a CREDIT: the last message of an end that closes the session in order. A connection that
 * ends without it has lost its peer.
 */
#define WIRE_CONTROL_CLOSING 1u

enum wire_control_kind {
	WIRE_APP_ONEWAY = 1,
	WIRE_APP_CALL, /* client to donor: answered by a REPLY with the same tag */
	WIRE_APP_REPLY, /* donor to client */
	WIRE_CONTROL_CALL, /* client to donor: body is a wire_control_request */
	WIRE_CONTROL_REPLY, /* donor to client */
	WIRE_CONTROL_CREDIT, /* no body: only carries credits, and flags */
	WIRE_CONTROL_RECLAIM, /* donor to client: body is a wire_control_reclaim */
};

struct wire_control_head {
	uint16_t kind;
	uint16_t credits; /* newly granted to the receiver of the message */
	int32_t status; /* replies: 0 or a negative errno of Linux; otherwise 0 */
	uint64_t tag; /* calls and replies: chosen by the caller; otherwise 0 */
	uint32_t length; /* bytes of the body, up to the end of the message */
	uint32_t flags; /* CREDIT: WIRE_CONTROL_CLOSING; other bits are 0, and ignored */
};
static_assert(sizeof(struct wire_control_head) == 24, "wire_control_head");
static_assert(sizeof(struct wire_control_head) + WIRE_CONTROL_BODY_MAX <=
		      WIRE_CONTROL_MESSAGE_BYTES,
	      "message fits");

enum wire_control_op {
	WIRE_REGION_CREATE = 1, /* flags, value: length, optional name -> wire_control_region */
	WIRE_REGION_OPEN, /* flags, name; FENCED: value: epoch -> wire_control_region */
	WIRE_REGION_CLOSE, /* value: hold -> nothing */
	WIRE_REGION_DELETE, /* name -> nothing */
	WIRE_REGION_LIST, /* value: 0 or next -> wire_control_list, wire_control_entry[] */
	WIRE_DONOR_INFO, /* -> wire_control_info */
};

/* Flags of a region, as in <weir/region.h>. */
#define WIRE_REGION_EXCLUSIVE 1u
#define WIRE_REGION_READ_ONLY 2u
/*
 * OPEN: of a client at an epoch, which replaces all holders up to this epoch. Their rkeys are
 * revoked before the reply. -EBUSY: the region has been opened at a later epoch
 */
#define WIRE_REGION_FENCED 8u
#define WIRE_REGION_MOVABLE 4u /* CREATE without a name: the client returns the region on request */

/* The body of a CONTROL_CALL. A name follows. */
struct wire_control_request {
	uint16_t op;
	uint16_t name_length;
	uint32_t flags;
	uint64_t value;
};
static_assert(sizeof(struct wire_control_request) == 16, "wire_control_request");

/*
 * The bodies of CONTROL_REPLYs with status 0. With any other status the body is a sentence for
 * people, without a NUL, possibly empty: wire_control_text_decode().
 */
struct wire_control_region {
	uint64_t hold; /* identifies the client's hold on the region, for WIRE_REGION_CLOSE */
	uint64_t addr;
	uint64_t length;
	uint32_t rkey;
	uint32_t flags;
};
static_assert(sizeof(struct wire_control_region) == 32, "wire_control_region");

struct wire_control_list {
	uint64_t next; /* value for the next call; 0: end of the list */
	uint32_t count; /* entries that follow */
	uint32_t zero;
};
static_assert(sizeof(struct wire_control_list) == 16, "wire_control_list");

struct wire_control_entry {
	uint64_t length;
	uint32_t holders;
	uint32_t flags; /* WIRE_REGION_EXCLUSIVE: held exclusively */
	char name[WIRE_CONTROL_NAME_MAX + 1]; /* padded with at least one NUL */
};
static_assert(sizeof(struct wire_control_entry) == 80, "wire_control_entry");

#define WIRE_CONTROL_ENTRIES_MAX                                      \
	((WIRE_CONTROL_BODY_MAX - sizeof(struct wire_control_list)) / \
	 sizeof(struct wire_control_entry))

struct wire_control_info {
	uint64_t incarnation;
	uint64_t memory_bytes, lent_bytes; /* of the donor */
	uint64_t quota_bytes, charged_bytes; /* of this session */
	uint32_t clients, regions;
};
static_assert(sizeof(struct wire_control_info) == 48, "wire_control_info");

#define WIRE_CONTROL_KEEP_ALL (~(uint64_t)0)

/*
 * The donor wants memory back. The client reduces its WIRE_REGION_MOVABLE memory to @keep_bytes: it
 * copies the contents elsewhere and closes regions. Each RECLAIM replaces the previous one;
 * WIRE_CONTROL_KEEP_ALL cancels the request.
 */
struct wire_control_reclaim {
	uint64_t keep_bytes;
};
static_assert(sizeof(struct wire_control_reclaim) == 8, "wire_control_reclaim");

/**
 * wire_control_decode() - split a message into head and body
 * @data, @length: as received; @data at any alignment
 * @body: receives the start of the body of head.length bytes, inside @data
 *
 * The status in @head is one of the closed list: wire_status().
 *
 * Return: 0; -EPROTO unknown kind, or the length is not the one in the head.
 */
int wire_control_decode(const void *data, size_t length, struct wire_control_head *head,
			const void **body);

/**
 * wire_control_request_decode() - read the body of a CONTROL_CALL
 * @name: receives the name and a NUL; empty if there is none
 *
 * Return: 0; -EPROTO malformed; -EINVAL the name is too long or contains '/' or NUL. The donor
 * answers -EINVAL with an error, because an application's mistake is no breach of the protocol.
 */
int wire_control_request_decode(const void *body, size_t length,
				struct wire_control_request *request,
				char name[static WIRE_CONTROL_NAME_MAX + 1]);

/**
 * wire_control_request_encode() - write the body of a CONTROL_CALL
 * @request: this call sets name_length
 * @name: NULL or a string of at most WIRE_CONTROL_NAME_MAX bytes
 * @body: room for sizeof(struct wire_control_request) + WIRE_CONTROL_NAME_MAX
 *
 * Return: the length in bytes, or -EINVAL: the name is empty, too long or contains '/'.
 */
int wire_control_request_encode(struct wire_control_request *request, const char *name, void *body);

/* Decode the replies and RECLAIM. Return: 0; -EPROTO. */
int wire_control_region_decode(const void *body, size_t length, struct wire_control_region *out);
int wire_control_list_decode(const void *body, size_t length, struct wire_control_list *out);
/* @index: below the count of the list at @body, which wire_control_list_decode() has accepted. */
int wire_control_entry_decode(const void *body, size_t length, uint32_t index,
			      struct wire_control_entry *out);
int wire_control_info_decode(const void *body, size_t length, struct wire_control_info *out);
int wire_control_reclaim_decode(const void *body, size_t length, struct wire_control_reclaim *out);

/* The sentence of a failed reply, printable and with a NUL. @size: of @text, at least 1. */
void wire_control_text_decode(const void *body, size_t length, char *text, size_t size);

/* Whether the sender of a message, as decoded, closes the session. */
static inline bool wire_control_is_closing(const struct wire_control_head *head)
{
	return head->kind == WIRE_CONTROL_CREDIT && head->flags & WIRE_CONTROL_CLOSING;
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#endif
