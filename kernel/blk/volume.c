// SPDX-License-Identifier: GPL-2.0-only
#include <linux/key.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kernel/blk/request.h"
#include "kernel/blk/resync.h"
#include "kernel/blk/local.h"
#include "kernel/blk/target.h"
#include "kernel/blk/memory.h"
#include "kernel/blk/pool/pool.h"
#include "kernel/blk/volume.h"

#define MAINTAIN_MS 1000
#define WAITERS_MS 20 /* period of checks on behalf of memory waiters */

static struct workqueue_struct *maintain_wq, *waiters_wq, *resync_wq;

void weir_blk_volume_kick(struct weir_blk_volume *volume)
{
	mod_delayed_work(maintain_wq, &volume->maintain, 0);
}

void weir_blk_volume_kick_soon(struct weir_blk_volume *volume)
{
	mod_delayed_work(maintain_wq, &volume->maintain, msecs_to_jiffies(WAITERS_MS));
}

void weir_blk_volume_memory_came(struct weir_blk_volume *volume)
{
	mod_delayed_work(waiters_wq, &volume->resume, 0);
}

void weir_blk_volume_wait_for_memory(struct weir_blk_volume *volume)
{
	queue_delayed_work(waiters_wq, &volume->resume, msecs_to_jiffies(WAITERS_MS));
	weir_blk_volume_kick(volume);
}

static void resume(struct work_struct *work)
{
	struct weir_blk_volume *volume =
		container_of(to_delayed_work(work), struct weir_blk_volume, resume);
	bool any;

	weir_blk_write_resume(volume);
	spin_lock_bh(&volume->lock);
	any = !list_empty(&volume->memory_waiters);
	spin_unlock_bh(&volume->lock);
	if (any)
		queue_delayed_work(waiters_wq, &volume->resume, msecs_to_jiffies(WAITERS_MS));
}

static u64 bytes_at(const struct weir_blk_volume *volume, u8 donor)
{
	u64 bytes = volume->pool ? (u64)volume->core.pages << PAGE_SHIFT :
				   min(1ull << volume->shift, volume->bytes);

	return bytes * weir_extents_donor_extents(&volume->core, donor);
}

void weir_blk_volume_facts(struct weir_blk_volume *volume, struct weir_blk_facts *facts)
{
	struct kweir_stat stat;
	u8 i;

	memset(facts, 0, sizeof(*facts));
	facts->failovers = atomic64_read(&volume->failovers);
	facts->mismatches = atomic64_read(&volume->mismatches);
	weir_blk_local_facts(volume->local, facts);
	mutex_lock(&volume->sessions);
	for (i = 0; i < volume->core.nr_donors; i++) {
		const struct weir_blk_target *target = &volume->target[i];
		u32 state = KWEIR_SESSION_LOST;

		weir_blk_target_add_stat(&facts->stat, &target->past);
		if (target->session) {
			kweir_session_stat(target->session, &stat);
			state = stat.state;
			weir_blk_target_add_stat(&facts->stat, &stat);
		}
		if (volume->pool && !READ_ONCE(target->incarnation))
			continue;
		facts->donor[facts->nr_donors].address = target->address;
		facts->donor[facts->nr_donors].state = state;
		facts->donor[facts->nr_donors++].number = i;
	}
	mutex_unlock(&volume->sessions);
	spin_lock_bh(&volume->lock);
	facts->census = weir_extents_census(&volume->core);
	facts->bytes_copied = volume->core.copied << PAGE_SHIFT;
	facts->bytes_repaired = volume->core.repaired << PAGE_SHIFT;
	for (i = 0; i < facts->nr_donors; i++)
		facts->donor[i].bytes = bytes_at(volume, facts->donor[i].number);
	spin_unlock_bh(&volume->lock);
}

static u64 extents_kept(const struct weir_blk_volume *volume, const struct kweir_stat *stat)
{
	return stat->keep_bytes == U64_MAX ? WEIR_EXTENTS_KEEPS_ALL :
					     stat->keep_bytes >> volume->shift;
}

static enum weir_extents_donor_state donor_state(enum kweir_session_state state)
{
	if (state == KWEIR_SESSION_LOST)
		return WEIR_EXTENTS_DONOR_DOWN;
	return state == KWEIR_SESSION_UP ? WEIR_EXTENTS_DONOR_UP : WEIR_EXTENTS_DONOR_SLOW;
}

/* Passes the state of the target's session to the core. */
static void check_session(struct weir_blk_volume *volume, u8 number)
{
	struct weir_blk_target *target = &volume->target[number];
	struct kweir_stat stat;

	if (!target->session)
		return;
	kweir_session_set_answer_timeout(target->session, weir_blk_volume_answer_ms(volume));
	kweir_session_stat(target->session, &stat);
	spin_lock_bh(&volume->lock);
	weir_extents_donor_keeps(&volume->core, number, extents_kept(volume, &stat));
	weir_borrow_session(&volume->borrow, number, donor_state(stat.state));
	spin_unlock_bh(&volume->lock);
}

static void maintain_loans(struct weir_blk_volume *volume)
{
	u8 i;

	for (i = 0; i < volume->core.nr_donors; i++)
		check_session(volume, i);
	weir_blk_memory_round(volume, WEIR_BORROW_FORGET, WEIR_BORROW_RETURN, NULL);
	queue_work(resync_wq, &volume->resync_work); /* which waits for no silent donor */
	weir_blk_local_kick(volume->local);
	weir_blk_memory_round(volume, WEIR_BORROW_REPLACE, WEIR_BORROW_RETRY, NULL);
}

static void maintain(struct work_struct *work)
{
	struct weir_blk_volume *volume =
		container_of(to_delayed_work(work), struct weir_blk_volume, maintain);
	unsigned int flags;

	if (READ_ONCE(volume->closing))
		return;
	flags = memalloc_noio_save();
	mutex_lock(&volume->maintenance);
	if (volume->pool) {
		weir_blk_pool_maintain(volume);
		queue_work(resync_wq, &volume->resync_work);
	} else {
		maintain_loans(volume);
	}
	mutex_unlock(&volume->maintenance);
	memalloc_noio_restore(flags);
	queue_delayed_work(maintain_wq, &volume->maintain, msecs_to_jiffies(MAINTAIN_MS));
}

/* A donor named twice would keep two replicas, and lose both. */
static int check_donors(const struct weir_blk_setup *setup, struct kweir_error *error)
{
	u32 i, j;

	if (setup->nr_donors < 1 || setup->nr_donors > WEIR_BLK_DONORS_MAX)
		return kweir_fail(error, -EINVAL, "%u donors: 1 to %u", setup->nr_donors,
				  WEIR_BLK_DONORS_MAX);
	for (i = 0; i < setup->nr_donors; i++) {
		for (j = 0; j < i; j++) {
			if (!memcmp(&setup->donor[i], &setup->donor[j], sizeof(setup->donor[i])))
				return kweir_fail(error, -EINVAL,
						  "%pISpc is named twice: name each donor once",
						  &setup->donor[i]);
		}
	}
	return 0;
}

static int check_setup(const struct weir_blk_setup *setup, struct kweir_error *error)
{
	int rc = check_donors(setup, error);

	if (rc)
		return rc;
	if (!setup->bytes && !setup->name[0])
		return kweir_fail(error, -EINVAL, "how large? Give a size, or a region's name");
	if (!IS_ALIGNED(setup->bytes, PAGE_SIZE))
		return kweir_fail(error, -EINVAL, "%llu bytes are no multiple of %lu", setup->bytes,
				  PAGE_SIZE);
	if (setup->bytes > WEIR_BLK_VOLUME_BYTES_MAX)
		return kweir_fail(error, -EINVAL, "%llu bytes: at most %llu", setup->bytes,
				  WEIR_BLK_VOLUME_BYTES_MAX);
	if (setup->replicas < 1 || setup->replicas > WEIR_EXTENTS_REPLICAS_MAX)
		return kweir_fail(error, -EINVAL, "%u replicas: 1 to %u", setup->replicas,
				  WEIR_EXTENTS_REPLICAS_MAX);
	if (setup->replicas > setup->nr_donors)
		return kweir_fail(error, -EINVAL,
				  "%u replicas need as many donors, but there are %u",
				  setup->replicas, setup->nr_donors);
	if (setup->name[0] && setup->nr_donors > 1)
		return kweir_fail(error, -EINVAL, "a region with a name is at one donor");
	if (setup->name[0] && setup->encrypt)
		return kweir_fail(error, -EINVAL,
				  "a region with a name outlives the key of this encryption");
	if (setup->name[0] && setup->local)
		return kweir_fail(error, -EINVAL, "a region with a name has no local disk");
	return 0;
}

static void free_volume(struct weir_blk_volume *volume)
{
	unsigned int i;

	weir_blk_local_stop(volume->local);
	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++)
		weir_blk_target_close(&volume->target[i]);
	weir_blk_resync_free(volume->resync);
	weir_blk_local_close(volume->local);
	weir_blk_memory_fini(volume);
	weir_blk_pool_close(volume);
	weir_blk_cipher_close(&volume->cipher);
	key_put(volume->key);
	memzero_explicit(&volume->checksum_key, sizeof(volume->checksum_key));
}

static void set_reserve(struct weir_blk_volume *volume)
{
	u32 reserve = weir_extents_choose_reserve(weir_blk_memory_extents(volume, volume->bytes));

	if (volume->reserve_bytes)
		reserve = clamp_t(u64, volume->reserve_bytes >> volume->shift,
				  WEIR_EXTENTS_RESERVE_MIN, U32_MAX);
	spin_lock_bh(&volume->lock);
	volume->core.reserve = reserve;
	spin_unlock_bh(&volume->lock);
}

static int init_loans(struct weir_blk_volume *volume, const struct weir_blk_setup *setup,
		      struct kweir_error *error)
{
	int rc = weir_blk_memory_init(volume, setup);

	return rc ? kweir_fail(error, rc, "no memory for the volume (%d)", rc) : 0;
}

int weir_blk_volume_open(struct weir_blk_volume *volume, const struct weir_blk_setup *setup,
			 struct kweir_error *error)
{
	int rc = setup->pool ? 0 : check_setup(setup, error);
	u8 i;

	if (rc)
		return rc;
	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++)
		weir_blk_target_init(&volume->target[i], volume,
				     i < setup->nr_donors ? &setup->donor[i] : NULL);
	spin_lock_init(&volume->lock);
	mutex_init(&volume->sessions);
	mutex_init(&volume->maintenance);
	init_waitqueue_head(&volume->settled);
	INIT_DELAYED_WORK(&volume->maintain, maintain);
	INIT_WORK(&volume->resync_work, weir_blk_resync);
	INIT_LIST_HEAD(&volume->memory_waiters);
	INIT_DELAYED_WORK(&volume->resume, resume);
	strscpy(volume->name, setup->name, sizeof(volume->name));
	volume->bytes = setup->bytes;
	volume->reserve_bytes = setup->reserve_bytes;
	volume->options = setup->options;
	volume->options.timeout_ms = setup->options.timeout_ms ?: KWEIR_TIMEOUT_MS;
	volume->options.movable = !setup->pool && setup->nr_donors > setup->replicas;
	volume->key = setup->key ? key_get(setup->key) : NULL;
	rc = weir_blk_checksum_new_key(&volume->checksum_key);
	if (rc)
		kweir_fail(error, rc, "no random numbers for the volume (%d)", rc);
	else if (setup->pool)
		rc = weir_blk_pool_open(volume, setup, error);
	else
		rc = init_loans(volume, setup, error);
	if (!rc && setup->encrypt)
		rc = weir_blk_cipher_open(&volume->cipher, error);
	if (!rc)
		rc = weir_blk_resync_alloc(&volume->cipher, &volume->resync, error);
	if (!rc && setup->local)
		rc = weir_blk_local_open(volume, setup->local, error);
	for (i = 0; !rc && i < setup->nr_donors; i++)
		rc = weir_blk_target_open(&volume->target[i], error);
	if (!rc && !setup->pool)
		rc = weir_blk_memory_borrow(volume, error);
	if (rc) {
		weir_blk_volume_close(volume);
		return rc;
	}
	if (!setup->pool)
		set_reserve(volume);
	queue_delayed_work(maintain_wq, &volume->maintain, msecs_to_jiffies(MAINTAIN_MS));
	return 0;
}

int weir_blk_volume_resize(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error)
{
	unsigned int flags = memalloc_noio_save();
	int rc;

	mutex_lock(&volume->maintenance);
	rc = weir_blk_memory_resize(volume, bytes, error);
	if (!rc)
		set_reserve(volume);
	mutex_unlock(&volume->maintenance);
	memalloc_noio_restore(flags);
	return rc;
}

/* Ends all waits for donors, so that the works end. */
static void abandon_targets(struct weir_blk_volume *volume)
{
	u8 i;

	mutex_lock(&volume->sessions);
	WRITE_ONCE(volume->closing, true);
	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++)
		weir_blk_target_abandon(&volume->target[i]);
	mutex_unlock(&volume->sessions);
	wake_up(&volume->settled);
}

void weir_blk_volume_close(struct weir_blk_volume *volume)
{
	u8 i;

	abandon_targets(volume);
	cancel_delayed_work_sync(&volume->maintain);
	cancel_work_sync(&volume->resync_work);
	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++)
		cancel_delayed_work_sync(&volume->target[i].join);
	cancel_delayed_work_sync(&volume->maintain); /* the works may have kicked it */
	cancel_delayed_work_sync(&volume->resume);
	free_volume(volume);
}

int weir_blk_volumes_init(void)
{
	maintain_wq = alloc_workqueue("weir_maintain", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	waiters_wq = alloc_workqueue("weir_waiters", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	resync_wq = alloc_workqueue("weir_blk_resync", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!weir_blk_targets_init() && maintain_wq && waiters_wq && resync_wq)
		return 0;
	weir_blk_volumes_exit();
	return -ENOMEM;
}

void weir_blk_volumes_exit(void)
{
	weir_blk_targets_exit();
	if (resync_wq)
		destroy_workqueue(resync_wq);
	if (waiters_wq)
		destroy_workqueue(waiters_wq);
	if (maintain_wq)
		destroy_workqueue(maintain_wq);
}
