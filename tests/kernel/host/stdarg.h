/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The kernel has its own: see cmocka.h here. */
