/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command lines of services, which also take options from the file: see settings.h. */
#ifndef WEIR_APPS_SERVICES_H
#define WEIR_APPS_SERVICES_H

#include "apps/common/cmdline.h"

/*
 * Checks names and values of the configuration file and of the environment, for all services.
 * Return: 0, or an exit status after a message about the first mistake.
 */
int config_check_text(const char *cmd, const char *path);

extern const struct cmdline serve_line, mount_line, share_line, metrics_line;

#endif
