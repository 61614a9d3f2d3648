// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softnic/loop/loop.h"
#include "softnic/qp_far/lost.h"
#include "softnic/verbs/nic.h"
#include "softnic/qp_far/far.h"

static void (*listener)(void);

static bool call_listener(struct softnic_work *work)
{
	void (*fn)(void) = load_acquire(&listener);

	(void)work;
	if (fn)
		fn();
	return false;
}

static struct softnic_work work = { .fn = call_listener };

void lost_listen(void (*fn)(void))
{
	store_release(&listener, fn);
}

bool lost_has(uint32_t qpn)
{
	struct qp *qp;
	bool is_lost = false;

	pthread_mutex_lock(&nic.lock);
	qp = nic_qp(qpn);
	if (qp) {
		pthread_mutex_lock(&qp->lock);
		is_lost = qp->far && qp->far->is_lost;
		pthread_mutex_unlock(&qp->lock);
	}
	pthread_mutex_unlock(&nic.lock);
	return is_lost;
}

void lost_declare(struct qp *qp)
{
	if (qp->far->is_lost)
		return;
	qp->far->is_lost = true;
	qp_peer_died(qp);
	softnic_loop_kick_work(&work);
}
