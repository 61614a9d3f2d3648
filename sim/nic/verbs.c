/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Each call spends the profile's CPU time on the calling thread, then acts on the NIC's queues. */
#include <errno.h>
#include <stdlib.h>

#include "sim/nic/profile.h"
#include "sim/nic/verbs.h"

static const struct sim_profile *profile_of(const struct sim_thread *self)
{
	return self->host->profile;
}

int sim_device_open(struct sim_device *device, struct sim_nic *nic)
{
	uint64_t i, uars = nic->profile->uars;

	device->nic = nic;
	device->uars = calloc(uars ? uars : 1, sizeof(*device->uars));
	if (!device->uars)
		return -ENOMEM;
	for (i = 0; i < uars; i++)
		sim_lock_init(&device->uars[i], false);
	return 0;
}

void sim_device_close(struct sim_device *device)
{
	free(device->uars);
}

static bool uses_blueflame(const struct sim_profile *p, const struct sim_wr *wr, uint32_t count)
{
	if (count != 1 || (p->blueflame_inline_only && !wr->is_inline))
		return false;
	return !wr->is_inline || wr->bytes <= p->blueflame_bytes_max;
}

static void ring(struct sim_thread *self, struct sim_device *device, struct sim_qp *qp,
		 struct sim_wqe *first, uint32_t count)
{
	const struct sim_profile *p = profile_of(self);
	bool blueflame = uses_blueflame(p, &first->wr, count);
	struct sim_lock *uar = p->uars ? &device->uars[qp->number % p->uars] : NULL;

	if (uar)
		sim_lock_take(uar, self);
	sim_thread_run(self, blueflame ? p->blueflame_ps : p->doorbell_ps);
	sim_qp_ring(qp, first, count, blueflame);
	if (uar)
		sim_lock_give(uar, self);
}

uint32_t sim_post_send(struct sim_thread *self, struct sim_device *device, struct sim_qp *qp,
		       const struct sim_wr *wrs, uint32_t count)
{
	const struct sim_profile *p = profile_of(self);
	struct sim_wqe *first = NULL, *wqe;
	uint64_t ps = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		wqe = sim_qp_put(qp, &wrs[i]);
		if (!wqe)
			break;
		first = first ? first : wqe;
		ps += p->post_ps + (wrs[i].nr_sge > 1 ? (wrs[i].nr_sge - 1) * p->post_sge_ps : 0);
	}
	if (!i)
		return 0;
	sim_thread_run(self, ps);
	ring(self, device, qp, first, i);
	return i;
}

void sim_post_recv(struct sim_thread *self, struct sim_qp *qp, uint32_t count)
{
	const struct sim_profile *p = profile_of(self);

	sim_thread_run(self, count * p->post_recv_ps + p->doorbell_ps);
	qp->recvs += count;
}

static uint32_t take_wcs(struct sim_cq *cq, struct sim_wc *wcs, uint32_t max)
{
	uint32_t i;

	for (i = 0; i < max && cq->count; i++, cq->count--) {
		wcs[i] = cq->ring[cq->first];
		cq->first = (cq->first + 1) % cq->room;
	}
	return i;
}

uint32_t sim_poll_cq(struct sim_thread *self, struct sim_cq *cq, struct sim_wc *wcs, uint32_t max)
{
	const struct sim_profile *p = profile_of(self);
	uint32_t taken = take_wcs(cq, wcs, max);

	sim_thread_run(self, taken ? p->poll_ps + taken * p->poll_wc_ps : p->poll_empty_ps);
	return taken;
}

void sim_await_cq(struct sim_thread *self, struct sim_cq *cq, uint64_t max_ps)
{
	if (cq->count || !max_ps)
		return;
	weir_list_add_tail(&cq->spinners, &self->wait_link);
	sim_thread_spin(self, max_ps);
	weir_list_del(&self->wait_link);
}

void sim_req_notify_cq(struct sim_thread *self, struct sim_cq *cq)
{
	sim_thread_run(self, profile_of(self)->arm_ps);
	cq->is_armed = true;
}

void sim_get_cq_event(struct sim_thread *self, struct sim_channel *channel)
{
	channel->waiter = self;
	sim_thread_call(self, 0);
	if (!channel->events)
		sim_thread_sleep(self, SIM_NEVER);
	channel->events = 0;
	channel->waiter = NULL;
}

void sim_copy(struct sim_thread *self, uint64_t bytes)
{
	const struct sim_profile *p = profile_of(self);

	sim_thread_run(self, p->copy_call_ps + sim_bytes_ps(bytes, p->copy_mbps));
}

static uint64_t pages(const struct sim_profile *p, uint64_t bytes)
{
	return (bytes + p->page_bytes - 1) / p->page_bytes;
}

void sim_reg_mr(struct sim_thread *self, uint64_t bytes)
{
	const struct sim_profile *p = profile_of(self);

	sim_thread_run(self, p->reg_ps + pages(p, bytes) * p->reg_page_ps);
}

void sim_dereg_mr(struct sim_thread *self, uint64_t bytes)
{
	const struct sim_profile *p = profile_of(self);

	sim_thread_run(self, p->dereg_ps + pages(p, bytes) * p->dereg_page_ps);
}
