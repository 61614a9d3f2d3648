/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* All of libweir. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/donor.h>
#include <weir/error.h>
#include <weir/exchange.h>
#include <weir/group.h>
#include <weir/key.h>
#include <weir/memory.h>
#include <weir/message.h>
#include <weir/mux.h>
#include <weir/region.h>
#include <weir/request.h>
#include <weir/session.h>

#endif
