/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets that receive messages of this process only. Any user may send to a socket of
 * NETLINK_USERSOCK. Here the kernel drops messages that do not end with a secret of the process,
 * and removes the secret from the others. A dropped message takes no room in the socket's buffer
 * and wakes no reader.
 */
#ifndef WEIR_SOFTNIC_NETLINK_CHANNEL_H
#define WEIR_SOFTNIC_NETLINK_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHANNEL_WORDS = 4 };

/**
 * channel_protect() - from now on, drop what others send to a socket
 *
 * Lasts as long as the socket, also in its duplicates and in children.
 *
 * Return: 0, or a negative errno of the kernel.
 */
int channel_protect(int fd);

/** channel_is_protected() - was a descriptor's socket protected by this process? Keeps errno */
bool channel_is_protected(int fd);

/** channel_secret() - the CHANNEL_WORDS words behind each message; protect a socket before */
const uint32_t *channel_secret(void);

#endif
