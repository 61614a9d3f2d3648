// SPDX-License-Identifier: GPL-2.0-only
/*
 * One lock covers noting the expected checksums and pushing the io. At the donor, the read follows
 * all writes pushed earlier and precedes all later writes. So the data and the checksums match.
 */
#include "kernel/blk/request.h"
#include "kernel/blk/local.h"
#include "kernel/blk/pool/pool.h"
#include "kernel/blk/trace.h"

#define BLANK 1
#define LOCAL 2

/*
 * With the lock held. Return: 0: pushed; BLANK: zeroes, without any donor; LOCAL: read the local
 * disk; -EAGAIN: wait for a pool's donor; or another errno.
 */
static int push_read(struct weir_blk_volume *volume, struct request *rq, unsigned int nents)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	u32 extent = command->extent;
	int rc;
	u8 slot;

	if (weir_extents_is_blank(&volume->core, extent, command->page, command->pages))
		return BLANK;
	for (;;) {
		rc = weir_extents_read(&volume->core, extent, command->tried, &slot);
		if (rc &&
		    weir_extents_local_has(&volume->core, extent, command->page, command->pages))
			return LOCAL;
		if (rc && volume->pool)
			return weir_blk_pool_must_read_again(volume, extent, command->wrong,
							     &command->tried);
		if (rc)
			return rc;
		rc = weir_blk_subio_prepare(&command->subio[0], rq, slot, WEIR_OP_READ, nents);
		if (!rc)
			break;
		weir_extents_read_end(&volume->core, extent, slot);
		if (rc != -ENODEV)
			return rc;
		command->tried |= 1 << slot;
	}
	weir_blk_volume_expect(volume, extent, command->page, command->pages, command->sums,
			       command->seal);
	atomic_set(&command->subios, 1);
	atomic_set(&command->failed, 0);
	trace_weir_blk_submit(rq, 1 << slot);
	kweir_io_push(&command->subio[0].io);
	return 0;
}

static void answer_blank(struct request *rq, unsigned int nents)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	struct scatterlist *sg;
	unsigned int i;

	for_each_sg(command->subio[0].sgl, sg, nents, i) memset(sg_virt(sg), 0, sg->length);
	trace_weir_blk_submit(rq, 0);
	blk_mq_end_request(rq, BLK_STS_OK);
}

/* Return: 0: under way or ended; -EAGAIN: wait for a pool's donor; or another errno. */
static int start_read(struct request *rq, unsigned int nents)
{
	struct weir_blk_volume *volume = weir_blk_volume_of(rq);
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	struct kweir_session *session;
	int rc;

	spin_lock_bh(&volume->lock);
	rc = push_read(volume, rq, nents);
	/* After the unlock the pushed io may end, and the command may belong to another request. */
	session = command->subio[0].io.session;
	spin_unlock_bh(&volume->lock);
	if (rc == BLANK)
		answer_blank(rq, nents);
	else if (rc == LOCAL)
		weir_blk_local_queue(volume->local, rq, nents);
	else if (!rc)
		kweir_session_serve(session);
	return min(rc, 0);
}

blk_status_t weir_blk_read_queue(struct request *rq, unsigned int nents)
{
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	int rc = start_read(rq, nents);

	if (rc != -EAGAIN)
		return rc ? weir_blk_request_status(rc) : BLK_STS_OK;
	command->nents = nents;
	weir_blk_request_wait(weir_blk_volume_of(rq), command);
	return BLK_STS_OK;
}

int weir_blk_read_resume(struct request *rq)
{
	return start_read(rq, ((struct weir_blk_request *)blk_mq_rq_to_pdu(rq))->nents);
}

int weir_blk_read_check(const struct weir_blk_volume *volume, struct weir_blk_request *command)
{
	u64 first = weir_blk_volume_page(volume, command->extent, command->page);
	struct scatterlist *sgl = command->subio[0].sgl;

	if (command->seal)
		return weir_blk_seal_decrypt(command->seal, sgl, first, command->pages,
					     command->sums);
	return weir_blk_checksum_check(&volume->checksum_key, sgl, first, command->pages,
				       command->sums) ?
		       0 :
		       -EBADMSG;
}

int weir_blk_read_end(struct request *rq)
{
	struct weir_blk_volume *volume = weir_blk_volume_of(rq);
	struct weir_blk_request *command = blk_mq_rq_to_pdu(rq);
	struct weir_blk_subio *subio = &command->subio[0];
	int rc = subio->io.status ?: weir_blk_read_check(volume, command);
	bool is_wrong = rc == -EBADMSG;

	spin_lock_bh(&volume->lock);
	weir_extents_read_end(&volume->core, command->extent, subio->slot);
	if (is_wrong)
		weir_extents_distrust(&volume->core, command->extent, subio->slot,
				      command->page, command->pages);
	spin_unlock_bh(&volume->lock);
	if (is_wrong) {
		command->wrong |= 1 << subio->slot;
		atomic64_inc(&volume->mismatches);
		pr_warn_ratelimited("weir: %pISpc returned other data than was written\n",
				    &volume->target[subio->donor].address);
		rc = -EIO;
	}
	if (!rc)
		return 0;
	command->tried |= 1 << subio->slot;
	weir_blk_volume_kick(volume);
	if (volume->core.slots == 1 && !volume->local)
		return rc;
	atomic64_inc(&volume->failovers);
	return -EAGAIN;
}
