/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/negotiate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define PROTOBUF                         \
	"application/vnd.google.protobuf;" \
	"proto=io.prometheus.client.MetricFamily;encoding="

static const struct {
	const char *name, *accept;
	enum exposition_format format;
} cases[] = {
	{ "no header", NULL, EXPOSITION_TEXT },
	{ "an empty header", "", EXPOSITION_TEXT },
	{ "a browser", "text/html,application/xml;q=0.9,*/*;q=0.8", EXPOSITION_TEXT },
	{ "curl", "*/*", EXPOSITION_TEXT },
	{ "nothing that is offered", "image/png", EXPOSITION_TEXT },
	{ "Prometheus 2.42",
	  "application/openmetrics-text;version=1.0.0,"
	  "application/openmetrics-text;version=0.0.1;q=0.75,"
	  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	  EXPOSITION_OPENMETRICS },
	{ "Prometheus 2.42 with native histograms",
	  PROTOBUF "delimited,application/openmetrics-text;version=1.0.0,"
		   "application/openmetrics-text;version=0.0.1;q=0.75,"
		   "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	  EXPOSITION_PROTOBUF },
	{ "Prometheus 3, which weighs each",
	  "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6," PROTOBUF
	  "delimited;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2",
	  EXPOSITION_OPENMETRICS },
	{ "the only version of text is another", "text/plain;version=1.0.0", EXPOSITION_TEXT },
	{ "another encoding of protocol buffers", PROTOBUF "text,text/plain;q=0.1",
	  EXPOSITION_TEXT },
	{ "another message",
	  "application/vnd.google.protobuf;proto=other;encoding=delimited,text/plain;q=0.1",
	  EXPOSITION_TEXT },
	{ "blanks, quotes and capitals",
	  "Application/OpenMetrics-Text ; Version = \"1.0.0\" ; Q = 0.9 , text/plain ; q = 0.8",
	  EXPOSITION_OPENMETRICS },
	{ "a weight of 0 refuses", "application/openmetrics-text;q=0,text/plain;q=0.1",
	  EXPOSITION_TEXT },
	{ "a header cut short", "application/openmetrics-text;version", EXPOSITION_OPENMETRICS },
	{ "separators alone", ",;,;;=,", EXPOSITION_TEXT },
};

static void the_heaviest_offer_wins(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (metrics_negotiate(cases[i].accept) != cases[i].format)
			fail_msg("%s: %s", cases[i].name, cases[i].accept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_heaviest_offer_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
