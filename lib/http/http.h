/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Handles of libcurl for the library's own requests over HTTP. */
#ifndef WEIR_LIB_HTTP_HTTP_H
#define WEIR_LIB_HTTP_HTTP_H

#include <curl/curl.h>

/*
 * A handle without proxies and signals: curl's timeouts would use SIGALRM, which belongs to the
 * program. The caller owes a curl_easy_cleanup(). Context: any thread. Return: NULL: out of memory.
 */
CURL *weir_http_handle(void);

#endif
