/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The headers that the messages need, in user space and in the kernel. */
#ifndef WEIR_WIRE_PLATFORM_H
#define WEIR_WIRE_PLATFORM_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#endif

#endif
