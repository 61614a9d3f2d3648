/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_APPS_PERF_PERF_H
#define WEIR_APPS_PERF_PERF_H

/* weir perf exchange, weir perf volume: commands, as in apps/common/cmd.h. */
int perf_exchange(int argc, char **argv);
int perf_volume(int argc, char **argv);

#endif
