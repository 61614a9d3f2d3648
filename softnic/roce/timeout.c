// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softnic/roce/timeout.h"

enum { DOUBLINGS_MAX = 30 };

uint64_t roce_timeout_ns(const struct roce_timeout *t)
{
	uint64_t ns = t->mean_ns + 4 * t->deviation_ns;

	if (!t->min_ns || !t->mean_ns)
		return t->max_ns;
	if (ns < t->min_ns)
		ns = t->min_ns;
	if (ns > t->max_ns >> t->doublings)
		return t->max_ns;
	return ns << t->doublings;
}

void roce_timeout_sent(struct roce_timeout *t, uint64_t psn, uint64_t now_ns)
{
	if (t->timed_ns || !t->min_ns)
		return;
	t->timed_psn = psn;
	t->timed_ns = now_ns;
}

void roce_timeout_began(struct roce_timeout *t, uint64_t now_ns)
{
	if (!t->began_ns)
		t->began_ns = now_ns;
}

static void measure(struct roce_timeout *t, uint64_t ns)
{
	uint64_t error = ns > t->mean_ns ? ns - t->mean_ns : t->mean_ns - ns;

	if (!t->mean_ns) {
		t->mean_ns = ns ? ns : 1;
		t->deviation_ns = ns / 2;
		return;
	}
	t->deviation_ns = t->deviation_ns - t->deviation_ns / 4 + error / 4;
	t->mean_ns = t->mean_ns - t->mean_ns / 8 + ns / 8;
}

void roce_timeout_answered(struct roce_timeout *t, uint64_t psn, bool waits, uint64_t now_ns)
{
	if (t->timed_ns && psn >= t->timed_psn) {
		measure(t, now_ns - t->timed_ns);
		t->timed_ns = 0;
	}
	t->doublings = 0;
	t->began_ns = waits ? now_ns : 0;
}

void roce_timeout_rewound(struct roce_timeout *t)
{
	t->timed_ns = 0;
}

void roce_timeout_heard(struct roce_timeout *t)
{
	t->began_ns = 0;
}

bool roce_timeout_expired(struct roce_timeout *t, uint64_t now_ns)
{
	if (t->doublings < DOUBLINGS_MAX)
		t->doublings++;
	if (now_ns - t->began_ns < t->max_ns)
		return false;
	t->began_ns = now_ns;
	return true;
}
