/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command lines of services, which also take options from the file: see settings.h. */
#ifndef WEIR_APPS_SERVICES_H
#define WEIR_APPS_SERVICES_H

#include "apps/common/cmdline.h"

extern const struct cmdline serve_line, mount_line, share_line, metrics_line;

#endif
