// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>

#include "kernel/weir/io.h"
#include "kernel/weir/nic.h"
#include "kernel/weir/session.h"

#define RD_ATOMIC_MAX 16
#define WINDOW_WRS 4096

struct workqueue_struct *kweir_wq;

static DEFINE_MUTEX(nics_mutex);
static LIST_HEAD(nics);

/* Moves all pushed requests to their engines, in order. With the lock held. */
static void take(struct kweir_nic *nic)
{
	struct weir_inbox_node *node = weir_inbox_take(&nic->combine.inbox), *next;

	for (; node; node = next) {
		next = node->next;
		kweir_io_admit(container_of(node, struct kweir_io, node));
	}
}

/* Posts one chain of one session; another thread may take the lock for the next chain. */
static void serve_first(struct kweir_nic *nic)
{
	struct weir_list *link = weir_combine_next(&nic->combine);
	struct kweir_session *session;

	if (!link)
		return;
	session = weir_list_entry(link, struct kweir_session, active);
	if (kweir_session_pull(session))
		kweir_session_schedule(session);
}

/* Return: as weir_combine_may_leave(). */
static bool unlock_and_may_leave(struct kweir_nic *nic) __releases(&nic->lock)
{
	bool has_more = weir_combine_has_more(&nic->combine);

	if (!weir_list_is_empty(&nic->done))
		queue_work(kweir_wq, &nic->deliver);
	spin_unlock_bh(&nic->lock);
	return weir_combine_may_leave(&nic->combine.inbox, has_more);
}

void kweir_nic_lock(struct kweir_nic *nic) __acquires(&nic->lock)
{
	spin_lock_bh(&nic->lock);
	take(nic);
}

void kweir_nic_serve(struct kweir_nic *nic)
{
	while (spin_trylock_bh(&nic->lock)) {
		take(nic);
		serve_first(nic);
		if (unlock_and_may_leave(nic))
			return;
	}
}

void kweir_nic_unlock(struct kweir_nic *nic) __releases(&nic->lock)
{
	if (!unlock_and_may_leave(nic))
		kweir_nic_serve(nic);
}

/* With the lock held. */
static void take_done(struct kweir_nic *nic, struct weir_list *done)
{
	weir_list_init(done);
	while (!weir_list_is_empty(&nic->done)) {
		struct weir_list *link = nic->done.next;

		weir_list_del(link);
		weir_list_add_tail(done, link);
	}
}

static void complete_ios(struct weir_list *done)
{
	while (!weir_list_is_empty(done)) {
		struct weir_list *link = done->next;

		weir_list_del(link);
		kweir_io_complete(container_of(link, struct kweir_io, link));
	}
}

void kweir_nic_unlock_and_complete(struct kweir_nic *nic) __releases(&nic->lock)
{
	struct weir_list done;

	take_done(nic, &done);
	kweir_nic_unlock(nic);
	complete_ios(&done);
}

static void deliver(struct work_struct *work)
{
	struct kweir_nic *nic = container_of(work, struct kweir_nic, deliver);

	kweir_nic_lock(nic);
	kweir_nic_unlock_and_complete(nic);
}

void kweir_nic_push(struct kweir_nic *nic, struct kweir_io *io)
{
	weir_inbox_push(&nic->combine.inbox, &io->node);
}

/* Some devices allow fewer SGEs for reads. */
static u8 sge_max_of(const struct ib_device_attr *attrs)
{
	int max = attrs->max_send_sge;

	if (attrs->max_sge_rd && attrs->max_sge_rd < max)
		max = attrs->max_sge_rd;
	return clamp(max, WEIR_SGE_MAX, WEIR_WR_SGE_MAX);
}

/*
 * The core removes a device in two steps: first our client, later the connection manager. Between
 * the two a connection could still find the device, and no removal would be reported again.
 */
static struct ib_client client;

static bool device_is_present(struct ib_device *device)
{
	return ib_get_client_data(device, &client);
}

static struct kweir_nic *nic_make(struct ib_device *device, u64 window_bytes)
{
	struct kweir_nic *nic = kzalloc(sizeof(*nic), GFP_KERNEL);

	if (!nic)
		return ERR_PTR(-ENOMEM);
	nic->pd = ib_alloc_pd(device, 0);
	if (IS_ERR(nic->pd)) {
		int rc = PTR_ERR(nic->pd);

		kfree(nic);
		return ERR_PTR(rc);
	}
	nic->device = device;
	nic->sge_max = sge_max_of(&device->attrs);
	nic->rd_atomic = clamp(device->attrs.max_qp_rd_atom, 1, RD_ATOMIC_MAX);
	INIT_LIST_HEAD(&nic->sessions);
	spin_lock_init(&nic->lock);
	weir_window_init(&nic->window, window_bytes, WINDOW_WRS);
	weir_combine_init(&nic->combine);
	weir_list_init(&nic->done);
	INIT_WORK(&nic->deliver, deliver);
	list_add(&nic->entry, &nics);
	return nic;
}

static struct kweir_nic *nic_find(const struct ib_device *device)
{
	struct kweir_nic *nic;

	list_for_each_entry(nic, &nics, entry)
	{
		if (nic->device == device && nic->pd)
			return nic;
	}
	return NULL;
}

int kweir_nic_get(struct ib_device *device, struct kweir_session *session, u64 window_bytes,
		  struct kweir_nic **out)
{
	struct kweir_nic *nic;

	mutex_lock(&nics_mutex);
	nic = nic_find(device);
	if (!nic)
		nic = device_is_present(device) ? nic_make(device, window_bytes) : ERR_PTR(-ENODEV);
	if (!IS_ERR(nic)) {
		nic->users++;
		list_add_tail(&session->entry, &nic->sessions);
		smp_store_release(out, nic); /* pairs with the acquire in kweir_session_abandon() */
	}
	mutex_unlock(&nics_mutex);
	return PTR_ERR_OR_ZERO(nic);
}

/* The NIC is off the list. The device stays until the mutex is released: see device_removed(). */
static void nic_end(struct kweir_nic *nic)
{
	list_del(&nic->entry);
	cancel_work_sync(&nic->deliver);
	if (nic->pd)
		ib_dealloc_pd(nic->pd);
	kfree(nic);
}

void kweir_nic_put(struct kweir_nic *nic, struct kweir_session *session)
{
	mutex_lock(&nics_mutex);
	list_del(&session->entry);
	if (!--nic->users)
		nic_end(nic);
	mutex_unlock(&nics_mutex);
}

static int device_added(struct ib_device *device)
{
	ib_set_client_data(device, &client, device);
	return 0;
}

/*
 * Removal of a device ends all our objects on the device. A session being opened meanwhile ends by
 * itself, because the connection manager also reports the removal to its connection.
 */
static void device_removed(struct ib_device *device, void *data)
{
	struct kweir_session *session;
	struct kweir_nic *nic;

	mutex_lock(&nics_mutex);
	ib_set_client_data(device, &client, NULL);
	nic = nic_find(device);
	if (nic) {
		list_for_each_entry(session, &nic->sessions, entry)
			kweir_session_force_close(session);
		ib_dealloc_pd(nic->pd);
		nic->pd = NULL;
	}
	mutex_unlock(&nics_mutex);
}

static struct ib_client client = {
	.name = "weir",
	.add = device_added,
	.remove = device_removed,
};

int kweir_nics_init(void)
{
	int rc;

	kweir_wq = alloc_workqueue("weir", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	if (!kweir_wq)
		return -ENOMEM;
	rc = ib_register_client(&client);
	if (rc)
		destroy_workqueue(kweir_wq);
	return rc;
}

void kweir_nics_exit(void)
{
	ib_unregister_client(&client);
	destroy_workqueue(kweir_wq);
}
