/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Encryption below the verbs. Verbs know no encryption, so a device that encrypts between hosts
 * exports two functions, and the library looks them up by name. softnic does. With any other
 * device nothing is asked for, and the handshake is that of an unencrypted connection.
 */
#ifndef WEIR_LIB_CONN_ENCRYPTION_H
#define WEIR_LIB_CONN_ENCRYPTION_H

#include <infiniband/verbs.h>

#include "core/link/handshake.h"
#include "weir/key.h"

/**
 * weir_encryption_ask() - have the device encrypt, if it and the peer's device can
 *
 * Context: before the first work request. The first one then waits for the peer's device; for two
 * seconds if that does not encrypt and cannot say so.
 */
void weir_encryption_ask(struct ibv_qp *qp);

/** weir_encryption_bind() - set the handshake's view of setup.qp's encryption, if it has a QP */
void weir_encryption_bind(struct weir_handshake_setup *setup);

/**
 * weir_encryption_check() - can an option WEIR_ENCRYPTION_* hold?
 *
 * Return: 0; -EINVAL no such option, or required without a key; -ENODEV required without a device
 *	that encrypts.
 */
int weir_encryption_check(uint64_t encryption, bool has_key, struct weir_error *error);

/**
 * weir_encryption_cipher() - what protects a QP's packets
 *
 * Return: a cipher's name; "none" in clear text between hosts; NULL if the ends are on one host, or
 *	the device cannot tell.
 */
const char *weir_encryption_cipher(struct ibv_qp *qp);

#endif
