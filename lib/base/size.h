/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers of bytes in messages for people. */
#ifndef WEIR_LIB_BASE_SIZE_H
#define WEIR_LIB_BASE_SIZE_H

#include <stdint.h>

struct weir_size_text {
	char text[32];
};

/* Formats as "1.5 GiB"; below 1 KiB as "123 B". */
struct weir_size_text weir_size_format(uint64_t bytes);

#endif
