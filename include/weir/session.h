/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sessions: a client's connections to one donor, and the pipeline over them.
 *
 * A broken channel is reconnected while the donor lives and remembers the session, and for at most
 * the session's timeout. After the reconnect, reads in flight are posted again. Writes in flight to
 * exclusive regions are posted again if they have retries left. All other requests in flight end
 * with -ECONNRESET: their outcome is unknown. Calls without a reply end in the same way, at once.
 * Requests that were never posted are posted after the reconnect. A session is down once its donor
 * has ended or the reconnect has failed.
 *
 * After keepalive_ns without a work request, a session probes the donor's host on each channel with
 * an empty RDMA write, which costs the donor's CPU nothing. A host that vanishes silently is
 * detected within keepalive_ns to 2 * keepalive_ns, plus the transport's own retry time or
 * timeout_ns, whichever is shorter. The session is down timeout_ns later.
 *
 * A session in which no request completes for timeout_ns / 2 (up to an eighth longer) while other
 * sessions wait for room in the NIC's window breaks the channels concerned. If the donor has
 * answered nothing at all, the session breaks all its channels. Otherwise, requests to a dead host
 * would delay the requests queued behind them.
 */
#ifndef WEIR_SESSION_H
#define WEIR_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>
#include <weir/key.h>
#include <weir/message.h>
#include <weir/tuning.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_session;
struct ibv_pd;
struct ibv_cq;
struct ibv_qp;

#define WEIR_PORT_DEFAULT 7474

/* The preset: chooses batching, memory and polling where their value is DEFAULT. */
enum weir_preset {
	WEIR_PRESET_DEFAULT, /* rdmabox */
	WEIR_PRESET_RDMABOX, /* hybrid batching, auto memory, adaptive polling */
	WEIR_PRESET_SINGLE, /* plain verbs: single, auto, adaptive */
	WEIR_PRESET_ACCELIO, /* like Accelio: doorbell, dyn, event batch */
};

/*
 * How small writes travel: by RDMA or unloaded. An unloaded write goes into a buffer from which the
 * donor's CPU copies it. Unloading is faster if the page misses the translation cache of the
 * donor's NIC. Completion, failure and order are the same on both paths.
 */
enum weir_unloading {
	WEIR_UNLOAD_DEFAULT, /* off */
	WEIR_UNLOAD_OFF,
	WEIR_UNLOAD_ALWAYS, /* all writes that fit a slot */
	WEIR_UNLOAD_HINTS, /* writes hinted WEIR_COLD */
	WEIR_UNLOAD_FREQUENCY, /* writes to rarely written pages */
	WEIR_UNLOAD_MEASURED, /* like FREQUENCY, while measurements show a gain */
};

/* How the session's thread and blocking calls wait for completions. */
enum weir_polling {
	WEIR_POLLING_DEFAULT, /* from the preset */
	WEIR_POLLING_ADAPTIVE, /* poll while polling pays, then sleep until an event */
	WEIR_POLLING_BUSY, /* never sleep */
	WEIR_POLLING_EVENT, /* arm at each event before polling; sleep when no completion is left */
	WEIR_POLLING_EVENT_BATCH, /* take up to tuning->poll_wcs_max after an event, then sleep */
	WEIR_POLLING_HYBRID, /* poll while completions arrive, then sleep */
	/*
	 * Shared completion queues: all sessions of the process with this option use the NIC's
	 * common CQs and one polling thread, which never sleeps. Waiting callers sleep.
	 */
	WEIR_POLLING_SCQ,
};

#define WEIR_RETRIES_NONE (~0u) /* a lost request ends with -ECONNRESET, even a read */

/* How to open a session. Zero means the default in every field but the size. */
struct weir_session_options {
	size_t size; /* sizeof(struct weir_session_options) */
	/* NULL: the donor wants none (loopback only); kept until close */
	const struct weir_key *key;
	const char *device; /* use only this verbs device, such as "rxe0"; NULL: follow the route */
	unsigned int channels; /* QPs, 1 to 16 (15 with unloading); default 2 */
	enum weir_preset preset;
	enum weir_polling polling;
	enum weir_unloading unload;
	/*
	 * How often a read, or a write to an exclusive region, may be posted again after a channel
	 * failure: 1 to 255, or WEIR_RETRIES_NONE; default 3.
	 */
	unsigned int retries;
	/*
	 * Start no thread: the caller calls weir_session_process(). Only a broken channel starts a
	 * thread, to reconnect.
	 */
	bool no_thread;
	uint64_t timeout_ns; /* for each request and for connecting; default 10 s */
	/*
	 * Idle time before the session probes the donor's host, at least 1 ms; UINT64_MAX: never;
	 * default 10 s.
	 */
	uint64_t keepalive_ns;
	weir_message_fn *on_message; /* unsolicited messages from the donor; may be NULL */
	/*
	 * Runs once, when the last channel is gone, in the session's thread or, without a thread,
	 * in weir_session_process(). May be NULL. @status tells why:
	 *	-ENOTCONN      the donor has closed, and has said so;
	 *	-ECONNREFUSED  the donor's process has died;
	 *	-ESTALE        it has died and been started again, or has forgotten the session;
	 *	-EHOSTUNREACH, -ETIMEDOUT  its host or the link is lost;
	 *	-ECONNRESET    messages of unknown fate were lost with a channel.
	 */
	void (*on_down)(void *arg, int status);
	void *arg; /* passed to both callbacks */
	const struct weir_session_tuning *tuning; /* weir/tuning.h; NULL: defaults; copied */
	uint64_t encryption; /* enum weir_encryption */
	/*
	 * 32 bytes, copied: the public key of the only donor to trust; see weir_identity_public().
	 * NULL: the donors that the file of @key names, or else any that knows the key.
	 */
	const unsigned char *donor_identity;
};

/**
 * weir_session_open() - connect to a donor and prove the key mutually
 * @donor: "host", "host:port" or "[v6]:port"; the port defaults to WEIR_PORT_DEFAULT
 * @options: NULL for defaults; copied
 * @session: receives the session
 * @error: may be NULL
 *
 * The caller owes a weir_session_close(). Blocks up to the timeout.
 *
 * Context: Any thread.
 * Return: 0, or
 *	-EINVAL           a malformed name or option;
 *	-E2BIG            an option that this library does not know;
 *	-ENODEV           no verbs device reaches the donor;
 *	-EHOSTUNREACH     no route to the donor;
 *	-ECONNREFUSED     no process listens there;
 *	-EAGAIN           the donor has no room at present: try later;
 *	-EKEYREJECTED     either side failed to prove the key, the donor has another identity, or
 *			  one end requires encryption that the other lacks (@error says so);
 *	-EPROTONOSUPPORT  the donor speaks another version;
 *	-EPROTO           the donor sent an invalid reply;
 *	-EDQUOT           the donor has its maximum number of clients;
 *	-ETIMEDOUT        no reply in time, or no agreement on encryption (@error says so);
 *	-ENOMEM           out of memory, or over the locked-memory limit (@error says so).
 */
int weir_session_open(const char *donor, const struct weir_session_options *options,
		      struct weir_session **session, struct weir_error *error);

/**
 * weir_session_close() - end a session
 * @session: the session
 *
 * Requests in flight end with -ECANCELED or with their real outcome. All callbacks have returned
 * when this call returns. The call also releases all regions, memories and pools that the session
 * still holds.
 *
 * Context: Any thread outside callbacks of this or any other session; sleeps.
 */
void weir_session_close(struct weir_session *session);

/**
 * weir_session_fd() - a descriptor that is readable when weir_session_process() has work
 * @session: the session
 *
 * For poll() and epoll; the session owns the descriptor. A request that completes inside the
 * submitting call does not make the descriptor readable. Poll completion queues before sleeping on
 * this descriptor, or sleep on their descriptors too.
 *
 * Context: Any thread.
 * Return: the descriptor.
 */
int weir_session_fd(const struct weir_session *session);

/**
 * weir_session_process() - poll for completions and messages, and run their callbacks
 * @session: the session
 *
 * Required only with no_thread, but always allowed. Blocking calls poll in the same way while they
 * wait.
 *
 * Context: Any thread.
 * Return: number of events handled, 0 if none.
 */
int weir_session_process(struct weir_session *session);

/* A session's settings and counters. */
struct weir_session_info {
	size_t size; /* bytes that the library has written */
	char device[64]; /* verbs device in use, such as "softnic0" */
	char peer[64]; /* address:port of the donor */
	unsigned int channels; /* channels that are up */
	enum weir_preset preset; /* these four: as chosen by options or preset */
	enum weir_batching batching;
	enum weir_mr mr;
	enum weir_polling polling;
	uint64_t incarnation; /* of the donor; changes when the donor restarts */
	uint64_t quota_bytes; /* most memory that this client may hold */
	uint64_t requests, work_requests, doorbells, completions, events; /* totals since open */
	uint64_t merged; /* requests that shared a work request */
	uint64_t split; /* requests split into several work requests */
	uint64_t chains; /* doorbells for more than one work request */
	uint64_t window_waits; /* times the window was full */
	/*
	 * Memory of this length or more is registered rather than copied, from the options or as
	 * measured. 0 with WEIR_MR_DYN.
	 */
	size_t mr_dyn_bytes;
	uint64_t pre, dyn; /* requests with copied and with registered memory */
	uint64_t inlined; /* work requests posted with inline data */
	uint64_t empty_polls, arms, sleeps; /* by the session's thread and by blocking calls */
	uint64_t bytes_read, bytes_written, retries, errors, reconnects;
	/* Writes small enough to unload; those among @small that went to hot pages. */
	uint64_t small, hot;
	/* Writes that the donor's CPU copied, and writes that found no free slot. */
	uint64_t unloaded, unload_full;
	/* 4 KiB pages with recent small writes, in modes that count writes per page. */
	uint64_t pages;
	uint64_t unlocked; /* chains posted while other threads used the NIC */
	/*
	 * Cipher of the packets to the donor, such as "AES-256-GCM"; "none" in clear text; "" if
	 * both are on one host, or the device cannot tell.
	 */
	char encryption[24];
	int64_t down_status; /* as options.on_down gets it; 0: the session is not down */
};

/**
 * weir_session_info() - read a session's counters
 * @session: the session
 * @info: receives the counters
 * @size: sizeof(*@info)
 *
 * Context: Any thread.
 * Return: 0; -EINVAL @size is too small.
 */
int weir_session_info(const struct weir_session *session, struct weir_session_info *info,
		      size_t size);

/* What a donor reports about itself. */
struct weir_donor_state {
	size_t size; /* bytes that the library has written */
	uint64_t incarnation;
	uint64_t memory_bytes, lent_bytes; /* total memory, and memory lent to all clients */
	uint64_t quota_bytes, held_bytes; /* for this client */
	unsigned int clients, regions;
};

/**
 * weir_session_donor_state() - ask the donor for its state
 * @session: the session
 * @state: receives the state
 * @size: sizeof(*@state)
 *
 * Blocks for one round trip.
 *
 * Context: Any thread outside callbacks.
 * Return: 0, or
 *	-EINVAL      @size is too small;
 *	-ENOTCONN    the session is down;
 *	-ECONNRESET  the channel failed;
 *	-ETIMEDOUT   no reply in time;
 *	-EPROTO      the donor sent an invalid reply.
 */
int weir_session_donor_state(struct weir_session *session, struct weir_donor_state *state,
			     size_t size);

/**
 * weir_session_verbs() - the verbs objects of one channel, for uses that weir does not cover
 * @session: the session, which owns the objects
 * @channel: from 0
 * @pd: receives the protection domain; valid until the session closes
 * @cq: receives the completion queue; valid until the session closes
 * @qp: receives the queue pair; valid until the channel breaks
 *
 * The queues of the QP and the CQ belong to weir. For its own traffic, a caller creates another QP
 * on @pd. A broken channel gets a new QP when it reconnects.
 *
 * Context: Any thread.
 * Return: 0, or -EINVAL if the channel does not exist or is not up.
 */
int weir_session_verbs(struct weir_session *session, unsigned int channel, struct ibv_pd **pd,
		       struct ibv_cq **cq, struct ibv_qp **qp);

#ifdef __cplusplus
}
#endif
#endif
