/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names the cipher of this host's packets, for programs that have no device open.
 */
#ifndef WEIR_SOFTNIC_CONTROL_CIPHER_H
#define WEIR_SOFTNIC_CONTROL_CIPHER_H

#define SOFTNIC_CIPHER_AES "AES-256-GCM"
#define SOFTNIC_CIPHER_NONE "none"

/**
 * softnic_cipher() - the cipher with a host that has them all
 *
 * Context: Any thread. The first call may read files.
 * Return: a name as a session's; SOFTNIC_CIPHER_AES if the CPU has AES instructions;
 *	SOFTNIC_CIPHER_NONE without libsodium.
 */
const char *softnic_cipher(void);

#endif
