/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Classes of a mux whose options name none. */
#ifndef WEIR_LIB_MUX_CLASSES_H
#define WEIR_LIB_MUX_CLASSES_H

#include <weir/mux.h>

#define WEIR_MUX_DEFAULT_CLASSES 2

extern const struct weir_mux_class weir_mux_default_classes[WEIR_MUX_DEFAULT_CLASSES];

#endif
