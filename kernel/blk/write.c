// SPDX-License-Identifier: GPL-2.0-only
/* One order at all replicas, and for whoever fills one: decided and pushed under one lock. */
#include "kernel/blk/command.h"
#include "kernel/blk/local.h"
#include "kernel/blk/memory.h"
#include "kernel/blk/sums.h"
#include "kernel/blk/trace.h"

/* Each leg has a list of its own, since each may be mapped for a device of its own. */
static void copy_lists(struct weir_command *command, u8 legs, unsigned int nents)
{
	const struct scatterlist *sgl = command->leg[0].sgl;
	u8 i;

	for (i = 1; i < legs; i++)
		memcpy(command->leg[i].sgl, sgl, nents * sizeof(*sgl));
}

/* Prepares those of @slots that there is a device for. Return: they, or -ENOMEM: none. */
static int prepare_legs(struct weir_blk_volume *volume, struct request *rq, u8 slots,
			unsigned int nents)
{
	struct weir_command *command = blk_mq_rq_to_pdu(rq);
	u8 slot, ready = 0;

	for (slot = 0; slot < volume->core.slots; slot++) {
		int rc;

		if (!(slots & 1 << slot))
			continue;
		rc = weir_leg_prepare(&command->leg[slot], rq, slot, WEIR_OP_WRITE, nents);
		if (rc == -ENOMEM)
			break;
		if (!rc)
			ready |= 1 << slot;
	}
	if (slot == volume->core.slots)
		return ready;
	for (slot = 0; slot < volume->core.slots; slot++) {
		if (ready & 1 << slot)
			weir_io_forget(&command->leg[slot].io);
	}
	return -ENOMEM;
}

/* With the lock held. Return: the legs that are pushed, or an errno. */
static int push(struct weir_blk_volume *volume, struct request *rq, unsigned int nents)
{
	struct weir_command *command = blk_mq_rq_to_pdu(rq);
	u8 slots = weir_volume_writable(&volume->core, command->extent), slot;
	int ready;

	if (!slots)
		return -EIO;
	ready = prepare_legs(volume, rq, slots, nents);
	if (ready < 0)
		return ready;
	weir_volume_write(&volume->core, &command->write, command->extent, command->page,
			  command->pages, command->sums);
	atomic_set(&command->failed, slots & ~ready);
	trace_weir_blk_submit(rq, ready);
	/* One more, so that it does not end before all are pushed. */
	atomic_set(&command->legs, 1 + hweight8(ready));
	for (slot = 0; slot < volume->core.slots; slot++) {
		if (ready & 1 << slot)
			weir_io_push(&command->leg[slot].io);
	}
	return ready;
}

blk_status_t weir_write_queue(struct request *rq, unsigned int nents)
{
	struct weir_blk_volume *volume = weir_volume_of(rq);
	struct weir_command *command = blk_mq_rq_to_pdu(rq);
	int ready;
	u8 slot;

	copy_lists(command, volume->core.slots, nents);
	weir_sums_make(command->leg[0].sgl, command->pages, command->sums);
	spin_lock_bh(&volume->lock);
	ready = weir_memory_provide(volume, command->extent);
	if (!ready)
		ready = push(volume, rq, nents);
	spin_unlock_bh(&volume->lock);
	if (ready == -EAGAIN && time_after(jiffies, command->give_up))
		ready = -ENOSPC;
	if (ready < 0)
		return weir_command_status(ready);
	for (slot = 0; slot < volume->core.slots; slot++) {
		if (ready & 1 << slot)
			weir_session_serve(command->leg[slot].io.session);
	}
	if (atomic_dec_and_test(&command->legs))
		blk_mq_complete_request(rq);
	return BLK_STS_OK;
}

int weir_write_end(struct request *rq)
{
	struct weir_blk_volume *volume = weir_volume_of(rq);
	struct weir_command *command = blk_mq_rq_to_pdu(rq);
	u8 failed = atomic_read(&command->failed);
	int rc;

	spin_lock_bh(&volume->lock);
	rc = weir_volume_write_end(&volume->core, &command->write, failed);
	spin_unlock_bh(&volume->lock);
	if (failed)
		weir_blk_volume_kick(volume);
	weir_local_kick(volume->local);
	if (wq_has_sleeper(&volume->settled))
		wake_up(&volume->settled);
	return rc;
}

blk_status_t weir_zero(struct request *rq)
{
	struct weir_blk_volume *volume = weir_volume_of(rq);
	bool keep = req_op(rq) == REQ_OP_WRITE_ZEROES && (rq->cmd_flags & REQ_NOUNMAP);

	trace_weir_blk_submit(rq, 0);
	weir_memory_zero(volume, (u64)blk_rq_pos(rq) << SECTOR_SHIFT, blk_rq_bytes(rq), keep);
	blk_mq_end_request(rq, BLK_STS_OK);
	return BLK_STS_OK;
}
