/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cmocka needs these headers first. */
#ifndef WEIR_TESTS_SUPPORT_CMOCKA_ALL_H
#define WEIR_TESTS_SUPPORT_CMOCKA_ALL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
