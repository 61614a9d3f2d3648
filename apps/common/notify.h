/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells the service manager about this process, by the protocol of sd_notify(3): datagrams to
 * $NOTIFY_SOCKET. Without that variable nothing is sent. Failures are ignored: nobody may be there.
 */
#ifndef WEIR_APPS_COMMON_NOTIFY_H
#define WEIR_APPS_COMMON_NOTIFY_H

#include <stdint.h>

/* Starting or reloading is over. @format: a line about the state, for systemctl status. */
void notify_ready(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The configuration is being read again; ends with notify_ready(). */
void notify_reloading(void);
void notify_stopping(void);

/* Return: how often notify_alive() is due, a third of what the manager allows; 0: never. */
uint64_t notify_interval_ns(void);

/* The process works. Context: any thread, the one whose work the manager watches. */
void notify_alive(void);

#endif
