// SPDX-License-Identifier: GPL-2.0-only
/* All replicas, and the resync of a replica, see writes in one order: decided and pushed under one
 * lock. */
#include "kernel/blk/request.h"
#include "kernel/blk/local.h"
#include "kernel/blk/memory.h"
#include "kernel/blk/pool/pool.h"
#include "kernel/blk/trace.h"

/* Each subio needs its own list, since each may be mapped for another device. */
static void copy_lists(struct weir_blk_request *command, u8 subios, unsigned int nents)
{
	const struct scatterlist *sgl = command->subio[0].sgl;
	u8 i;

	for (i = 1; i < subios; i++)
		memcpy(command->subio[i].sgl, sgl, nents * sizeof(*sgl));
}

/* Prepares the subios of @slots that have a device. Return: the prepared slots; or -ENOMEM, and
 * none. */
static int prepare_subios(struct weir_blk_volume *volume, struct request *rq, u8 slots,
			unsigned int nents)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	u8 slot, ready = 0;

	for (slot = 0; slot < volume->core.slots; slot++) {
		int rc;

		if (!(slots & 1 << slot))
			continue;
		rc = weir_blk_subio_prepare(&command->subio[slot], rq, slot, WEIR_OP_WRITE, nents);
		if (rc == -ENOMEM)
			break;
		if (!rc)
			ready |= 1 << slot;
	}
	if (slot == volume->core.slots)
		return ready;
	for (slot = 0; slot < volume->core.slots; slot++) {
		if (ready & 1 << slot)
			kweir_io_forget(&command->subio[slot].io);
	}
	return -ENOMEM;
}

/* With the lock held. Return: the subios pushed, or an errno. */
static int push_subios(struct weir_blk_volume *volume, struct request *rq, unsigned int nents)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	u8 slots = weir_extents_writable(&volume->core, command->extent), slot;
	int ready;

	if (!slots)
		return -EIO;
	ready = prepare_subios(volume, rq, slots, nents);
	if (ready < 0)
		return ready;
	weir_extents_write(&volume->core, &command->write, command->extent, command->page,
			   command->pages, command->sums);
	if (command->seal)
		weir_page_seal_written(&volume->core, &command->write, command->seal->seals);
	atomic_set(&command->failed, slots & ~ready);
	trace_weir_blk_submit(rq, ready);
	/* One extra reference, so that the request cannot end before all subios are pushed. */
	atomic_set(&command->subios, 1 + hweight8(ready));
	for (slot = 0; slot < volume->core.slots; slot++) {
		if (ready & 1 << slot)
			kweir_io_push(&command->subio[slot].io);
	}
	return ready;
}

/* Return: 0: under way; -EAGAIN: no memory at the target extent; or another errno. */
static int start_write(struct weir_blk_volume *volume, struct request *rq)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	int ready;
	u8 slot;

	spin_lock_bh(&volume->lock);
	ready = weir_blk_memory_provide(volume, command->extent);
	if (!ready)
		ready = push_subios(volume, rq, command->nents);
	spin_unlock_bh(&volume->lock);
	if (ready < 0)
		return ready;
	for (slot = 0; slot < volume->core.slots; slot++) {
		if (ready & 1 << slot)
			kweir_session_serve(command->subio[slot].io.session);
	}
	if (atomic_dec_and_test(&command->subios))
		blk_mq_complete_request(rq);
	return 0;
}

/*
 * A request waits here rather than in the block layer, where it would hold up later requests, and
 * where the waiting times of successive requests would add up.
 */
static void wait_for_memory(struct weir_blk_volume *volume, struct weir_blk_request *command)
{
	spin_lock_bh(&volume->lock);
	list_add_tail(&command->waiting, &volume->memory_waiters);
	spin_unlock_bh(&volume->lock);
}

void weir_blk_request_wait(struct weir_blk_volume *volume, struct weir_blk_request *command)
{
	wait_for_memory(volume, command);
	weir_blk_volume_wait_for_memory(volume);
}

blk_status_t weir_blk_write_queue(struct request *rq, unsigned int nents)
{
	struct weir_blk_volume *volume = weir_blk_volume_of(rq);
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	int rc;

	command->nents = nents;
	if (command->seal) {
		weir_blk_seal_queue(command->seal);
		return BLK_STS_OK;
	}
	copy_lists(command, volume->core.slots, nents);
	weir_blk_checksum_make(&volume->checksum_key, command->subio[0].sgl,
			       weir_blk_volume_page(volume, command->extent, command->page),
			       command->pages, command->sums);
	rc = start_write(volume, rq);
	if (rc != -EAGAIN)
		return rc ? weir_blk_request_status(rc) : BLK_STS_OK;
	weir_blk_request_wait(volume, command);
	return BLK_STS_OK;
}

static struct weir_blk_request *take_memory_waiter(struct weir_blk_volume *volume,
						   struct list_head *memory_waiters)
{
	struct weir_blk_request *command;

	spin_lock_bh(&volume->lock);
	command = list_first_entry_or_null(memory_waiters, struct weir_blk_request, waiting);
	if (command)
		list_del(&command->waiting);
	spin_unlock_bh(&volume->lock);
	return command;
}

/* A pool's donor may be back at any time, or be replaced: a request for it never gives up. */
static bool is_too_late(const struct weir_blk_volume *volume,
			const struct weir_blk_request *command)
{
	return !volume->pool && time_after(jiffies, command->give_up);
}

/* Under RCU like queue_rq(): the end of a session waits for its submitters. */
static int start_memory_waiter(struct weir_blk_volume *volume, struct weir_blk_request *command)
{
	struct request *rq = blk_mq_rq_from_pdu(command);
	int rc;

	rcu_read_lock();
	rc = req_op(rq) == REQ_OP_READ ? weir_blk_read_resume(rq) : start_write(volume, rq);
	rcu_read_unlock();
	if ((rc == -EAGAIN || rc == -ENOMEM) && is_too_late(volume, command))
		return -ENOSPC;
	return rc == -ENOMEM ? -EAGAIN : rc;
}

static void end_unstarted(struct request *rq, int rc)
{
	trace_weir_blk_complete(rq, 0, rc);
	blk_mq_end_request(rq, errno_to_blk_status(rc));
}

/* Fills in checksums, seals and the subios' lists. */
static int encrypt(struct weir_blk_volume *volume, struct weir_blk_request *command)
{
	struct scatterlist *sgl = command->subio[0].sgl;
	u64 nonce;
	u32 i;
	int rc;

	spin_lock_bh(&volume->lock);
	nonce = weir_page_seal_nonces(&volume->core, command->pages);
	spin_unlock_bh(&volume->lock);
	for (i = 0; i < command->pages; i++)
		command->sums[i] = weir_page_seal_sum(nonce + i);
	rc = weir_blk_seal_encrypt(command->seal, sgl,
				   weir_blk_volume_page(volume, command->extent, command->page),
				   command->pages, nonce);
	command->nents = weir_blk_seal_list(command->seal, sgl, command->pages);
	copy_lists(command, volume->core.slots, command->nents);
	return rc;
}

void weir_blk_write_encrypt(struct request *rq)
{
	struct weir_blk_volume *volume = weir_blk_volume_of(rq);
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	int rc = encrypt(volume, command) ? -EIO : start_memory_waiter(volume, command);

	if (rc == -EAGAIN)
		weir_blk_request_wait(volume, command);
	else if (rc)
		end_unstarted(rq, rc);
}

/* Many requests wait for the same extent: if a write finds no memory, later ones need not try. */
void weir_blk_write_resume(struct weir_blk_volume *volume)
{
	struct weir_blk_request *command;
	u32 failed = U32_MAX;
	LIST_HEAD(memory_waiters);

	spin_lock_bh(&volume->lock);
	list_splice_init(&volume->memory_waiters, &memory_waiters);
	spin_unlock_bh(&volume->lock);
	while ((command = take_memory_waiter(volume, &memory_waiters))) {
		struct request *rq = blk_mq_rq_from_pdu(command);
		bool is_read = req_op(rq) == REQ_OP_READ;
		int rc = -EAGAIN;

		if (command->extent != failed || is_read || is_too_late(volume, command))
			rc = start_memory_waiter(volume, command);
		if (rc == -EAGAIN) {
			failed = is_read ? failed : command->extent;
			wait_for_memory(volume, command);
		} else if (rc) {
			end_unstarted(rq, rc);
		}
		cond_resched();
	}
}

int weir_blk_write_end(struct request *rq)
{
	struct weir_blk_volume *volume = weir_blk_volume_of(rq);
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	u8 failed = atomic_read(&command->failed);
	int rc;

	spin_lock_bh(&volume->lock);
	if (volume->pool && weir_blk_pool_missed(volume, command->extent, failed)) {
		weir_extents_write_undo(&volume->core, &command->write, failed);
		rc = -EINPROGRESS;
	} else {
		rc = weir_extents_write_end(&volume->core, &command->write, failed);
	}
	spin_unlock_bh(&volume->lock);
	if (failed)
		weir_blk_volume_kick(volume);
	weir_blk_local_kick(volume->local);
	if (wq_has_sleeper(&volume->settled))
		wake_up(&volume->settled);
	return rc;
}

blk_status_t weir_blk_write_zeroes(struct request *rq)
{
	struct weir_blk_volume *volume = weir_blk_volume_of(rq);
	bool keep = req_op(rq) == REQ_OP_WRITE_ZEROES && (rq->cmd_flags & REQ_NOUNMAP);

	trace_weir_blk_submit(rq, 0);
	weir_blk_memory_zero(volume, (u64)blk_rq_pos(rq) << SECTOR_SHIFT, blk_rq_bytes(rq), keep);
	blk_mq_end_request(rq, BLK_STS_OK);
	return BLK_STS_OK;
}
