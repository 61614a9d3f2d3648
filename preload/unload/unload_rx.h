/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The target's end of one direction: the slot buffer that a peer writes to, and the returns. See
 * core/unload/unload_rx.h and wire/unload.h.
 *
 * Context of all: with device.lock.
 */
#ifndef WEIR_PRELOAD_UNLOAD_UNLOAD_RX_H
#define WEIR_PRELOAD_UNLOAD_UNLOAD_RX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/unload/cpu_budget.h"
#include "lib/base/clock.h"
#include "lib/unload/unload_wr.h"
#include "wire/discovery.h"

#define UNLOAD_RX_LAST_NS \
	(100 * WEIR_NS_PER_MS) /* limit for the last return: a live peer needs no program for it */

struct unload_device;
struct qp_path;
struct tracked_qp;

/**
 * struct unload_rx - one target end
 * @next: in the device's list
 * @device: the device
 * @offer: the peer's offer
 * @answer: our answer to @offer
 * @qp, @cq, @mr, @slots: of this end
 * @program: the program's QP; @pd: handle of its PD; @asked_ns: when its state was last queried
 * @core: state of copies and reports
 * @is_greeted: the peer has taken our answer, and its first message has arrived
 * @has_failed: the connection to the peer is lost
 * @is_ending: the last return is in flight; @has_ended: the last return has arrived
 */
struct unload_rx {
	struct unload_rx *next;
	struct unload_device *device;
	struct wire_discovery_offer offer;
	struct wire_discovery_offer answer;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct wire_unload_slot *slots;
	struct ibv_qp *program;
	uint32_t pd;
	uint64_t asked_ns;
	struct weir_unload_rx core;
	bool is_greeted;
	bool has_failed;
	bool is_ending;
	bool has_ended;
};

/**
 * unload_rx_open() - prepare for a peer's unloaded writes
 * @w: the program's QP
 * @path: path of that QP
 * @offer: copied
 *
 * Return: the new end, with its answer filled in; NULL: not possible now.
 */
struct unload_rx *unload_rx_open(const struct tracked_qp *w, const struct qp_path *path,
				 const struct wire_discovery_offer *offer);

/*
 * Ends copying and tells the peer. The service thread frees @rx once the peer knows or is gone; the
 * caller wakes the service thread. NULL does nothing.
 */
void unload_rx_retire(struct unload_rx *rx);

/* Is @rx retired, and has the peer been told? */
bool unload_rx_is_over(const struct unload_rx *rx);

/* Retires @rx, waits until @until_ns at most for the peer to know, and frees @rx. */
void unload_rx_close(struct unload_rx *rx, uint64_t until_ns);

/* Copies arrived writes, and tells the peer. Return: how many. */
uint32_t unload_rx_serve(struct unload_rx *rx, struct weir_cpu_budget *cpu_budget);

/* Makes the next arrival raise an event. */
void unload_rx_arm(struct unload_rx *rx);

#endif
