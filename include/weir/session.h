/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions: a client's connections to one donor, and the pipeline over them.
 *
 * A channel that breaks is connected anew, as often as it takes and for as long as the session's
 * timeout, while the donor lives and remembers the session. Then reads that were under way are
 * repeated, and so are writes to regions held exclusively, if they have retries left; all else
 * ends with -ECONNRESET, outcome unknown. Calls that were sent and not answered end so at once.
 * What was not sent yet is sent. A session whose donor has ended, or that could not be mended, is
 * down.
 *
 * A session that has posted nothing for keepalive_ns asks on each channel whether the donor's host
 * is there still, by an empty RDMA write, which takes none of the donor's CPU time. A host that has
 * vanished without a word is so found out after keepalive_ns to twice as long, and what the
 * transport takes to give up, or timeout_ns if that is less; timeout_ns later the session is down.
 *
 * A session that had no answer to what it has in flight for half of timeout_ns, or up to an eighth
 * longer, while others wait for room in the NIC's window, breaks the channels concerned, or all of
 * them if it had no answer at all: else who waits behind what goes to such a host would be late,
 * too.
 */
#ifndef WEIR_SESSION_H
#define WEIR_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/key.h>
#include <weir/message.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_session;
struct ibv_pd;
struct ibv_cq;
struct ibv_qp;

#define WEIR_PORT_DEFAULT 7474

/* What is chosen where the options below say DEFAULT. */
enum weir_preset {
	WEIR_PRESET_DEFAULT, /* rdmabox */
	WEIR_PRESET_RDMABOX, /* hybrid batching, memory auto, polling adaptive */
	WEIR_PRESET_SINGLE, /* as plain verbs: single, auto, adaptive */
	WEIR_PRESET_ACCELIO, /* as Accelio: doorbell, dyn, event batch */
};

/* What requests that wait at the same time become. */
enum weir_batching {
	WEIR_BATCHING_DEFAULT, /* the preset's */
	WEIR_BATCHING_SINGLE, /* one work request and one doorbell each */
	WEIR_BATCHING_DOORBELL, /* chains of work requests, one doorbell each */
	WEIR_BATCHING_MERGE, /* neighbours at the destination, each shorter than 64 KiB, become
			      * one work request */
	WEIR_BATCHING_HYBRID, /* both */
};

/* How much may be in flight on the NIC; the first session on it decides. */
enum weir_admission {
	WEIR_ADMISSION_DEFAULT, /* static */
	WEIR_ADMISSION_STATIC, /* window_bytes */
	WEIR_ADMISSION_DELAY, /* up to window_bytes, by how long completions take */
	WEIR_ADMISSION_KNEE, /* up to window_bytes, by where more brings no more throughput */
};

/*
 * How small writes go: by RDMA, or unloaded, that is into a buffer which the donor's CPU copies
 * from. That is faster where the donor's NIC would have to look up where the page lies. Either way
 * they complete, fail and keep their order alike.
 */
enum weir_unloading {
	WEIR_UNLOAD_DEFAULT, /* off */
	WEIR_UNLOAD_OFF,
	WEIR_UNLOAD_ALWAYS, /* all that fit a slot */
	WEIR_UNLOAD_HINTS, /* those said to be WEIR_COLD */
	WEIR_UNLOAD_FREQUENCY, /* those to pages that are written seldom */
	WEIR_UNLOAD_MEASURED, /* the same, while that proves faster */
};

/* How completions are waited for, by the session's thread and by the blocking calls. */
enum weir_polling {
	WEIR_POLLING_DEFAULT, /* the preset's */
	WEIR_POLLING_ADAPTIVE, /* poll for as long as it pays, then sleep until an event */
	WEIR_POLLING_BUSY, /* never sleep */
	WEIR_POLLING_EVENT, /* sleep, and have each completion raise an event */
	WEIR_POLLING_EVENT_BATCH, /* take up to poll_wcs_max after each event, then sleep */
	WEIR_POLLING_HYBRID, /* poll while there is something, then sleep */
	WEIR_POLLING_SCQ, /* completion queues of the NIC, shared by all sessions of the process
			   * that choose this, and one thread for them all, which never sleeps;
			   * callers that wait do */
};

/* How requests reach memory that nobody registered: see struct weir_iov. */
enum weir_mr {
	WEIR_MR_DEFAULT, /* the preset's */
	WEIR_MR_AUTO, /* whichever is cheaper for its length; what is to be copied while all buffers
		       * are in use is registered */
	WEIR_MR_PRE, /* copied through registered buffers: while all are in use a call that submits
		      * is refused with -EAGAIN, and a blocking one waits; only what is longer than
		      * 512 KiB is registered */
	WEIR_MR_DYN, /* registered while the request is under way */
};

#define WEIR_RETRIES_NONE (~0u) /* what was lost ends with -ECONNRESET, a read too */

/* How to open a session; zero means the default everywhere. */
struct weir_session_options {
	const struct weir_key *key; /* NULL: the donor wants none (loopback only); kept until
				     * close */
	const char *device; /* only this verbs device, such as "rxe0"; NULL: what the route says */
	unsigned int channels; /* QPs, 1 to 16, or to 15 if it unloads; default 2 */
	unsigned int depth; /* WRs in flight a channel; default 128 */
	uint64_t window_bytes; /* in flight on the NIC, over all its sessions; default 8 MiB. The
				* first session on a NIC decides. */
	uint64_t timeout_ns; /* of a request, and of connecting; default 10 s */
	uint64_t keepalive_ns; /* without a work request until the donor's host is asked for, at
				* least 1 ms; UINT64_MAX: never; default 10 s */
	unsigned int retries; /* times a read, or a write to an exclusive region, may be posted
			       * again after a channel failed, 1 to 255, or WEIR_RETRIES_NONE;
			       * default 3 */
	enum weir_preset preset;
	enum weir_batching batching;
	unsigned int chain_max; /* work requests with one doorbell, 1 to 32; default 32 */
	size_t fragment_bytes; /* a work request is at most this long, 4 KiB to 1 GiB; default 1
				* MiB, and never longer than the smallest window */
	enum weir_admission admission;
	enum weir_mr mr;
	size_t pool_bytes_max; /* of buffers for what is copied, at least 4 MiB; default 16 MiB, and
				* 64 MiB with WEIR_MR_PRE. They are made 4 MiB at a time, when
				* they are wanted, and stay until the session is closed */
	size_t mr_dyn_bytes; /* auto: from this length on it is registered; default: measured when
			      * the process first uses the device */
	enum weir_polling polling;
	enum weir_unloading unload;
	unsigned int unload_hot_pages; /* 4 KiB pages that the donor's NIC has room for: writes to
					* as many, those written most, are not unloaded; default
					* 4096 */
	unsigned int cqs; /* completion queues that the channels share, 1 to channels; default: one
			   * each. WEIR_POLLING_SCQ: that the sessions share, 1 to 16; default 1.
			   * The first session on a NIC decides */
	unsigned int comp_vectors; /* completion queues are spread over so many of the device's
				    * completion vectors, its interrupts; default: all */
	unsigned int poll_wcs_max; /* completions taken from a CQ at a time, 1 to 32; default 32 */
	unsigned int poll_retries_max; /* adaptive: empty polls in a row before sleeping; default:
					* as many as pay, learned from the load */
	unsigned int poll_percent_max; /* adaptive: of its time the session's thread may poll for
					* nothing, 1 to 100; default 90. Blocking calls may
					* always */
	bool no_thread; /* weir starts no thread: the caller drives by weir_session_process(). Only
			 * a channel that broke has one start, to connect it anew */

	weir_message_fn *on_message; /* messages the donor sends unasked; may be NULL */
	void (*on_down)(void *arg, int status); /* once, when the last channel is gone; from the
						 * session's thread, or weir_session_process()
						 * without one; may be NULL */
	void *arg; /* for both */
};

/**
 * weir_session_open() - connect to a donor and prove the key, mutually
 * @donor: "host", "host:port", "[v6]:port"; the port defaults to WEIR_PORT_DEFAULT
 * @options: NULL for defaults; copied
 * @session: receives the session; close it with weir_session_close()
 * @error: may be NULL
 *
 * Blocks up to the timeout. Context: any thread.
 * Return: 0; -EINVAL malformed name or option; -ENODEV no verbs device reaches the donor;
 * -EHOSTUNREACH; -ECONNREFUSED nobody listens; -EAGAIN the donor has no room just now;
 * -EKEYREJECTED either side could not prove the key; -EPROTONOSUPPORT the donor speaks another
 * version; -EPROTO it answered nonsense; -EDQUOT; -ETIMEDOUT; -ENOMEM (also locked-memory limit:
 * the text says so).
 */
int weir_session_open(const char *donor, const struct weir_session_options *options,
		      struct weir_session **session, struct weir_error *error);

/**
 * weir_session_close() - end a session
 *
 * What is in flight ends with -ECANCELED or its real outcome; every callback has returned when
 * this returns. Regions, memories and pools of the session that have not been released by then
 * are released with it.
 * Context: any thread but a callback, of this session or another: it waits.
 */
void weir_session_close(struct weir_session *session);

/**
 * weir_session_fd() - a descriptor that is readable when weir_session_process() has work
 *
 * For poll/epoll. Owned by the session. What was done when it was submitted has been told by then,
 * and raises nothing here: look into queues before you sleep on it, or sleep on their descriptors
 * too.
 */
int weir_session_fd(const struct weir_session *session);

/**
 * weir_session_process() - poll for completions and messages, and run their callbacks
 *
 * Needed only with no_thread; allowed from any thread at any time: blocking helpers call it
 * themselves instead of waiting to be woken.
 * Return: number of events handled, 0 if there was nothing.
 */
int weir_session_process(struct weir_session *session);

struct weir_session_info {
	char device[64]; /* verbs device the bytes take, such as "softnic0" */
	char peer[64]; /* address:port of the donor */
	unsigned int channels; /* alive now */
	enum weir_preset preset; /* this and the next three: what was chosen, by the options or for
				  * them */
	enum weir_batching batching;
	enum weir_mr mr;
	enum weir_polling polling;
	uint64_t incarnation; /* of the donor: changes when it starts anew */
	uint64_t quota_bytes; /* what this client may hold */
	uint64_t requests, work_requests, doorbells, completions, events; /* so far */
	uint64_t merged; /* requests that shared a work request with others */
	uint64_t split; /* requests that were cut into several work requests */
	uint64_t chains; /* doorbells for more than one work request */
	uint64_t window_waits; /* times the window was full */
	size_t mr_dyn_bytes; /* from this length on memory is registered rather than copied, by the
			      * options or as measured; 0 with WEIR_MR_DYN */
	uint64_t pre, dyn; /* requests whose memory was copied, and those whose was registered */
	uint64_t inlined; /* work requests posted with their data */
	uint64_t empty_polls, arms, sleeps; /* of the session's thread and of blocking calls */
	uint64_t bytes_read, bytes_written, retries, errors, reconnects;
	uint64_t small, hot; /* writes that could be unloaded; of them, those to pages written
			      * often */
	uint64_t unloaded, unload_full; /* those that the donor's CPU copied; that found no room */
	uint64_t pages; /* of 4 KiB that small writes went to lately, where the way of unloading
			 * counts */
};

/* Context: any thread. */
void weir_session_info(const struct weir_session *session, struct weir_session_info *info);

/* What a donor tells its clients of itself. */
struct weir_donor_state {
	uint64_t incarnation;
	uint64_t memory_bytes, lent_bytes; /* in all, to all */
	uint64_t quota_bytes, held_bytes; /* this client's */
	unsigned int clients, regions;
};

/**
 * weir_session_donor_state() - ask the donor how it is
 *
 * Blocks for one message there and back. Context: any thread but a callback.
 * Return: 0; -ENOTCONN; -ECONNRESET; -ETIMEDOUT; -EPROTO it answered nonsense.
 */
int weir_session_donor_state(struct weir_session *session, struct weir_donor_state *state);

/**
 * weir_session_verbs() - the plain verbs objects of one channel, for what weir does not do
 *
 * They are the session's. The QP's and CQ's own queues belong to weir; a user's traffic
 * wants a QP of its own on @pd. A channel that breaks gets another QP, and the old one is gone
 * then;
 * @pd and @cq stay until the session is closed.
 * Return: 0, or -EINVAL if there is no such channel, or it is not up.
 */
int weir_session_verbs(struct weir_session *session, unsigned int channel, struct ibv_pd **pd,
		       struct ibv_cq **cq, struct ibv_qp **qp);

#ifdef __cplusplus
}
#endif
#endif
