/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors. Functions return 0 or a negative errno of the closed list in
 * docs/reference/errors.md; results go through out-parameters, written on success only.
 * What can fail for many reasons (opening, connecting, loading a key) also takes
 * a struct weir_error and explains itself there in a sentence for people.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Filled on failure with one line, no newline: the thing, the value, the remedy. */
struct weir_error {
	char text[512];
};

/**
 * weir_strerror() - what an errno of weir's list means
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
