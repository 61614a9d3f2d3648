/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Error reports inside the library, and the translation of libibverbs' conventions. */
#ifndef WEIR_LIB_BASE_ERROR_H
#define WEIR_LIB_BASE_ERROR_H

#include <infiniband/verbs.h>
#include <weir/error.h>

/**
 * weir_error_set() - explain a failure
 * @error: receives the sentence; may be NULL
 * @status: a negative errno
 * @format: the sentence names the object, the value and the remedy; no newline
 *
 * Context: Any thread.
 * Return: @status, so that a function can end with this call.
 */
int weir_error_set(struct weir_error *error, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * weir_error_set_memlock() - explain why the device would not register memory
 * @error: receives the sentence; may be NULL
 * @what: the memory, such as "a pool"
 * @bytes: its length
 * @status: the errno of ibv_reg_mr(), negated
 *
 * If the locked-memory limit is too small, devices report ENOMEM, EAGAIN or EPERM, or just
 * "Couldn't allocate MR". The sentence names the limit and the remedy.
 *
 * Context: Any thread.
 * Return: -ENOMEM when the limit can be the reason, otherwise @status.
 */
int weir_error_set_memlock(struct weir_error *error, const char *what, size_t bytes, int status);

/* The negative errno of docs/reference/errors.md for a completion's status. */
int weir_error_of_wc(enum ibv_wc_status status);

#endif
