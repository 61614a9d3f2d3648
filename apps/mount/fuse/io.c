/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * File data: one-sided reads and writes between the buffer of a FUSE request and the donor.
 *
 * A transfer is a state machine that never sleeps. It enters the gate of its file, then follows the
 * map: extents become reads and writes on the volume's chunks, holes become zeroes, and for unknown
 * ranges the transfer asks the donor. The thread that completes a step runs the next step, and the
 * last step replies to the kernel.
 */
#include <errno.h>
#include <string.h>

#include "apps/mount/fuse/io.h"
#include "apps/mount/fuse/kernel_cache.h"
#include "apps/mount/fuse/operation_span.h"
#include "apps/mount/fuse/privilege.h"
#include "apps/mount/sealed/sealed.h"

#define PIECES_MAX 16 /* pieces started at a time */
#define RPCS_MAX 8 /* requests for the same place before the donor's replies are judged invalid */

enum io_step { STEP_GO, STEP_END, STEP_ASK, STEP_ASK_VOLUME };

struct io_piece {
	struct weir_region *region; /* NULL: a hole */
	uint64_t offset; /* in the region */
	uint64_t length;
	char *data;
};

static bool is_hole(const struct io *io, uint64_t at, uint64_t *length)
{
	if (at >= io->hole && at < io->hole_end) {
		if (*length > io->hole_end - at)
			*length = io->hole_end - at;
		return true;
	}
	return sharing_knows(&io->mount->share, io->inode->holes_phase) &&
	       map_is_known(&io->inode->map, at, length);
}

/* Finds the next piece from io->done on. Inode's lock held. */
static enum io_step next_piece(struct io *io, struct io_piece *piece)
{
	uint64_t at = io->offset + io->done;
	uint64_t volume;

	piece->data = io->data + io->done;
	if (map_find(&io->inode->map, at, &volume, &piece->length)) {
		piece->region =
			volume_find(&io->mount->volume, volume, &piece->offset, &piece->length);
		if (!piece->region)
			return STEP_ASK_VOLUME;
	} else {
		piece->region = NULL;
		if (io->write || !is_hole(io, at, &piece->length))
			return STEP_ASK;
	}
	if (piece->length > io->length - io->done)
		piece->length = io->length - io->done;
	return STEP_GO;
}

/*
 * Another client has truncated the file, and the kernel's size is too large. Nothing but a request
 * of the kernel's own can lower it, so the append goes to the right place from here. The
 * kernel's pages are wrong from there on. Inode's lock held. Returns the new end.
 */
static uint64_t move_append(struct io *io)
{
	io->offset = io->inode->size;
	io->inode->pages = 0;
	io->moved = true;
	return io->offset + io->length;
}

/* Forgets holes that other clients may have filled since. Inode's lock held. */
static void doubt_holes(struct io *io)
{
	const struct sharing *share = &io->mount->share;
	struct inode *inode = io->inode;

	if (sharing_knows(share, inode->holes_phase))
		return;
	map_doubt_holes(&inode->map);
	inode->holes_phase = atomic_load(&share->phase);
	if (!sharing_knows(share, inode->holes_phase))
		inode->holes_phase = SHARING_NO_PHASE;
}

/* Determines the length, inside the gate. Inode's lock held. */
static enum io_step begin_io(struct io *io)
{
	struct inode *inode = io->inode;
	uint64_t end = io->offset + io->length;

	if (inode->map_unused && !sharing_is_alone(&io->mount->share))
		map_forget(&inode->map);
	inode->map_unused = false;
	doubt_holes(io);
	if (io->write) {
		if (io->append && io->offset > inode->size)
			end = move_append(io);
		inode->first_blocks = false;
		io->sequential = io->offset && io->offset == inode->next_offset;
		inode->next_offset = end;
	} else if (end > inode->size) {
		/* Other clients may have extended the file: ask the donor. */
		if (io->direct && !io->rpcs && !sharing_knows(&io->mount->share, inode->known))
			return STEP_ASK;
		io->length = io->offset < inode->size ? inode->size - io->offset : 0;
	}
	if (io->at_once && io->at_once->below_end)
		*io->at_once->below_end = io->length;
	io->begun = true;
	return STEP_GO;
}

/* Plans the next pieces, at least one, or returns the step to take instead. */
static enum io_step plan_pieces(struct io *io, struct io_piece *pieces, unsigned int *nr)
{
	enum io_step step = STEP_GO;

	*nr = 0;
	pthread_mutex_lock(&io->inode->lock);
	if (!io->begun)
		step = begin_io(io);
	while (step == STEP_GO && *nr < PIECES_MAX && io->done < io->length) {
		step = next_piece(io, &pieces[*nr]);
		if (step != STEP_GO)
			break;
		io->done += pieces[*nr].length;
		(*nr)++;
	}
	pthread_mutex_unlock(&io->inode->lock);
	if (*nr)
		io->rpcs = 0;
	if (*nr || step != STEP_GO)
		return *nr ? STEP_GO : step;
	return STEP_END;
}

static void piece_done(void *arg, int status)
{
	struct io *io = arg;

	if (status)
		atomic_store(&io->status, -EIO);
	if (atomic_fetch_sub(&io->pending, 1) == 1)
		io_run(io);
}

static int start_piece(struct io *io, const struct io_piece *piece)
{
	const struct weir_completion completion = {
		.done = piece_done,
		.arg = io,
		.timeout_ns = call_timeout_ns(io->mount),
	};
	const struct weir_iov iov = {
		.addr = piece->data,
		.length = piece->length,
		.memory = io->memory,
	};

	if (io->write)
		return weir_write_async(piece->region, piece->offset, &iov, 1, &completion, NULL);
	return weir_read_async(piece->region, piece->offset, &iov, 1, &completion, NULL);
}

/* A step begins: a call to the donor, or transfers. */
static void begin_part(struct io *io, enum wire_fs_op op)
{
	io->part = operation_span_call(io->mount, io->span, op);
}

static void end_part(struct io *io, int rc)
{
	weir_span_end(io->part, rc);
	io->part = NULL;
}

static void begin_transfer(struct io *io, const struct io_piece *pieces, unsigned int nr)
{
	uint64_t bytes = 0;

	begin_part(io, io->write ? FS_WRITE : FS_READ);
	for (unsigned int i = 0; io->part && i < nr; i++)
		bytes += pieces[i].region ? pieces[i].length : 0;
	weir_span_number(io->part, "weir.bytes", bytes);
}

/* Return: true if all pieces are complete already. */
static bool start_pieces(struct io *io, const struct io_piece *pieces, unsigned int nr)
{
	bool only_places = io->at_once && io->at_once->only_places;
	unsigned int settled = 1;

	if (!only_places)
		begin_transfer(io, pieces, nr);
	atomic_store(&io->pending, nr + 1);
	for (unsigned int i = 0; i < nr; i++) {
		if (only_places) {
			settled++;
		} else if (!pieces[i].region) {
			memset(pieces[i].data, 0, pieces[i].length);
			settled++;
		} else if (start_piece(io, &pieces[i])) {
			atomic_store(&io->status, -EIO);
			settled++;
		}
	}
	if (atomic_fetch_sub(&io->pending, settled) != settled)
		return false;
	end_part(io, atomic_load(&io->status));
	return true;
}

/* Leaves the gate before the reply, so that waiters need not wait for the kernel's copy. */
static void finish_io(struct io *io, int rc)
{
	struct mount *m = io->mount;
	const uint64_t ino = io->inode->ino;

	end_part(io, rc);
	if (io->at_once) {
		io->at_once->rc = rc;
		sem_post(&io->at_once->done);
		return;
	}
	if (!rc && io->write && !m->is_pool)
		inode_wrote(io->inode, io->offset + io->length, io->length);
	if (!rc)
		traffic_add(io->inode, io->write, io->ended, io->length);
	inode_leave(io->inode);
	weir_span_end(io->span, rc);
	if (io->ended) {
		io->ended(io, rc);
		return;
	}
	affinity_io_end(&m->caller);
	operation_time_end(&m->operation_time, io->write ? OPERATION_WRITE : OPERATION_READ,
			   io->begun_ns);
	if (rc)
		fuse_reply_err(io->req, -rc);
	else if (io->write)
		fuse_reply_write(io->req, io->length);
	else
		fuse_reply_buf(io->req, io->buffer->data, io->length);
	if (io->moved) /* only now, because the kernel holds the pages until the reply */
		kernel_cache_drop(m, ino, io->offset);
	buffer_put(m, io->buffer);
	mount_end(m);
}

static void transferred(void *arg, int status, const void *reply, size_t length)
{
	struct wire_fs_transferred out;
	struct io *io = arg;

	status = call_status(status, reply, length, sizeof(out) - sizeof(out.reply));
	if (!status) {
		memcpy(&out, reply, sizeof(out));
		if (io->write)
			inode_stored(io->inode, &out.attr);
		else
			io->length = out.length < io->length ? out.length : io->length;
	}
	finish_io(io, status);
}

/* The server of a pool's volume finds the place of the bytes, and the end of the file. */
static void run_at_server(struct io *io)
{
	struct wire_fs_transfer transfer = {
		.head = { .op = io->write ? FS_WRITE : FS_READ, .ino = io->inode->ino },
		.length = (uint32_t)io->length,
	};

	if (io->write) {
		pthread_mutex_lock(&io->inode->lock);
		(void)begin_io(io);
		pthread_mutex_unlock(&io->inode->lock);
	}
	transfer.offset = io->offset;
	begin_part(io, io->write ? FS_WRITE : FS_READ);
	if (!io->length)
		finish_io(io, 0);
	else if (link_call(&io->mount->link, &transfer, sizeof(transfer), io->buffer->data,
			   transferred, io))
		finish_io(io, -EIO);
}

void io_run(struct io *io)
{
	struct io_piece pieces[PIECES_MAX];
	enum io_step step;
	unsigned int nr;

	if (io->mount->is_pool) {
		run_at_server(io);
		return;
	}
	end_part(io, atomic_load(&io->status));
	do {
		step = atomic_load(&io->status) ? STEP_END : plan_pieces(io, pieces, &nr);
		if (step == STEP_ASK || step == STEP_ASK_VOLUME)
			if (io->rpcs++ == RPCS_MAX) {
				atomic_store(&io->status, -EIO);
				step = STEP_END;
			}
	} while (step == STEP_GO && start_pieces(io, pieces, nr));

	if (step == STEP_ASK) {
		begin_part(io, FS_MAP);
		map_rpc_fetch(io);
	} else if (step == STEP_ASK_VOLUME) {
		begin_part(io, FS_VOLUME);
		map_rpc_fetch_volume(io);
	} else if (step == STEP_END) {
		finish_io(io, atomic_load(&io->status));
	}
}

/* The transfer that this thread has just received and may block for, outside callbacks. */
static __thread struct io *beginning;

bool io_may_wait(const struct io *io)
{
	return io == beginning;
}

static void granted(struct rw_gate_pass *pass)
{
	io_run((struct io *)pass);
}

static void transfer(fuse_req_t req, size_t size, off_t offset, struct fuse_file_info *fi,
		     bool write)
{
	struct buffer *buffer = buffer_claim();
	struct io *io = (struct io *)buffer->head;
	bool entered;

	*io = (struct io){
		.pass = { .granted = granted },
		.mount = mount_of(req),
		.inode = file_inode(fi),
		.req = req,
		.buffer = buffer,
		.memory = mount_of(req)->loop.memory,
		.data = buffer->data,
		.write = write,
		.direct = fi->flags & O_DIRECT,
		.append = write && !fi->writepage && atomic_load(&mount_of(req)->share.shared) &&
			  (fi->flags & (O_APPEND | O_DIRECT)) == O_APPEND,
		.begun_ns = operation_time_begin(&mount_of(req)->operation_time),
		.offset = (uint64_t)offset,
		.length = size,
	};
	io->span = operation_span_io(io->mount, write, io->inode->ino, io->offset, size);
	mount_begin(io->mount);
	affinity_io_begin(&io->mount->caller);
	if (atomic_load(&io->inode->nr_grants))
		direct_knock(io->mount);
	pthread_mutex_lock(&io->inode->lock);
	/* Also with O_DIRECT, which a page fault of a mapping has, too. */
	io->inode->kernel_pages = true;
	io->inode->mapped |= write && fi->writepage;
	entered = rw_gate_enter(&io->inode->gate, &io->pass);
	pthread_mutex_unlock(&io->inode->lock);
	if (!entered)
		return;
	beginning = io;
	io_run(io);
	beginning = NULL;
}

int io_at_once(struct io_at_once *at_once)
{
	struct io io = {
		.mount = at_once->inode->mount,
		.inode = at_once->inode,
		.at_once = at_once,
		.span = operation_span(),
		.memory = at_once->memory,
		.data = at_once->data,
		.write = at_once->write,
		.offset = at_once->offset,
		.length = at_once->length,
	};

	sem_init(&at_once->done, 0, 0);
	beginning = &io;
	io_run(&io);
	beginning = NULL;
	while (sem_wait(&at_once->done))
		;
	sem_destroy(&at_once->done);
	return at_once->rc;
}

void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void)ino;
	if (size > MOUNT_TRANSFER_MAX)
		op_reply(req, -EIO);
	else if (mount_of(req)->sealed)
		sealed_read(req, size, (uint64_t)offset, fi);
	else
		transfer(req, size, offset, fi, false);
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
	      struct fuse_file_info *fi)
{
	(void)ino;
	(void)data; /* the data is in the claimed buffer */
	privilege_check(req, file_inode(fi));
	if (offset >= FS_BLOCK)
		inode_trim(file_inode(fi));
	if (mount_of(req)->sealed)
		sealed_write(req, size, (uint64_t)offset, fi);
	else
		transfer(req, size, offset, fi, true);
}
