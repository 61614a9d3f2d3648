/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of many packets with one system call: memory to send is read ahead, and writes that
 * continue each other are gathered.
 */
#ifndef WEIR_SOFTNIC_QP_FAR_STAGE_H
#define WEIR_SOFTNIC_QP_FAR_STAGE_H

#include "softnic/qp/qp.h"

enum { STAGE_AHEAD_BYTES = 64 << 10 }; /* read ahead at most */

/** stage_forget() - what was read ahead is out of date; udp.lock held, as for the next */
void stage_forget(void);

/**
 * stage_read() - copy memory of this process
 * @bytes: to copy
 * @available: at least @bytes: how much may be read ahead
 *
 * Return: 0, or a negative errno if a byte is not mapped.
 */
int stage_read(uint64_t addr, uint32_t bytes, uint64_t available, uint8_t *to);

/** stage_ends_at() - does the read-ahead continue at @addr? Then more will be read after that. */
bool stage_ends_at(uint64_t addr);

/**
 * stage_begin() - a packet of a queue pair is about to be dealt with
 * @opcode: of the packet
 *
 * Context: qp->lock and the lock of poller.c held, as for the next.
 */
void stage_begin(struct qp *qp, uint8_t opcode);

/** stage_end() - the packet is dealt with */
void stage_end(struct qp *qp, uint8_t opcode);

/**
 * stage_write() - write to memory of this process, for the packet being dealt with
 * @from: *kept until* stage_flush()
 *
 * Return: 0, or a negative errno if a byte is not mapped. A failure that is found later is answered
 *	by a NAK for its packet, or ends our read.
 */
int stage_write(struct qp *qp, uint64_t addr, const uint8_t *from, uint32_t bytes);

/** stage_flush() - execute the writes, before the queue pair answers */
void stage_flush(struct qp *qp);

#endif
