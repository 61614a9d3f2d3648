/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/mux/classes.h"

const struct weir_mux_class weir_mux_default_classes[WEIR_MUX_DEFAULT_CLASSES] = {
	[WEIR_MUX_CLASS_URGENT] = { .level = 0 },
	[WEIR_MUX_CLASS_NORMAL] = { .level = 1, .pass_bytes_max = 1 << 20 },
};
