/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ICMP: a host answers that nobody has the port of a packet of ours. So a killed process is noticed
 * long before the retries are used up.
 *
 * The message quotes the packet, so a sender that forges such messages must know the queue pair's
 * number and a PSN in flight; of an encrypted queue pair, a whole packet.
 */
#ifndef WEIR_SOFTNIC_QP_FAR_REFUSED_H
#define WEIR_SOFTNIC_QP_FAR_REFUSED_H

/**
 * refused_take() - take all messages that wait at a socket
 *
 * Context: the lock of poller.c held; no other.
 */
void refused_take(int fd);

#endif
