/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections with other hosts: their messages are MADs in UDP packets.
 *
 * An id is far once the destination's address is that of another host, or a request has come from
 * there. For a far id no socket carries messages; its messages and its end go through this file.
 */
#ifndef WEIR_SOFTNIC_CM_FAR_CM_FAR_H
#define WEIR_SOFTNIC_CM_FAR_CM_FAR_H

#include "softnic/cm/cm.h"

/**
 * cm_far_open() - reach other hosts, and be reached; idempotent
 *
 * Context: a device is open; without cm_lock.
 * Return: 0, or the error of udp_socket_open().
 */
int cm_far_open(void);

/**
 * cm_far_route() - find the way to another host
 * @src: of the wildcard, replaced by the address that the host uses for @dst; else an address of
 *	this host
 *
 * Context: any, after cm_far_open().
 * Return: 0, or -EHOSTUNREACH.
 */
int cm_far_route(union cm_addr *src, const union cm_addr *dst);

/* The MTU of the way between an id's addresses. */
enum ibv_mtu cm_far_mtu(const struct cm_id *id);

/* Make an id far. Context: cm_lock held. */
void cm_far_begin(struct cm_id *id);

/**
 * cm_far_send() - as cm_conn_send(), for a far id
 *
 * Context: cm_lock held.
 * Return: 0; -EAGAIN if too many connections are in use; -ECONNRESET if the peer has given up.
 */
int cm_far_send(struct cm_id *id, const struct cm_msg *msg);

/* The program knows that a far id's peer is ready. Context: cm_lock held. */
void cm_far_heard_packet(struct cm_id *id);

/* Tell the peer that this side has ended; no-op without a connection. Context: cm_lock held. */
void cm_far_end(struct cm_id *id);

/**
 * cm_far_passed_on() - handle a request that another process of this host has passed on
 *
 * Context: Engine thread, cm_lock held.
 * Return: false if the bytes are no such request.
 */
bool cm_far_passed_on(const void *buf, size_t len);

/* In the child of a fork. */
void cm_far_reset(void);

#endif
