/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statuses that a peer names. A kernel gives numbers beyond the closed list a meaning of its own:
 * -515, for example, restarts a system call, and FUSE ignores a reply below -511, so that its
 * caller sleeps for ever. A peer must not choose such a number.
 */
#ifndef WEIR_WIRE_STATUS_H
#define WEIR_WIRE_STATUS_H

/* Return: @status, if it is 0 or in the closed list of docs/reference/errors.md; otherwise -EIO. */
int wire_status(int status);

/* The same for a reply of the file system, which has further errors: enum wire_fs_op. */
int wire_status_fs(int status);

#endif
