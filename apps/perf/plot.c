/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Draws latencies as an SVG: distribution over a logarithmic time axis, eight bars per power of
 * two. A bar covers 16 of the histogram's buckets.
 */
#include "apps/common/cmd.h"
#include "apps/perf/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BARS_PER_POWER 8
#define POWERS 40 /* up to 18 minutes */
#define LEFT 60
#define TOP 50
#define WIDTH 640
#define HEIGHT 260
#define LABEL 70 /* room for a number on the time axis */

/* The range of powers of two shown. */
struct axis {
	int first, last;
	double most; /* fraction of the highest bar */
};

static double share(const struct weir_histogram *h, int power, int bar)
{
	uint64_t base = 1ull << power, step = base / BARS_PER_POWER;
	uint64_t from = base + (uint64_t)bar * step;

	return (double)weir_histogram_between(h, from, from + step) / (double)h->count;
}

static struct axis axis_of(const struct weir_histogram *h)
{
	struct axis axis = { .first = POWERS, .last = 0, .most = 0 };

	for (int power = 3; power < POWERS; power++) {
		for (int bar = 0; bar < BARS_PER_POWER; bar++) {
			double s = share(h, power, bar);

			if (s > 0 && power < axis.first)
				axis.first = power;
			if (s > 0)
				axis.last = power;
			if (s > axis.most)
				axis.most = s;
		}
	}
	return axis;
}

static void draw_bars(FILE *out, const struct weir_histogram *h, const struct axis *axis)
{
	int count = (axis->last - axis->first + 1) * BARS_PER_POWER;
	double width = (double)WIDTH / count;

	for (int i = 0; i < count; i++) {
		double s = share(h, axis->first + i / BARS_PER_POWER, i % BARS_PER_POWER);
		double height = s / axis->most * HEIGHT;

		if (s > 0)
			fprintf(out,
				"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
				LEFT + i * width, TOP + HEIGHT - height, width * 0.9, height);
	}
}

static void draw_time_axis(FILE *out, const struct axis *axis)
{
	int powers = axis->last - axis->first + 1;
	int step = (powers * LABEL + WIDTH - 1) / WIDTH;

	for (int i = 0; i <= powers; i += step) {
		double x = LEFT + (double)WIDTH * i / powers;

		fprintf(out,
			"<path d=\"M%.1f %d v5\"/>"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n",
			x, TOP + HEIGHT, x, TOP + HEIGHT + 20,
			(double)(1ull << (axis->first + i)) / 1e3);
	}
	fprintf(out,
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">latency, microseconds</text>\n",
		LEFT + WIDTH / 2, TOP + HEIGHT + 40);
}

static void draw_percentile(FILE *out, const struct weir_histogram *h, const struct axis *axis,
			    uint32_t per_million, const char *name, const char *anchor)
{
	uint64_t ns = weir_histogram_at(h, per_million);
	int power = 63 - __builtin_clzll(ns | 1);
	double within = (double)ns / (double)(1ull << power) - 1;
	double x = LEFT +
		   (double)WIDTH * (power - axis->first + within) / (axis->last - axis->first + 1);

	fprintf(out,
		"<path d=\"M%.1f %d V%d\" stroke-dasharray=\"4 3\"/>"
		"<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>\n",
		x, TOP, TOP + HEIGHT, x, TOP - 6, anchor, name);
}

static void draw(FILE *out, const struct perf_options *o, const struct perf_result *r)
{
	struct axis axis = axis_of(&r->latency);
	char title[256];

	report_title(o, title, sizeof(title));
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\" stroke=\"none\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"20\">%s: %s, %.0f requests a second</text>\n",
		LEFT + WIDTH + 40, TOP + HEIGHT + 60, LEFT, perf_batching_names[r->after.batching],
		title, (double)r->ops / r->seconds);
	fputs("<g fill=\"#3b76b5\">\n", out);
	draw_bars(out, &r->latency, &axis);
	fputs("</g>\n<g stroke=\"#222\" fill=\"none\">\n", out);
	fprintf(out, "<path d=\"M%d %d h%d M%d %d v%d\"/>\n</g>\n<g>\n", LEFT, TOP + HEIGHT, WIDTH,
		LEFT, TOP, HEIGHT);
	draw_time_axis(out, &axis);
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.1f %%</text>\n", LEFT - 6,
		TOP + 10, 100 * axis.most);
	fputs("</g>\n<g stroke=\"#b33\" fill=\"none\" stroke-width=\"0.8\">\n", out);
	draw_percentile(out, &r->latency, &axis, 500000, "p50", "end");
	draw_percentile(out, &r->latency, &axis, 990000, "p99", "start");
	fputs("</g>\n</svg>\n", out);
}

int plot_write(const struct perf_options *o, const struct perf_result *r)
{
	FILE *out = fopen(o->plot_path, "we");
	int rc;

	if (!out)
		return failure(o->cmd, "--plot %s: %s", o->plot_path, strerror(errno));
	draw(out, o, r);
	rc = ferror(out);
	if (fclose(out) || rc)
		return failure(o->cmd, "--plot %s: cannot write: %s", o->plot_path,
			       strerror(errno));
	return 0;
}
