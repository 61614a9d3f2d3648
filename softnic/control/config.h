/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What WEIR_SOFTNIC said when the program first looked for a device.
 */
#ifndef WEIR_SOFTNIC_CONTROL_CONFIG_H
#define WEIR_SOFTNIC_CONTROL_CONFIG_H

#include "option.h"

/**
 * config_get() - the options of this process, as they were given at the start
 *
 * Says on standard error, once, what is wrong with them.
 *
 * Context: Any thread.
 * Return: NULL if something is wrong: there is no device then.
 */
const struct softnic_options *config_get(void);

#endif
