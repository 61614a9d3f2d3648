/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/negotiate.h"

#include <stdlib.h>
#include <strings.h>

#define PARAMETERS_MAX 2

/* A type that is offered. A range with another value of a parameter is another type. */
struct offer {
	enum exposition_format format;
	const char *type;
	struct {
		const char *name, *value;
	} parameters[PARAMETERS_MAX];
};

static const struct offer offers[] = {
	{ EXPOSITION_PROTOBUF,
	  "application/vnd.google.protobuf",
	  { { "proto", "io.prometheus.client.MetricFamily" }, { "encoding", "delimited" } } },
	{ EXPOSITION_OPENMETRICS, "application/openmetrics-text", { { "version", "1.0.0" } } },
	{ EXPOSITION_TEXT, "text/plain", { { "version", "0.0.4" } } },
	{ EXPOSITION_TEXT, "text/*" },
	{ EXPOSITION_TEXT, "*/*" },
};

/* Cuts blanks and quotes around @text. */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t\"");
	end = text + strlen(text);
	while (end > text && strchr(" \t\"", end[-1]))
		end--;
	*end = '\0';
	return text;
}

static bool parameter_fits(const struct offer *offer, const char *name, const char *value)
{
	for (int i = 0; i < PARAMETERS_MAX && offer->parameters[i].name; i++)
		if (!strcasecmp(name, offer->parameters[i].name))
			return !strcasecmp(value, offer->parameters[i].value);
	return true;
}

/* The weight that a range, "TYPE;NAME=VALUE;...;q=WEIGHT", gives an offer; 0: none. Cuts @range. */
static double weight_of(const struct offer *offer, char *range)
{
	char *state, *part = strtok_r(range, ";", &state);
	double weight = 1;

	if (!part || strcasecmp(trim(part), offer->type))
		return 0;
	while ((part = strtok_r(NULL, ";", &state))) {
		char *value = strchr(part, '='), *name;

		if (!value)
			continue;
		*value++ = '\0';
		name = trim(part);
		value = trim(value);
		if (!strcasecmp(name, "q"))
			weight = strtod(value, NULL);
		else if (!parameter_fits(offer, name, value))
			return 0;
	}
	return weight;
}

enum exposition_format metrics_negotiate(const char *accept)
{
	enum exposition_format best = EXPOSITION_TEXT;
	double best_weight = 0;

	for (size_t i = 0; accept && i < sizeof(offers) / sizeof(offers[0]); i++) {
		char *copy = strdup(accept), *state = NULL;

		for (char *range = copy ? strtok_r(copy, ",", &state) : NULL; range;
		     range = strtok_r(NULL, ",", &state)) {
			double weight = weight_of(&offers[i], range);

			if (weight > best_weight) {
				best_weight = weight;
				best = offers[i].format;
			}
		}
		free(copy);
	}
	return best;
}
