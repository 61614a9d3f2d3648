/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file server of a volume of files. Another server can go on with the volume.
 *
 * The server's inputs are the mounts' requests and the time of day. Before the server replies,
 * the volume's log has each input that may change the state. The next server loads the
 * checkpoint, repeats the inputs of the log, and so has the same state and all replies. A mount
 * without a reply repeats the call with the same number, and gets the reply of the first try.
 *
 * Batches. The host passes on requests, and each runs at once in memory. Then the host commits:
 * the bytes of files reach the volume, then the log gets the batch, then the server replies. A
 * request that frees blocks ends the batch. So no write overwrites blocks that the log still
 * needs.
 *
 *	bytes of files ---> log ---> replies
 *
 * Requests that change nothing need no log, but a server that has been replaced must not reply.
 * So a batch without changes reads a page of the volume first, and fails if another server has
 * the volume.
 *
 * A crash before the log's write loses requests without a reply. Bytes of such requests lie in
 * free blocks, past the end of a file, or in the target of an unfinished write.
 *
 * Checkpoints. When the log is full, the state becomes a checkpoint instead, and the server goes on
 * from this image (see fsd/image/image.h). The same happens at each opening.
 *
 * Context: one thread at a time. The host's functions run inside the calls below, and must not
 * call back.
 */
#ifndef WEIR_FSD_JOURNAL_SERVICE_H
#define WEIR_FSD_JOURNAL_SERVICE_H

#include "fsd/fsd.h"
#include "fsd/journal/disk.h"

struct fsd_service;

/**
 * struct fsd_service_host - services that the server needs
 * @disk: the volume; its errors end the server
 * @start: begins to move bytes. @to is that of the request, whose staging area has the bytes.
 *	*@status is set if this fails, before @settle returns. Pieces with a common byte take
 *	effect in order
 * @settle: waits for all bytes under way. An error ends the server
 * @reply: replies to a request; each @to gets one. @length 0: nobody knows the reply, and the mount
 *	must repeat the call
 * @wall: the time of day
 * @random: bytes that nobody can guess
 * @arg: passed to all but the disk's
 */
struct fsd_service_host {
	struct fsd_disk disk;
	void (*start)(void *arg, void *to, const struct fsd_data *piece, int *status);
	int (*settle)(void *arg);
	void (*reply)(void *arg, void *to, const void *reply, size_t length);
	void (*wall)(void *arg, struct wire_fs_time *now);
	void (*random)(void *arg, void *bytes, size_t length);
	void *arg;
};

/**
 * fsd_service_open() - make a file system on an empty volume, or go on with one
 * @host: copied
 * @uid, @gid: owner of a new root directory
 * @service: receives the server; the caller owes a fsd_service_close()
 *
 * Return: 0; -ENOSPC the volume is too small; -EPROTO not a file system; -EPROTONOSUPPORT the log
 * or the checkpoint is of another version; -EIO damaged; -ENOMEM; or of the disk.
 */
int fsd_service_open(const struct fsd_service_host *host, uint32_t uid, uint32_t gid,
		     struct fsd_service **service);

/*
 * Leaves a checkpoint and an empty log, which the next server may read though its log has another
 * version. Then the server must be closed. Return: as fsd_service_commit().
 */
int fsd_service_finish(struct fsd_service *service);

/* Frees the server. Nothing is written: the next server finds all that was committed. */
void fsd_service_close(struct fsd_service *service);

/**
 * fsd_service_request() - a message of a mount
 * @service: the server
 * @to: the host's, for its reply(), which is called once: before this returns, in a later call of
 *	this server, or in fsd_service_close(). If this returns an errno, it is not called: @to is
 *	the caller's again
 * @message: a wire_fs_call, then a message of wire/fs.h; any bytes. An unknown mount gets
 *	-ENOTCONN, except for FS_MOUNT, which gets -ENFILE if there are too many. After a message of
 *	a mount's connection, the host passes on none of an earlier connection of that mount
 * @length: bytes of @message
 *
 * Return: 1 if requests wait for fsd_service_commit(), 0 if none does; or an errno of the disk, if
 *	a batch had to be committed first: then the server must be closed.
 */
int fsd_service_request(struct fsd_service *service, void *to, const void *message,
			size_t length);

/* A mount is gone for good: frees opens and locks. Return: as fsd_service_request(). */
int fsd_service_leave(struct fsd_service *service, uint64_t mount);

/* Makes all requests so far durable, and replies. Return: 0; an error: close the server. */
int fsd_service_commit(struct fsd_service *service);

/* Calls @fn with each mount's number. */
void fsd_service_mounts(const struct fsd_service *service, void (*fn)(void *arg, uint64_t mount),
			void *arg);

struct fsd_service_info {
	struct fsd_info fsd;
	uint64_t replayed; /* inputs that the log had at the opening */
	uint64_t inputs, batches, checkpoints; /* since then */
	unsigned int mounts;
};

void fsd_service_info(const struct fsd_service *service, struct fsd_service_info *info);

#endif
