/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Probes for tracers such as bpftrace, at the decisions that the trace notes. A probe is a nop
 * until a tracer attaches. A host without <sys/sdt.h>, such as the kernel, has none.
 */
#ifndef WEIR_CORE_BASE_PROBE_H
#define WEIR_CORE_BASE_PROBE_H

#include "core/base/trace.h"

#ifdef HAVE_SDT

static inline void weir_probe(const struct weir_trace_record *r)
{
	switch (r->event) {
	case WEIR_TRACE_POST:
		DTRACE_PROBE4(weir, post, r->channel, r->wrs, r->reqs, r->bytes);
		break;
	case WEIR_TRACE_WAIT:
		DTRACE_PROBE2(weir, window_full, r->reqs, r->bytes);
		break;
	case WEIR_TRACE_LIMIT:
		DTRACE_PROBE2(weir, window_limit, r->bytes, r->wrs);
		break;
	case WEIR_TRACE_FAIL:
		DTRACE_PROBE4(weir, fail, r->channel, r->reqs, r->rc, r->verbs);
		break;
	case WEIR_TRACE_REPEAT:
		DTRACE_PROBE1(weir, retry, r->rc);
		break;
	case WEIR_TRACE_ARM:
		DTRACE_PROBE2(weir, arm, r->channel, r->wrs);
		break;
	case WEIR_TRACE_SLEEP:
		DTRACE_PROBE1(weir, sleep, r->reqs);
		break;
	case WEIR_TRACE_WAKE:
		DTRACE_PROBE2(weir, wake, r->reqs, r->wrs);
		break;
	case WEIR_TRACE_STALL:
		DTRACE_PROBE2(weir, stall, r->channel, r->wrs);
		break;
	}
}

#else

static inline void weir_probe(const struct weir_trace_record *r)
{
	(void)r;
}

#endif
#endif
