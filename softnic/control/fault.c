// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The requester injects all faults between its send queue and the peer, where a real network
 * loses and delays packets. Only the limit on memory applies elsewhere, in registration. The
 * state of the port is also published in shared memory, and peers check it before each step.
 */
#include <errno.h>

#include "softnic/verbs/async.h"
#include "config.h"
#include "fault.h"
#include "softnic/loop/fork.h"
#include "softnic/roce/rng.h"
#include "softnic/verbs/nic.h"

bool fault_any;

static struct {
	pthread_mutex_t lock; /* serialises changes of options */
	uint64_t value[OPTIONS]; /* read without the lock */
	uint64_t settings; /* counts settings of OPTION_ERROR_AFTER */
	uint64_t ops; /* WRs begun by the process */
	uint64_t port_down_at, gone_at; /* in units of @ops */
	uint32_t queue_pairs; /* created so far */
	uint64_t mr_bytes;
	bool gone;
	struct softnic_timer port_up;
	struct softnic_work remove_devices;
} faults = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The purpose of a draw. */
enum fault_draw { DRAW_ERROR, DRAW_RNR, DRAW_DELAY, DRAW_PACKET };

static uint64_t value(enum softnic_option option)
{
	return load_relaxed(&faults.value[option]);
}

static uint64_t draw(const struct qp_faults *f, enum fault_draw what, uint32_t nth)
{
	uint64_t x = roce_rng_hash(value(OPTION_SEED));

	x = roce_rng_hash(x ^ f->number);
	x = roce_rng_hash(x ^ f->ops);
	return roce_rng_hash(x ^ ((uint64_t)what << 32 | nth));
}

static bool draw_happens(const struct qp_faults *f, enum fault_draw what, uint32_t nth,
			 uint64_t ppm)
{
	return draw(f, what, nth) % OPTION_PPM < ppm;
}

static void port_goes_up(struct softnic_timer *t)
{
	(void)t;
	store_release(&nic.pub->life.down, 0);
	async_raise_ports(IBV_EVENT_PORT_ACTIVE);
}

static void port_goes_down(void)
{
	if (!swap_ordered(&nic.pub->life.down, 1))
		async_raise_ports(IBV_EVENT_PORT_ERR);
	softnic_timer_arm(&faults.port_up, value(OPTION_PORT_DOWN_MS) * 1000000, port_goes_up);
}

/* Runs on the engine: a thread that holds one qp->lock must not take the others. */
static bool remove_devices(struct softnic_work *w)
{
	struct qp *qp = NULL;

	(void)w;
	while ((qp = nic_next_qp(qp))) {
		pthread_mutex_lock(&qp->lock);
		qp_error(qp);
		pthread_mutex_unlock(&qp->lock);
	}
	async_raise_device(IBV_EVENT_DEVICE_FATAL);
	return false;
}

static void device_goes(void)
{
	if (!__atomic_exchange_n(&faults.gone, true, __ATOMIC_SEQ_CST))
		softnic_loop_kick_work(&faults.remove_devices);
}

/* Under faults.lock, or before the device is open. */
static void set_fault(enum softnic_option option, uint64_t to)
{
	uint64_t at = to == OPTION_NEVER ? OPTION_NEVER : load_relaxed(&faults.ops) + to;

	store_relaxed(&faults.value[option], to);
	if (option == OPTION_ERROR_AFTER)
		add_ordered(&faults.settings, 1);
	else if (option == OPTION_PORT_DOWN_AFTER)
		store_relaxed(&faults.port_down_at, at);
	else if (option == OPTION_DEVICE_GONE_AFTER)
		store_relaxed(&faults.gone_at, at);
}

void fault_open(void)
{
	const struct softnic_options *options = config_get();
	uint32_t i;

	faults.remove_devices.fn = remove_devices;
	for (i = OPTION_FIRST_FAULT; i < OPTIONS; i++)
		set_fault(i, options->value[i]);
	if (options->given >> OPTION_FIRST_FAULT)
		store_release(&fault_any, true);
}

/* In the child of a fork, all counts begin at 0. */
static void reset_faults(void)
{
	faults.ops = faults.mr_bytes = 0;
	faults.queue_pairs = 0;
	faults.gone = false;
}

const struct fork_part fault_fork = { &faults.lock, reset_faults };

int fault_set(uint32_t option, uint64_t to)
{
	bool goes_down = option == OPTION_PORT_DOWN_AFTER && !to;
	bool goes = option == OPTION_DEVICE_GONE_AFTER && !to;

	if (option < OPTION_FIRST_FAULT || !option_is_valid(option, to))
		return -EINVAL;
	pthread_mutex_lock(&faults.lock);
	/* A fault injected now must not come again with the next WR. */
	set_fault(option, goes_down || goes ? OPTION_NEVER : to);
	store_release(&fault_any, true);
	pthread_mutex_unlock(&faults.lock);
	if (goes_down)
		port_goes_down();
	if (goes)
		device_goes();
	return 0;
}

bool fault_is_gone(void)
{
	return load_acquire(&faults.gone);
}

bool fault_port_is_down(void)
{
	return load_acquire(&nic.is_open) && load_acquire(&nic.pub->life.down);
}

void fault_init_qp(struct qp *qp)
{
	qp->faults.number = add_ordered(&faults.queue_pairs, 1);
}

bool fault_mr_change(uint64_t from, uint64_t to)
{
	uint64_t max = value(OPTION_MR_BYTES_MAX);

	if (add_ordered(&faults.mr_bytes, to - from) <= max || to <= from)
		return true;
	fault_mr_give(to - from);
	return false;
}

bool fault_mr_take(uint64_t bytes)
{
	return fault_mr_change(0, bytes);
}

void fault_mr_give(uint64_t bytes)
{
	add_ordered(&faults.mr_bytes, -bytes);
}

static bool needs_receive(const struct qp *qp, const struct send_wqe *wqe)
{
	switch (wqe->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return qp_is_reliable(qp);
	default:
		return false;
	}
}

uint32_t fault_packet(uint64_t number)
{
	static const enum softnic_option options[] = { OPTION_LOSS, OPTION_DUPLICATE,
						       OPTION_REORDER, OPTION_CORRUPT };
	const struct qp_faults f = { .ops = number };
	uint32_t i, drawn = 0;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (draw_happens(&f, DRAW_PACKET, i, value(options[i])))
			drawn |= 1 << i;
	return drawn;
}

uint64_t fault_packet_delay_ns(void)
{
	return value(OPTION_PACKET_DELAY_US) * 1000;
}

enum { RNR_IN_A_ROW_MAX = 1000 };

/* Draws how many attempts in a row find no receive. */
static uint32_t rnr_tries(const struct qp_faults *f)
{
	uint64_t ppm = value(OPTION_RNR);
	uint32_t n = 0;

	if (ppm == OPTION_PPM)
		return UINT32_MAX;
	while (n < RNR_IN_A_ROW_MAX && draw_happens(f, DRAW_RNR, n, ppm))
		n++;
	return n;
}

static void count_for_process(void)
{
	uint64_t begun = add_ordered(&faults.ops, 1) - 1;

	if (begun == load_relaxed(&faults.port_down_at))
		port_goes_down();
	if (begun == load_relaxed(&faults.gone_at))
		device_goes();
}

/* Draws all faults of a WR, once. */
static void draw_faults(struct qp *qp, const struct send_wqe *wqe)
{
	struct qp_faults *f = &qp->faults;
	uint64_t settings = load_relaxed(&faults.settings), delay_us = value(OPTION_DELAY_US);

	if (f->settings != settings) {
		f->settings = settings;
		f->ops_at_setting = f->ops;
	}
	f->fails = f->ops - f->ops_at_setting == value(OPTION_ERROR_AFTER) ||
		   draw_happens(f, DRAW_ERROR, 0, value(OPTION_ERROR));
	f->rnr = needs_receive(qp, wqe) ? rnr_tries(f) : 0;
	f->begin_ns =
		delay_us ? softnic_loop_now_ns() + draw(f, DRAW_DELAY, 0) % (delay_us + 1) * 1000 :
			   0;
	f->ops++;
	count_for_process();
}

int fault_inject(struct qp *qp, const struct send_wqe *wqe)
{
	struct qp_faults *f = &qp->faults;

	if (!qp->sq.faults_drawn) {
		qp->sq.faults_drawn = true;
		draw_faults(qp, wqe);
	}
	if (fault_is_gone())
		return IBV_WC_WR_FLUSH_ERR;
	if (fault_port_is_down())
		return RESP_SILENT;
	if (f->begin_ns && softnic_loop_now_ns() < f->begin_ns)
		return RESP_LATER;
	if (f->fails)
		return IBV_WC_RETRY_EXC_ERR;
	if (!f->rnr)
		return 0;
	f->rnr--;
	return RESP_RNR;
}
