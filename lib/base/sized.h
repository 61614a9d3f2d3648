/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Structs that begin with their size, as weir/weir.h explains: copied in and out of the library. */
#ifndef WEIR_LIB_BASE_SIZED_H
#define WEIR_LIB_BASE_SIZED_H

#include <stddef.h>
#include <weir/error.h>

/**
 * weir_sized_in() - copy a caller's options
 * @known: receives the options, and its own size; fields that the caller does not know become zero
 * @known_bytes: size of the struct in this library
 * @given: the caller's options, which begin with their size; NULL: all fields are zero
 * @tag: the struct's tag, for @error
 * @error: may be NULL
 *
 * Context: Any thread.
 * Return: 0, or
 *	-EINVAL  the size is missing or impossible;
 *	-E2BIG   a field that this library does not know is not zero.
 */
int weir_sized_in(void *known, size_t known_bytes, const void *given, const char *tag,
		  struct weir_error *error);

/**
 * weir_sized_out() - copy information to the caller
 * @given: receives the information; its size field receives the number of bytes written
 * @given_bytes: size of the struct in the caller
 * @known: the information
 * @known_bytes: size of the struct in this library
 *
 * Context: Any thread.
 * Return: 0; -EINVAL @given_bytes leaves no room for a field.
 */
int weir_sized_out(void *given, size_t given_bytes, const void *known, size_t known_bytes);

#endif
