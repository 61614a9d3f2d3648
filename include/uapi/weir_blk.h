/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What 'weir blk' and weir_blk.ko say to each other, over generic netlink: a family that both find
 * by its name, commands of one message each, and an answer that says in words what went wrong.
 *
 *	ATTACH  DONORS, BYTES or NAME or both, and what else there is -> STATUS, NUMBER or TEXT
 *	DETACH  NUMBER -> STATUS, perhaps TEXT
 *	RESIZE  NUMBER, BYTES -> STATUS, perhaps TEXT
 *	LIST    (dump) -> one message a device: all that has no other mark
 */
#ifndef WEIR_INCLUDE_UAPI_WEIR_BLK_H
#define WEIR_INCLUDE_UAPI_WEIR_BLK_H

#include "wire/platform.h"

#define WEIR_BLK_FAMILY "weir_blk"
#define WEIR_BLK_VERSION 1
#define WEIR_BLK_KEY "weir:blk" /* of type logon, in a keyring of who attaches */
#define WEIR_BLK_NUMBER_MAX 255
#define WEIR_BLK_DONORS_MAX 8
#define WEIR_BLK_REPLICAS_MAX 4
#define WEIR_BLK_ADDRESS 28

/**
 * struct weir_blk_donor - one donor of a device
 * @address: a struct sockaddr_in or sockaddr_in6
 * @state: an enum weir_blk_state: UP, MENDING or LOST; LIST
 * @bytes: that it has of the device, of all replicas; LIST
 */
struct weir_blk_donor {
	uint8_t address[WEIR_BLK_ADDRESS];
	uint32_t state;
	uint64_t bytes;
};
static_assert(sizeof(struct weir_blk_donor) == 40, "weir_blk_donor");

enum weir_blk_command {
	WEIR_BLK_ATTACH = 1,
	WEIR_BLK_DETACH,
	WEIR_BLK_LIST,
	WEIR_BLK_RESIZE,
};

enum weir_blk_attribute {
	WEIR_BLK_PAD = 1,
	WEIR_BLK_STATUS, /* s32: 0 or a negative errno; answers */
	WEIR_BLK_TEXT, /* string: a sentence for people; answers */
	WEIR_BLK_NUMBER, /* u32: N of /dev/weirN */
	WEIR_BLK_DONORS, /* struct weir_blk_donor[], 1 to WEIR_BLK_DONORS_MAX */
	WEIR_BLK_NAME, /* string: of the region at the donor; none: it ends with the device */
	WEIR_BLK_BYTES, /* u64 */
	WEIR_BLK_HAS_KEY, /* flag: prove WEIR_BLK_KEY; ATTACH */
	WEIR_BLK_CHANNELS, /* u32 */
	WEIR_BLK_DEPTH, /* u32 */
	WEIR_BLK_TIMEOUT_MS, /* u32 */
	WEIR_BLK_WINDOW_BYTES, /* u64; ATTACH */
	WEIR_BLK_POLLING, /* u32: an enum weir_poll_mode; ATTACH */
	WEIR_BLK_STATE, /* u32: enum weir_blk_state */
	WEIR_BLK_OPENERS, /* u32 */
	WEIR_BLK_COUNTERS, /* u64[]: in the order of WEIR_BLK_COUNTER_LIST; new ones come last */
	WEIR_BLK_REPLICAS, /* u32: of each piece of the device */
	WEIR_BLK_RESERVE, /* u64: bytes that keep their memory where all was discarded; ATTACH */
	WEIR_BLK_BATCHING, /* u32: an enum weir_blk_batching; ATTACH */
	WEIR_BLK_MR, /* u32: an enum weir_blk_mr; ATTACH */
	WEIR_BLK_LOCAL, /* string: path of the block device that is the last resort; ATTACH */
	WEIR_BLK_ATTRIBUTE_MAX = WEIR_BLK_LOCAL,
};

/* How requests become work requests; what it means the module's own header says. */
enum weir_blk_batching {
	WEIR_BLK_HYBRID,
	WEIR_BLK_SINGLE,
	WEIR_BLK_DOORBELL,
	WEIR_BLK_MERGE,
};

enum weir_blk_mr {
	WEIR_BLK_MR_DYN, /* pages are mapped for the device as they come */
	WEIR_BLK_MR_PRE, /* they are copied to memory that is mapped already */
};

enum weir_blk_state {
	WEIR_BLK_UP,
	WEIR_BLK_MENDING, /* some connections are being made anew */
	WEIR_BLK_LOST, /* pieces of it, or all, are at no donor: there all ends with an error */
	WEIR_BLK_DEGRADED, /* pieces of it have fewer replicas than they should */
};

/* X(name, what it counts) */
#define WEIR_BLK_COUNTER_LIST(X)                                                                   \
	X(ios, "reads and writes of donors' memory")                                               \
	X(requests, "requests that these became, of 8 pieces of memory at most")                   \
	X(work_requests, "work requests posted")                                                   \
	X(doorbells, "posts")                                                                      \
	X(merged, "requests that shared a work request with others")                               \
	X(completions, "completions taken")                                                        \
	X(events, "times that polling began anew, on an event")                                    \
	X(empty_polls, "polls that found nothing")                                                 \
	X(window_waits, "times that the window was full")                                          \
	X(retries, "requests posted again after a connection broke")                               \
	X(reconnects, "connections made anew")                                                     \
	X(errors, "work requests that failed")                                                     \
	X(bytes_read, "bytes read")                                                                \
	X(bytes_written, "bytes written")                                                          \
	X(failovers, "reads that another replica was asked for")                                   \
	X(pieces, "pieces that the device has")                                                    \
	X(degraded,                                                                                \
	  "of them, those that have too few replicas, and one at least, or the local disk's copy") \
	X(lost, "of them, those that have none")                                                   \
	X(bytes_copied, "bytes copied to new replicas")                                            \
	X(mismatches, "reads that found something else than what was written")                     \
	X(given_back, "pieces of which all was discarded, whose memory was given back")            \
	X(leaving, "pieces that a donor has asked for, and has still")                             \
	X(local_bytes_written, "bytes copied to the local disk")                                   \
	X(local_bytes_read, "bytes read from the local disk, since no donor had them")             \
	X(local_behind, "bytes that are not on the local disk yet")                                \
	X(polled, "of the completions, those that who waited for them polled for")

enum weir_blk_counter {
#define WEIR_BLK_COUNTER(name, help) WEIR_BLK_COUNTER_##name,
	WEIR_BLK_COUNTER_LIST(WEIR_BLK_COUNTER)
#undef WEIR_BLK_COUNTER
		WEIR_BLK_COUNTERS_NR
};

#endif
