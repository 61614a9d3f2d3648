/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Generic netlink protocol between 'weir blk' and weir_blk.ko. Both find the family by name. Each
 * command is a single message; each reply can carry an error text.
 *
 *	ATTACH  DONORS, BYTES or NAME or both, optional attributes -> STATUS, NUMBER or TEXT
 *	DETACH  NUMBER -> STATUS, perhaps TEXT
 *	RESIZE  NUMBER, BYTES -> STATUS, perhaps TEXT
 *	LIST    (dump) -> a message per device, with all attributes not marked otherwise; DONORS,
 *	        NAME, POOL and AGENT for CAP_SYS_ADMIN only
 *
 * A volume of a pool. A program, the agent, has claimed the volume in the pool's map, and tells the
 * module of each new map. The module opens regions, fills copies, and goes on without the agent
 * while no donor fails. The agent looks at what the module has found, and reports it to the pool.
 *
 *	ATTACH  POOL, LAYOUT, GROUPS, AGENT, BYTES, REPLICAS, optional attributes -> STATUS, NUMBER
 *	        or TEXT. The device has no disk yet
 *	MAP     NUMBER, LAYOUT, POOL_DONORS, MEMBERS, MAP_FLAGS, AGENT, perhaps PROOF -> STATUS or
 *	        TEXT. The layout tells the device from a later one with the same number, here and
 *	        below: -ENODEV
 *	LOOK    NUMBER, LAYOUT -> STATUS, TEXT and all attributes marked so
 *	NEWS    NUMBER; from the module, to the multicast group WEIR_BLK_NEWS_GROUP: a LOOK would
 *	        find a donor that failed, another flag, or no device. A message may be lost
 *	START   NUMBER, LAYOUT -> STATUS, perhaps TEXT. The copies are equal: the disk appears
 */
#ifndef WEIR_INCLUDE_UAPI_WEIR_BLK_H
#define WEIR_INCLUDE_UAPI_WEIR_BLK_H

#include "wire/platform.h"

#define WEIR_BLK_FAMILY "weir_blk"
#define WEIR_BLK_VERSION 1
#define WEIR_BLK_NEWS_GROUP "news"
#define WEIR_BLK_KEY "weir:blk" /* of type logon, in a keyring of the attaching process */
#define WEIR_BLK_NUMBER_MAX 255
#define WEIR_BLK_DONORS_MAX 8
#define WEIR_BLK_REPLICAS_MAX 4
#define WEIR_BLK_ADDRESS 28
#define WEIR_BLK_POOL_DONORS_MAX 32 /* of a pool, those that groups still name included */
#define WEIR_BLK_POOL_MAX 511 /* bytes of POOL */
#define WEIR_BLK_GROUPS_MAX 1024
#define WEIR_BLK_MEMBERS_MAX 4000 /* of all groups */
#define WEIR_BLK_EXTENTS_MAX 8192 /* of a pool's volume */
#define WEIR_BLK_AGENT_MAX 128
#define WEIR_BLK_READY_MAX 64 /* in a reply; the agent reports these, and looks again */

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

/**
 * struct weir_blk_layout - a volume of a pool
 * @pool, @volume: ids, for the names of regions
 * @epoch: of the claim
 * @unit, @width, @extent_pages: see core/volume/stripe.h
 * @groups: of the scheme's table; groups are counted from its first
 */
struct weir_blk_layout {
	uint64_t pool, volume, epoch;
	uint32_t unit, width, extent_pages, groups;
};
static_assert(sizeof(struct weir_blk_layout) == 40, "weir_blk_layout");

/**
 * struct weir_blk_pool_donor - a donor of a pool
 * @address: a struct sockaddr_in or sockaddr_in6; zeroes: the donor is not registered now
 * @incarnation: the number of its memory, not 0
 */
struct weir_blk_pool_donor {
	uint8_t address[WEIR_BLK_ADDRESS];
	uint32_t zero;
	uint64_t incarnation;
};
static_assert(sizeof(struct weir_blk_pool_donor) == 40, "weir_blk_pool_donor");

/* Flags of a member. */
#define WEIR_BLK_MEMBER_SERVES 1u
#define WEIR_BLK_MEMBER_COUNTS 2u /* it serves, or may without a further report */

/**
 * struct weir_blk_member - a member of a group that is not out
 * @joined: the version of the group that made it a member
 * @group: below groups of the layout; members of a group stand together
 * @donor: its index in POOL_DONORS
 * @flags: WEIR_BLK_MEMBER_*
 */
struct weir_blk_member {
	uint64_t joined;
	uint16_t group;
	uint16_t donor;
	uint32_t flags;
};
static_assert(sizeof(struct weir_blk_member) == 16, "weir_blk_member");

/* MAP_FLAGS */
#define WEIR_BLK_MAP_BLANK 1u /* the volume had no data when it was claimed */
#define WEIR_BLK_MAP_PROVEN 2u /* PROOF: the map is still this one after that many openings */
#define WEIR_BLK_MAP_OVER 4u /* another client has the volume: all requests fail from now on */

/* LOOK_FLAGS */
#define WEIR_BLK_LOOK_EQUAL 1u /* all copies that another client may read: START may follow */
#define WEIR_BLK_LOOK_UNPROVEN 2u /* extents without data need a PROOF of the same number */
#define WEIR_BLK_LOOK_OVER 4u /* a donor has refused the epoch, or the agent has said OVER */
#define WEIR_BLK_LOOK_LOST 8u /* a group has no member left that serves */
#define WEIR_BLK_LOOK_STARTED 16u

/* A member that lacked data, and now has all of this volume. */
struct weir_blk_ready {
	uint64_t joined;
	uint32_t group, zero;
};
static_assert(sizeof(struct weir_blk_ready) == 16, "weir_blk_ready");

enum weir_blk_command {
	WEIR_BLK_ATTACH = 1,
	WEIR_BLK_DETACH,
	WEIR_BLK_LIST,
	WEIR_BLK_RESIZE,
	WEIR_BLK_MAP,
	WEIR_BLK_LOOK,
	WEIR_BLK_START,
	WEIR_BLK_NEWS,
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
	WEIR_BLK_ENCRYPT, /* flag: donors hold ciphertext only; in ATTACH */
	WEIR_BLK_CIPHER, /* string: how the pages are encrypted; absent: not at all; in LIST */
	WEIR_BLK_POOL, /* string: POOL/VOLUME, as the agent names it */
	WEIR_BLK_LAYOUT, /* struct weir_blk_layout */
	WEIR_BLK_GROUPS, /* u16[]: the group of each extent; in ATTACH */
	WEIR_BLK_POOL_DONORS, /* struct weir_blk_pool_donor[]; in MAP */
	WEIR_BLK_MEMBERS, /* struct weir_blk_member[]; in MAP */
	WEIR_BLK_MAP_FLAGS, /* u32; in MAP */
	WEIR_BLK_PROOF, /* u64; in MAP and LOOK */
	WEIR_BLK_AGENT, /* bytes that the module keeps for the next agent */
	WEIR_BLK_LOOK_FLAGS, /* u32; in LOOK */
	WEIR_BLK_PERCENT, /* u32: how much of their data members that lacked some have; in LOOK */
	WEIR_BLK_FAILED, /* u64[]: incarnations of donors that do not answer; in LOOK */
	WEIR_BLK_READY, /* struct weir_blk_ready[]; in LOOK */
	WEIR_BLK_COPIED, /* u64: pages copied so far; in LOOK */
	WEIR_BLK_ATTRIBUTE_MAX = WEIR_BLK_COPIED,
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
	X(polled, "completions found by a waiting thread's own polling")                           \
	X(bytes_repaired, "bytes replaced at a pool's donor that returned other data")

enum weir_blk_counter {
#define WEIR_BLK_COUNTER(name, help) WEIR_BLK_COUNTER_##name,
	WEIR_BLK_COUNTER_LIST(WEIR_BLK_COUNTER)
#undef WEIR_BLK_COUNTER
		WEIR_BLK_COUNTERS_NR
};

#endif
