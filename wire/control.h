/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Control messages: what travels by SEND on channel 0 once both ends have proven the key.
 *
 * Each begins with a wire_control_head. Applications' messages are ONEWAY, CALL and REPLY; weir's own
 * calls, about regions, are CONTROL_CALL and CONTROL_REPLY. Every message takes one credit,
 * that is one of the receiver's posted buffers: wire/credit.h.
 *
 * Little-endian, naturally aligned, no padding, sizes asserted. The decoders are pure: they
 * check every length, copy, and look at nothing else.
 */
#ifndef WEIR_WIRE_CONTROL_H
#define WEIR_WIRE_CONTROL_H

#include "wire/platform.h"

#define WIRE_CONTROL_MESSAGE_BYTES 16384 /* of a receive buffer */
#define WIRE_CONTROL_BODY_MAX 16000 /* of a message behind its head */
#define WIRE_CONTROL_NAME_MAX 63 /* of a region's name; no '/' and no NUL */
#define WIRE_CONTROL_CALLS_MAX \
	1024 /* CALLs and CONTROL_CALLs of one session that wait for an answer */

enum wire_control_kind {
	WIRE_APP_ONEWAY = 1,
	WIRE_APP_CALL, /* client to donor: answered by a REPLY with the same tag */
	WIRE_APP_REPLY, /* donor to client */
	WIRE_CONTROL_CALL, /* client to donor: body is a wire_control_request */
	WIRE_CONTROL_REPLY, /* donor to client */
	WIRE_CONTROL_CREDIT, /* no body: here only to carry credits */
	WIRE_CONTROL_RECLAIM, /* donor to client: body is a wire_control_reclaim */
};

struct wire_control_head {
	uint16_t kind;
	uint16_t credits; /* granted anew to the receiver of this message */
	int32_t status; /* replies: 0 or a negative errno of Linux; otherwise 0 */
	uint64_t tag; /* calls and replies: the caller's choice; otherwise 0 */
	uint32_t length; /* bytes of the body, which is all that follows */
	uint32_t zero;
};
static_assert(sizeof(struct wire_control_head) == 24, "wire_control_head");
static_assert(sizeof(struct wire_control_head) + WIRE_CONTROL_BODY_MAX <=
		      WIRE_CONTROL_MESSAGE_BYTES,
	      "message fits");

enum wire_control_op {
	WIRE_REGION_CREATE = 1, /* flags, value: length, perhaps a name -> wire_control_region */
	WIRE_REGION_OPEN, /* flags, name -> wire_control_region */
	WIRE_REGION_CLOSE, /* value: hold -> nothing */
	WIRE_REGION_DELETE, /* name -> nothing */
	WIRE_REGION_LIST, /* value: 0, then what the reply before said -> wire_control_list, wire_control_entry[] */
	WIRE_DONOR_INFO, /* -> wire_control_info */
};

/* Flags of a region: those of <weir/region.h>. */
#define WIRE_REGION_EXCLUSIVE 1u
#define WIRE_REGION_READ_ONLY 2u
#define WIRE_REGION_MOVABLE \
	4u /* CREATE, without a name: the client gives it back when it is asked to */

/* The body of a CONTROL_CALL. A name follows it. */
struct wire_control_request {
	uint16_t op; /* enum wire_control_op */
	uint16_t name_length;
	uint32_t flags;
	uint64_t value;
};
static_assert(sizeof(struct wire_control_request) == 16, "wire_control_request");

/*
 * The bodies of CONTROL_REPLYs with status 0. With another status the body is a sentence for
 * people, without a NUL, perhaps empty: wire_control_text_decode().
 */
struct wire_control_region {
	uint64_t hold; /* names this holding of the region in WIRE_REGION_CLOSE */
	uint64_t addr;
	uint64_t length;
	uint32_t rkey;
	uint32_t flags;
};
static_assert(sizeof(struct wire_control_region) == 32, "wire_control_region");

struct wire_control_list {
	uint64_t next; /* value of the call that goes on; 0: that was all */
	uint32_t count; /* of entries that follow */
	uint32_t zero;
};
static_assert(sizeof(struct wire_control_list) == 16, "wire_control_list");

struct wire_control_entry {
	uint64_t length;
	uint32_t holders;
	uint32_t flags; /* WIRE_REGION_EXCLUSIVE: held so */
	char name[WIRE_CONTROL_NAME_MAX + 1]; /* padded with NULs, at least one */
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
 * The donor wants memory back. What the client has of it that is WIRE_REGION_MOVABLE is to become
 * @keep_bytes or less: it closes what it can do without, once it has what that holds elsewhere.
 *	Each RECLAIM takes the
 * place of those before; WIRE_CONTROL_KEEP_ALL: the donor wants nothing any more.
 */
struct wire_control_reclaim {
	uint64_t keep_bytes;
};
static_assert(sizeof(struct wire_control_reclaim) == 8, "wire_control_reclaim");

/**
 * wire_control_decode() - take the head off a message
 * @data, @length: as received; @data at any alignment
 * @body: receives where the head.length bytes of the body begin, inside @data
 *
 * Return: 0; -EPROTO unknown kind, or it is not exactly as long as it says.
 */
int wire_control_decode(const void *data, size_t length, struct wire_control_head *head,
			const void **body);

/**
 * wire_control_request_decode() - read the body of a CONTROL_CALL
 * @name: receives the name and a NUL; empty if there is none
 *
 * Return: 0; -EPROTO malformed; -EINVAL a name with '/' or NUL in it or one too long: that is the
 * application's mistake and answered, not punished.
 */
int wire_control_request_decode(const void *body, size_t length,
				struct wire_control_request *request,
				char name[static WIRE_CONTROL_NAME_MAX + 1]);

/**
 * wire_control_request_encode() - write the body of a CONTROL_CALL
 * @request: name_length is set here
 * @name: NULL or a string of at most WIRE_CONTROL_NAME_MAX bytes
 * @body: room for sizeof(struct wire_control_request) + WIRE_CONTROL_NAME_MAX
 *
 * Return: its length in bytes, or -EINVAL: the name is empty, too long or has a '/' in it.
 */
int wire_control_request_encode(struct wire_control_request *request, const char *name, void *body);

/* The replies, and RECLAIM. Return: 0; -EPROTO. */
int wire_control_region_decode(const void *body, size_t length, struct wire_control_region *out);
int wire_control_list_decode(const void *body, size_t length, struct wire_control_list *out);
/* @index: below the count of the list at @body, which wire_control_list_decode() has accepted. */
int wire_control_entry_decode(const void *body, size_t length, uint32_t index,
			      struct wire_control_entry *out);
int wire_control_info_decode(const void *body, size_t length, struct wire_control_info *out);
int wire_control_reclaim_decode(const void *body, size_t length, struct wire_control_reclaim *out);

/* The sentence of a failed reply, printable and with a NUL. @size: of @text, at least 1. */
void wire_control_text_decode(const void *body, size_t length, char *text, size_t size);

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");

#endif
