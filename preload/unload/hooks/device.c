/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "preload/next.h"
#include "preload/unload/hooks/device.h"
#include "preload/unload/hooks/fork.h"
#include "preload/unload/unload_rx.h"
#include "preload/unload/diag.h"

static struct unload_device *devices;
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER; /* for additions */
static int channels; /* over all devices; atomic */

struct unload_device *device_first(void)
{
	return __atomic_load_n(&devices, __ATOMIC_ACQUIRE);
}

struct unload_device *device_of(const struct ibv_context *context)
{
	struct unload_device *device = device_first();

	while (device && __atomic_load_n(&device->context, __ATOMIC_ACQUIRE) != context)
		device = device->next;
	return device;
}

static struct unload_device *device_make(void)
{
	struct unload_device *device = calloc(1, sizeof(*device));

	if (!device)
		return NULL;
	pthread_mutex_init(&device->lock, NULL);
	pthread_mutex_init(&device->local_lock, NULL);
	device->next = devices;
	__atomic_store_n(&devices, device, __ATOMIC_RELEASE);
	return device;
}

static void tables_clear(struct unload_device *device)
{
	memset(device->tables, 0, sizeof(device->tables));
	weir_umtt_init(&device->remote, device->tables[0], DEVICE_MRS_MAX);
	weir_umtt_init(&device->local, device->tables[1], DEVICE_MRS_MAX);
}

struct unload_device *device_open(struct ibv_context *context)
{
	struct unload_device *device;

	pthread_mutex_lock(&devices_lock);
	device = device_of(NULL);
	if (!device)
		device = device_make();
	if (device) {
		tables_clear(device);
		device->ops = context->ops;
		device->is_full = false;
		__atomic_store_n(&device->context, context, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&devices_lock);
	return device;
}

bool device_open_channel(struct unload_device *device)
{
	if (device->channel)
		return true;
	if (__atomic_add_fetch(&channels, 1, __ATOMIC_RELAXED) <= DEVICE_CHANNELS_MAX)
		device->channel = NEXT(ibv_create_comp_channel)(device->context);
	if (!device->channel)
		__atomic_sub_fetch(&channels, 1, __ATOMIC_RELAXED);
	return device->channel;
}

struct ibv_pd *device_pd(struct unload_device *device)
{
	if (!device->pd)
		device->pd = NEXT(ibv_alloc_pd)(device->context);
	return device->pd;
}

void device_close_receivers(struct unload_device *device, uint64_t until_ns)
{
	pthread_mutex_lock(&device->lock);
	while (device->receivers)
		unload_rx_close(device->receivers, until_ns);
	pthread_mutex_unlock(&device->lock);
}

void device_close(struct unload_device *device)
{
	pthread_mutex_lock(&device->lock);
	if (device->channel) {
		NEXT(ibv_destroy_comp_channel)(device->channel);
		__atomic_sub_fetch(&channels, 1, __ATOMIC_RELAXED);
	}
	if (device->pd)
		NEXT(ibv_dealloc_pd)(device->pd);
	device->channel = NULL;
	device->pd = NULL;
	pthread_mutex_unlock(&device->lock);
	__atomic_store_n(&device->context, NULL, __ATOMIC_RELEASE);
}

void device_registered(const struct ibv_mr *mr, uint64_t iova, unsigned int access)
{
	struct weir_umtt_entry entry = {
		.addr = iova,
		.length = mr->length,
		.owner = mr->pd->handle,
		.is_writable = true,
	};
	struct unload_device *device = device_of(mr->context);
	int rc;

	if (!device || iova != (uintptr_t)mr->addr ||
	    access & (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND))
		return;
	entry.tag = mr->lkey;
	pthread_mutex_lock(&device->local_lock);
	rc = weir_umtt_add(&device->local, &entry);
	pthread_mutex_unlock(&device->local_lock);
	if (!rc && access & IBV_ACCESS_REMOTE_WRITE) {
		entry.tag = mr->rkey;
		pthread_mutex_lock(&device->lock);
		rc = weir_umtt_add(&device->remote, &entry);
		pthread_mutex_unlock(&device->lock);
	}
	if (rc == -ENOSPC && !__atomic_exchange_n(&device->is_full, true, __ATOMIC_RELAXED))
		diag_log("more than %u memory regions are registered: nothing is unloaded from or "
			 "to the others",
			 DEVICE_MRS_MAX / 4 * 3);
}

void device_deregister(const struct ibv_mr *mr)
{
	struct unload_device *device = device_of(mr->context);

	if (!device)
		return;
	pthread_mutex_lock(&device->local_lock);
	weir_umtt_remove(&device->local, mr->lkey);
	pthread_mutex_unlock(&device->local_lock);
	pthread_mutex_lock(&device->lock);
	weir_umtt_remove(&device->remote, mr->rkey);
	pthread_mutex_unlock(&device->lock);
}

bool device_may_read(struct unload_device *device, const struct ibv_pd *pd,
		     const struct ibv_sge *sge)
{
	int rc;

	if (!sge->length)
		return true;
	pthread_mutex_lock(&device->local_lock);
	rc = weir_umtt_check(&device->local, pd->handle, sge->lkey, sge->addr, sge->length);
	pthread_mutex_unlock(&device->local_lock);
	return !rc;
}

/* Returns the channel; the device's own functions handle its CQs from now on. */
static void return_channel(struct unload_device *device)
{
	struct verbs_context *extended = verbs_get_ctx(device->context);

	device->context->ops = device->ops;
	if (extended && device->create_qp_ex)
		extended->create_qp_ex = device->create_qp_ex;
	if (extended && device->create_cq_ex)
		extended->create_cq_ex = device->create_cq_ex;
}

void device_forget(void)
{
	struct unload_device *device;

	for (device = devices; device; device = device->next)
		if (device->context)
			return_channel(device);
	devices = NULL;
	channels = 0;
	pthread_mutex_init(&devices_lock, NULL);
}
