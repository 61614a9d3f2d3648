/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of the service share: its state, and an input, which runs once as a request and
 * again from the log.
 *
 * Context: one thread at a time, as service.h says.
 */
#ifndef WEIR_FSD_JOURNAL_STATE_H
#define WEIR_FSD_JOURNAL_STATE_H

#include "fsd/journal/calls.h"
#include "fsd/journal/layout.h"
#include "fsd/journal/log.h"
#include "fsd/journal/service.h"

#define FSD_RECORD_ALIGN 8

enum fsd_record_kind { FSD_RECORD_REQUEST = 1, FSD_RECORD_LEAVE, FSD_RECORD_LATE };

/*
 * An input in the log, little-endian; its message follows, and zeroes up to FSD_RECORD_ALIGN. Of
 * FSD_RECORD_LATE, @number is the call that the mount names.
 */
struct fsd_record {
	uint32_t kind, length;
	uint64_t mount, number, answered;
	struct wire_fs_time now;
	int32_t status; /* of the reply; 1: the call waited. So a wrong replay is noticed */
	uint32_t zero;
};
static_assert(sizeof(struct fsd_record) == 56, "record");

/**
 * struct fsd_service - a file server
 * @fsd: its state
 * @log: since the checkpoint of number @generation
 * @batch: records for the log, until the commit
 * @has_freed: the next request must wait for the commit
 * @replays: the inputs come from the log
 * @now: time of the running request
 * @error: memory was short in the middle of a request: the state is undefined
 */
struct fsd_service {
	struct fsd_service_host host;
	struct fsd_layout layout;
	struct fsd *fsd;
	struct fsd_calls calls;
	struct fsd_log log;
	uint64_t generation;
	struct fsd_bytes batch;
	bool has_freed, replays;
	struct wire_fs_time now;
	int error;
	uint64_t replayed, inputs, batches, checkpoints;
};

/* Whether the message asks for @op. */
bool fsd_message_is(const void *message, size_t length, enum wire_fs_op op);

/* Whether the call may take as long as another holds a lock. */
bool fsd_message_awaits_lock(const void *message, size_t length);

/* Return: a new mount, with a client of the state; NULL: too many, or memory is short. */
struct fsd_mount *fsd_service_add_mount(struct fsd_service *s, uint64_t id);

/* Ends the mount's client, opens and locks. */
void fsd_service_remove_mount(struct fsd_service *s, struct fsd_mount *mount);

/* Runs the call at the time s->now. */
void fsd_service_run(struct fsd_service *s, struct fsd_call *call, const void *message,
		     size_t length);

/* Return: the status of the reply of a call that ran; 1: the call waits. */
int fsd_call_reply_status(const struct fsd_call *call);

/* Makes the state a checkpoint, and goes on from its image. Return: 0 or an errno. */
int fsd_service_checkpoint(struct fsd_service *s);

/* Makes a file system on an empty volume. Return: as fsd_service_open(). */
int fsd_service_make_files(struct fsd_service *s, uint32_t uid, uint32_t gid);

/* Loads the checkpoint and repeats the log. Return: as fsd_service_open(). */
int fsd_service_load_files(struct fsd_service *s);

#endif
