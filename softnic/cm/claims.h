/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Claims on ports: the names of the sockets that hold claims, and the rules of exclusion.
 */
#ifndef WEIR_SOFTNIC_CM_CLAIMS_H
#define WEIR_SOFTNIC_CM_CLAIMS_H

#include <stddef.h>
#include <stdint.h>

#define CM_CLAIM_ADDR_MAX 64

/**
 * struct cm_claim - an address and port held by a process
 * @addr: as text; a link-local address ends in %SCOPE
 * @port: in host byte order
 * @token: unique among claims with RDMA_OPTION_ID_REUSEADDR; 0 for other claims
 */
struct cm_claim {
	char addr[CM_CLAIM_ADDR_MAX];
	uint16_t port;
	uint32_t token;
};

/**
 * cm_claim_name() - format the name of the socket that holds a claim
 * @name: set to the name, without the leading zero byte of abstract names
 * @size: of @name in bytes; 107 are enough
 * @space: the port space
 *
 * Return: the length of the name.
 */
int cm_claim_name(char *name, size_t size, const char *space, const struct cm_claim *claim);

/**
 * cm_claim_parse() - parse a name made by cm_claim_name()
 *
 * Return: 0, or -EINVAL if the name is not a claim of this user in @space.
 */
int cm_claim_parse(struct cm_claim *claim, const char *space, const char *name);

/**
 * cm_claim_conflict() - check that two claims can coexist, as the kernel's rdma_cm does
 *
 * Return: 0, -EADDRINUSE if both claim the same address, -EADDRNOTAVAIL if one is a wildcard.
 */
int cm_claim_conflict(const struct cm_claim *a, const struct cm_claim *b);

/**
 * cm_claims_check() - check a claim against the other claims of this user
 * @claim: already held; skipped in the search
 * @own_token: of a claim of the same id that is about to end; or 0
 *
 * Connected sockets hold no claim, because accept() gives a socket the name of its listener.
 * Without /proc, the function finds no claims.
 *
 * Return: as cm_claim_conflict().
 */
int cm_claims_check(const char *space, const struct cm_claim *claim, uint32_t own_token);

#endif
