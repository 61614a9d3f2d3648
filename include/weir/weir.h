/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All of libweir, and how it grows.
 *
 * A program keeps working, without being compiled again, when libweir is replaced by a newer one.
 * Every struct of options or information therefore begins with its size, and gets new fields only
 * at its end:
 *
 *	struct weir_session_options options = { .size = sizeof(options), .channels = 4 };
 *	struct weir_session_info info;
 *
 *	weir_session_open("host", &options, &session, &error);
 *	weir_session_info(session, &info, sizeof(info));
 *
 * Options: the caller sets the size. Fields beyond the size have their default. A newer program may
 * run with an older libweir, as long as it leaves zero the fields that the library does not know.
 * Otherwise the call fails with -E2BIG. A size of zero, or an impossible size, gives -EINVAL. NULL
 * means all defaults.
 *
 * Information: the caller passes the size as an argument, which the compiler demands. The library
 * writes at most so many bytes and sets the field size to the number written. Fields beyond it stay
 * as they were.
 *
 * All other structs are records: of requests, slots, parts of messages, events. Programs keep
 * arrays of records, so their layout never changes.
 */
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
#include <weir/sealed.h>
#include <weir/session.h>
#include <weir/tuning.h>
#include <weir/volume.h>

#endif
