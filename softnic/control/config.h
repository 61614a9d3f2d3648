/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The value of WEIR_SOFTNIC when the program first looked for a device.
 */
#ifndef WEIR_SOFTNIC_CONTROL_CONFIG_H
#define WEIR_SOFTNIC_CONTROL_CONFIG_H

#include "option.h"

/**
 * config_get() - the options of this process at its start
 *
 * Reports an invalid option once on standard error.
 *
 * Context: Any thread.
 * Return: NULL if an option is invalid: the process then has no device.
 */
const struct softnic_options *config_get(void);

#endif
