/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Generic netlink protocol between 'weir blk' and weir_blk.ko. Both find the family by name. Each
 * command is a single message; each reply can carry an error text.
 *
 *	ATTACH  DONORS, BYTES or NAME or both, optional attributes -> STATUS, NUMBER or TEXT
 *	DETACH  NUMBER -> STATUS, perhaps TEXT
 *	RESIZE  NUMBER, BYTES -> STATUS, perhaps TEXT
 *	LIST    (dump) -> a message per device, with all attributes not marked otherwise; DONORS and
 *	        NAME for CAP_SYS_ADMIN only
 */
#ifndef WEIR_INCLUDE_UAPI_WEIR_BLK_H
#define WEIR_INCLUDE_UAPI_WEIR_BLK_H

#include "wire/platform.h"

#define WEIR_BLK_FAMILY "weir_blk"
#define WEIR_BLK_VERSION 1
#define WEIR_BLK_KEY "weir:blk" /* of type logon, in a keyring of the attaching process */
#define WEIR_BLK_NUMBER_MAX 255
#define WEIR_BLK_DONORS_MAX 8
#define WEIR_BLK_REPLICAS_MAX 4
#define WEIR_BLK_ADDRESS 28

/**
 * struct weir_blk_donor - a donor of a device
 * @address: a struct sockaddr_in or sockaddr_in6
 * @state: an enum weir_blk_state: UP, RECONNECTING or LOST; in LIST
 * @bytes: bytes of the device at this donor, over all replicas; in LIST
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
	WEIR_BLK_STATUS, /* s32: 0 or a negative errno; in replies */
	WEIR_BLK_TEXT, /* string: a sentence for people; in replies */
	WEIR_BLK_NUMBER, /* u32: N of /dev/weirN */
	WEIR_BLK_DONORS, /* struct weir_blk_donor[], 1 to WEIR_BLK_DONORS_MAX */
	/* string: name of the region at the donor; absent: the region ends with the device */
	WEIR_BLK_NAME,
	WEIR_BLK_BYTES, /* u64 */
	WEIR_BLK_HAS_KEY, /* flag: prove WEIR_BLK_KEY; in ATTACH */
	WEIR_BLK_CHANNELS, /* u32 */
	WEIR_BLK_DEPTH, /* u32 */
	WEIR_BLK_TIMEOUT_MS, /* u32 */
	WEIR_BLK_WINDOW_BYTES, /* u64; in ATTACH */
	WEIR_BLK_POLLING, /* u32: an enum weir_poll_mode; in ATTACH */
	WEIR_BLK_STATE, /* u32: an enum weir_blk_state */
	WEIR_BLK_OPENERS, /* u32 */
	/* u64[]: in the order of WEIR_BLK_COUNTER_LIST; new counters are appended */
	WEIR_BLK_COUNTERS,
	WEIR_BLK_REPLICAS, /* u32: replicas of each piece of the device */
	WEIR_BLK_RESERVE, /* u64: bytes of discarded pieces that keep their memory; in ATTACH */
	WEIR_BLK_BATCHING, /* u32: an enum weir_blk_batching; in ATTACH */
	WEIR_BLK_MR, /* u32: an enum weir_blk_mr; in ATTACH */
	WEIR_BLK_LOCAL, /* string: path of the block device of last resort; in ATTACH */
	WEIR_BLK_ATTRIBUTE_MAX = WEIR_BLK_LOCAL,
};

/* How requests become work requests; see the module's own header. */
enum weir_blk_batching {
	WEIR_BLK_HYBRID,
	WEIR_BLK_SINGLE,
	WEIR_BLK_DOORBELL,
	WEIR_BLK_MERGE,
};

enum weir_blk_mr {
	WEIR_BLK_MR_DYN, /* maps pages for the device per request */
	WEIR_BLK_MR_PRE, /* copies pages to memory that stays mapped */
};

enum weir_blk_state {
	WEIR_BLK_UP,
	WEIR_BLK_RECONNECTING, /* some connections are being re-established */
	WEIR_BLK_LOST, /* some or all pieces are at no donor; requests for them fail */
	WEIR_BLK_DEGRADED, /* some pieces have too few replicas */
};

/* X(name, meaning) */
#define WEIR_BLK_COUNTER_LIST(X)                                                                   \
	X(ios, "reads and writes of donors' memory")                                               \
	X(requests, "requests made of these, of at most 8 pieces of memory each")                  \
	X(work_requests, "work requests posted")                                                   \
	X(doorbells, "posts")                                                                      \
	X(merged, "requests that shared a work request with others")                               \
	X(completions, "completions taken")                                                        \
	X(events, "times that an event started polling")                                           \
	X(empty_polls, "polls that found nothing")                                                 \
	X(window_waits, "times that the window was full")                                          \
	X(retries, "requests posted again after a connection broke")                               \
	X(reconnects, "connections re-established")                                                \
	X(errors, "work requests that failed")                                                     \
	X(bytes_read, "bytes read")                                                                \
	X(bytes_written, "bytes written")                                                          \
	X(failovers, "reads sent to another replica")                                              \
	X(pieces, "pieces that the device has")                                                    \
	X(degraded,                                                                                \
	  "pieces with too few replicas, but at least one or a copy on the local disk")            \
	X(lost, "pieces without any replica")                                                      \
	X(bytes_copied, "bytes copied to new replicas")                                            \
	X(mismatches, "reads that returned other data than was written")                           \
	X(given_back, "fully discarded pieces whose memory was given back")                        \
	X(leaving, "pieces that a donor has asked back and still holds")                           \
	X(local_bytes_written, "bytes copied to the local disk")                                   \
	X(local_bytes_read, "bytes read from the local disk because no donor had them")            \
	X(local_behind, "bytes not on the local disk yet")                                         \
	X(polled, "completions found by a waiting thread's own polling")

enum weir_blk_counter {
#define WEIR_BLK_COUNTER(name, help) WEIR_BLK_COUNTER_##name,
	WEIR_BLK_COUNTER_LIST(WEIR_BLK_COUNTER)
#undef WEIR_BLK_COUNTER
		WEIR_BLK_COUNTERS_NR
};

#endif
