/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/progress.h"
#include "apps/common/size.h"
#include "lib/base/clock.h"

#include <stdio.h>
#include <unistd.h>

#define EVERY_NS (WEIR_NS_PER_S / 4)
#define SETTLED_NS WEIR_NS_PER_S /* before, the rate says little about the time left */

void progress_begin(struct fs_progress *p)
{
	p->is_terminal = isatty(STDERR_FILENO);
	p->start_ns = p->shown_ns = weir_now_ns();
}

double progress_seconds(const struct fs_progress *p)
{
	return (double)(weir_now_ns() - p->start_ns) / WEIR_NS_PER_S;
}

static void show_left(const struct fs_progress *p, double rate, uint64_t ns)
{
	if (p->total <= p->done || ns < SETTLED_NS || rate < 1)
		return;
	fprintf(stderr, ", %.0f s left", (double)(p->total - p->done) / rate);
}

void progress_show(struct fs_progress *p)
{
	uint64_t now_ns = weir_now_ns(), ns = now_ns - p->start_ns;
	double rate;

	if (!p->is_terminal || now_ns - p->shown_ns < EVERY_NS)
		return;
	p->shown_ns = now_ns;
	p->is_shown = true;
	rate = (double)(p->done - p->skipped) * WEIR_NS_PER_S / (double)ns;
	fprintf(stderr, "\r\033[K%s", size_format(p->done).text);
	if (p->total)
		fprintf(stderr, " of %s", size_format(p->total).text);
	fprintf(stderr, ", %llu entries, %s/s", (unsigned long long)p->entries,
		size_format((uint64_t)rate).text);
	show_left(p, rate, ns);
	fflush(stderr);
}

void progress_clear(struct fs_progress *p)
{
	if (!p->is_shown)
		return;
	p->is_shown = false;
	fputs("\r\033[K", stderr);
}
