/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/http/http.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

CURL *weir_http_handle(void)
{
	CURL *curl;

	pthread_once(&once, init_curl);
	curl = curl_easy_init();
	if (!curl)
		return NULL;
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	return curl;
}
