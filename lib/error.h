/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How the library's own files report errors, and where libibverbs' way of reporting
 * becomes weir's.
 */
#ifndef WEIR_LIB_ERROR_H
#define WEIR_LIB_ERROR_H

#include <infiniband/verbs.h>
#include <weir/error.h>

/**
 * weir_fail() - explain a failure
 * @error: receives the sentence; may be NULL
 * @status: a negative errno
 * @format: of the sentence: the thing, the value, the remedy; no newline
 *
 * Context: Any thread.
 * Return: @status, so that a function can end with it.
 */
int weir_fail(struct weir_error *error, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * weir_fail_memlock() - explain why the device would not register memory
 * @error: receives the sentence; may be NULL
 * @what: the memory, such as "a pool"
 * @bytes: its length
 * @status: what ibv_reg_mr() left in errno, negated
 *
 * Devices report a locked-memory limit that is too small as ENOMEM, EAGAIN or EPERM, or
 * as nothing more than "Couldn't allocate MR": this names the limit and what to do.
 *
 * Context: Any thread.
 * Return: -ENOMEM when the limit can be the reason, otherwise @status.
 */
int weir_fail_memlock(struct weir_error *error, const char *what, size_t bytes, int status);

/* The negative errno of docs/reference/errors.md for a completion's status. */
int weir_wc_errno(enum ibv_wc_status status);

#endif
