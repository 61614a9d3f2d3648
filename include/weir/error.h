/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors. Functions return 0 or a negative errno from the closed list in docs/reference/errors.md.
 * Out-parameters are written on success only. Functions that can fail for many reasons (open,
 * connect, load a key) also fill a struct weir_error with a sentence for people.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Filled on failure with one line, without a newline: the object, the value, the remedy. */
struct weir_error {
	char text[512];
};

/**
 * weir_strerror() - describe an errno of weir's list
 * @status: 0 or a negative errno
 *
 * Context: Any thread.
 * Return: a constant string, such as "timed out" or "outcome unknown: the channel failed".
 */
const char *weir_strerror(int status);

#ifdef __cplusplus
}
#endif
#endif
