/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The path to another host, from below to above: addresses, ports, packets, sizes, then a session
 * and its data. Each check needs what the checks before it have proven.
 */
#include "apps/common/number.h"
#include "apps/common/size.h"
#include "apps/doctor/check.h"
#include "apps/doctor/host.h"
#include "apps/doctor/transfer.h"
#include "lib/base/clock.h"
#include "lib/conn/address.h"
#include "softnic/control/cipher.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 5 /* of a question: 1.6 s */
#define STREAM_COUNT 1000
#define SLOW_US 2000.0 /* median round trip; a busy machine answers in less */
#define LOSS_PERCENT_MAX 10 /* more is broken */
#define BURST_SECONDS 1
#define PORTS "28673 to 29695"

/* The address without its port, for messages. */
static void name_host(struct far_host *h)
{
	const struct sockaddr *at = h->address->ai_addr;

	inet_ntop(at->sa_family,
		  at->sa_family == AF_INET ?
			  (const void *)&((const struct sockaddr_in *)at)->sin_addr :
			  (const void *)&((const struct sockaddr_in6 *)at)->sin6_addr,
		  h->name, sizeof(h->name));
}

int host_resolve(struct far_host *h, struct weir_error *error)
{
	int rc = weir_address_resolve(h->donor, NULL, &h->address, error);

	if (rc)
		return rc;
	if (!probe_is_of_one_host(h->address->ai_addr)) {
		freeaddrinfo(h->address);
		snprintf(error->text, sizeof(error->text), "'%s' is not the address of one host",
			 h->donor);
		return -EINVAL;
	}
	name_host(h);
	return 0;
}

static bool check_route(struct report *report, struct far_host *h)
{
	char from[WEIR_ADDRESS_MAX];
	int rc = probe_open(&h->probe, h->address->ai_addr);

	if (rc) {
		report_add(report, "route", VERDICT_FAIL, "%s: %s", h->name, strerror(-rc));
		report_remedy(report, rc == -EADDRINUSE ?
					      "free one of the UDP ports " PORTS " of this host" :
					      "give this host a route: ip route get ADDRESS");
		return false;
	}
	inet_ntop(h->probe.is_ipv4 ? AF_INET : AF_INET6,
		  h->probe.from.sin6_addr.s6_addr + (h->probe.is_ipv4 ? 12 : 0), from,
		  sizeof(from));
	h->payload = probe_payload(&h->probe);
	report_add(report, "route", h->payload ? VERDICT_OK : VERDICT_FAIL,
		   "far: from %s to %s over UDP, on a link with an MTU of %d", from, h->name,
		   h->probe.link_mtu);
	if (!h->payload)
		report_remedy(report, "raise the MTU: softnic needs 400 bytes");
	return h->payload;
}

/* @roce: what came of port 4791, no answer; @other: of the other ports */
static void add_roce_port(struct report *report, const struct far_host *h, struct probe_answer roce,
			  struct probe_answer other)
{
	if (other.outcome == PROBE_ANSWERED) {
		report_add(report, "UDP 4791", VERDICT_FAIL,
			   "UDP port 4791 to %s gets no answer, but port %u does", h->name,
			   other.port);
		report_remedy(report,
			      "open UDP port 4791 to %s in its firewall; if Soft-RoCE or another "
			      "user's program has the port there, end that",
			      h->name);
		return;
	}
	if (other.outcome == PROBE_REFUSED) {
		report_add(report, "UDP 4791", VERDICT_FAIL, "%s cannot be reached: %s", h->name,
			   strerror(other.error));
		report_remedy(report, "is the address right, and that host up? ping %s", h->name);
		return;
	}
	if (roce.outcome == PROBE_REFUSED) {
		report_add(report, "UDP 4791", VERDICT_FAIL, "%s refuses UDP port 4791", h->name);
		report_remedy(report,
			      "start weir serve on %s; if it runs, its firewall rejects: open UDP "
			      "port 4791, and ports " PORTS,
			      h->name);
		return;
	}
	report_add(report, "UDP 4791", VERDICT_FAIL,
		   "UDP port 4791 to %s gets no answer, nor do ports " PORTS, h->name);
	report_remedy(report,
		      "start weir serve on %s; if it runs, open UDP port 4791, and ports " PORTS
		      ", in the firewalls of both hosts",
		      h->name);
}

/*
 * Port 4791 answers from itself, which any firewall that knows flows lets pass, and from the
 * process's own port, which to this host's firewall comes unasked.
 */
static bool check_ports(struct report *report, struct far_host *h)
{
	struct probe *p = &h->probe;
	struct probe_answer roce, unasked, asked, other;

	roce = probe_ask(p, PROBE_ROCE_PORT, QUESTION_SAME_PORT, PROBE_QUESTION_BYTES, TRIES);
	if (roce.outcome != PROBE_ANSWERED) {
		add_roce_port(report, h, roce, probe_find(p));
		return false;
	}
	report_add(report, "UDP 4791", VERDICT_OK, "a softnic answers at %s", h->name);
	unasked = probe_ask(p, PROBE_ROCE_PORT, QUESTION, PROBE_QUESTION_BYTES, TRIES);
	other = unasked.outcome == PROBE_ANSWERED ? unasked : probe_find(p);
	h->port = other.port;
	asked = probe_ask(p, h->port ? h->port : PROBE_PORT_MIN, QUESTION, PROBE_QUESTION_BYTES,
			  TRIES);
	if (!h->port || asked.outcome != PROBE_ANSWERED) {
		report_add(report, "UDP to there", VERDICT_FAIL,
			   "UDP ports " PORTS " to %s get no answer", h->name);
		report_remedy(report,
			      "open UDP ports " PORTS " in the firewall of %s, and for answers "
			      "in that of this host",
			      h->name);
		return false;
	}
	report_add(report, "UDP to there", VERDICT_OK, "port %u of %s answers port %u here",
		   h->port, h->name, p->port);
	if (unasked.outcome != PROBE_ANSWERED) {
		report_add(report, "UDP to here", VERDICT_FAIL,
			   "what %s sends unasked to UDP port %u of this host does not arrive",
			   h->name, p->port);
		report_remedy(report, "open UDP ports " PORTS " in the firewall of this host");
		return false;
	}
	report_add(report, "UDP to here", VERDICT_OK, "port %u of %s reaches port %u here unasked",
		   h->port, h->name, p->port);
	return true;
}

static double percent(unsigned int part, unsigned int whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static bool check_loss(struct report *report, const struct far_host *h,
		       const struct probe_flow *flow)
{
	unsigned int lost = flow->sent - flow->answered;
	double share = percent(lost, flow->sent);

	report_measure(report, "loss_percent", share);
	report_add(report, "loss",
		   !lost ? VERDICT_OK : share <= LOSS_PERCENT_MAX ? VERDICT_WARN : VERDICT_FAIL,
		   "%u of %u round trips lost (%.1f %%)", lost, flow->sent, share);
	if (lost)
		report_remedy(report,
			      "softnic sends lost packets again, and is slower; look for a full "
			      "link, a bad cable, or a busy host: ping -f %s",
			      h->name);
	return share <= LOSS_PERCENT_MAX;
}

static void check_order(struct report *report, const struct probe_flow *flow)
{
	bool odd = flow->overtaken || flow->repeated;

	report_measure(report, "reordered_percent", percent(flow->overtaken, flow->answered));
	report_measure(report, "duplicated_percent", percent(flow->repeated, flow->answered));
	report_add(report, "order", odd ? VERDICT_WARN : VERDICT_OK,
		   "%u of %u answers out of order, %u twice", flow->overtaken, flow->answered,
		   flow->repeated);
	if (odd)
		report_remedy(report, "softnic copes, and is slower: it goes back to a packet that "
				      "others have overtaken; look for links used by turns");
}

static bool check_packets(struct report *report, struct far_host *h)
{
	struct probe_flow flow;
	double least, median;
	bool is_usable;

	if (probe_stream(&h->probe, h->port, STREAM_COUNT, &flow)) {
		report_add(report, "round trip", VERDICT_FAIL, "out of memory");
		return false;
	}
	if (flow.answered) {
		least = (double)flow.rtt_ns[0] / 1e3;
		median = (double)flow.rtt_ns[number_quantile(flow.answered, 50)] / 1e3;
		report_measure(report, "round_trip_least_us", least);
		report_measure(report, "round_trip_median_us", median);
		report_add(report, "round trip", median > SLOW_US ? VERDICT_WARN : VERDICT_OK,
			   "%.0f us at least, median %.0f us", least, median);
		if (least > SLOW_US)
			report_remedy(report,
				      "%s answers slowly: its processors are busy (top there), or "
				      "the path is long: compare ping -c 10 %s",
				      h->name, h->name);
		else if (median > SLOW_US)
			report_remedy(report,
				      "the path is fast at times: processors are busy, here or at "
				      "%s; compare uptime on both",
				      h->name);
	}
	is_usable = check_loss(report, h, &flow);
	check_order(report, &flow);
	free(flow.rtt_ns);
	return is_usable;
}

static void add_small_path(struct report *report, struct far_host *h, size_t refused)
{
	size_t passes = probe_packet_bytes(&h->probe, h->port, refused);

	report_measure(report, "path_mtu_bytes", (double)passes);
	report_add(report, "MTU", VERDICT_FAIL,
		   "IP packets of at most %zu bytes pass, but softnic sends %zu: the link's MTU "
		   "here is %d",
		   passes, refused, h->probe.link_mtu);
	report_remedy(report,
		      "set an MTU of %zu on both hosts: ip link set dev NETDEV mtu %zu; or let "
		      "larger packets pass in between",
		      passes, passes);
}

static bool check_mtu(struct report *report, struct far_host *h)
{
	size_t bytes = probe_largest(&h->probe, h->payload);

	report_measure(report, "softnic_mtu_bytes", h->payload);
	if (!probe_passes(&h->probe, h->port, bytes, TRIES)) {
		add_small_path(report, h, bytes);
		return false;
	}
	report_add(report, "MTU", VERDICT_OK,
		   "softnic takes %u bytes a packet; IP packets of %zu bytes pass, the largest "
		   "that it sends",
		   h->payload, bytes);
	return true;
}

static void check_cipher(struct report *report, const struct far_host *h, const char *cipher)
{
	const char *best = softnic_cipher();

	if (!*cipher) {
		report_add(report, "encryption", VERDICT_OK,
			   "none: %s", h->is_here ? "no packet leaves this host" :
						    "the device does not encrypt");
		return;
	}
	if (!strcmp(cipher, SOFTNIC_CIPHER_NONE)) {
		report_add(report, "encryption", VERDICT_WARN, "none: packets are in clear text");
		report_remedy(report, "give both ends one key, and no --no-encrypt or --encrypt");
		return;
	}
	report_add(report, "encryption", VERDICT_OK, "%s, as %s; %s", cipher,
		   !strcmp(cipher, SOFTNIC_CIPHER_AES) ? "both CPUs have AES instructions" :
		   !strcmp(best, SOFTNIC_CIPHER_AES)   ? "the other CPU has no AES instructions" :
							 "this CPU has no AES instructions",
		   h->encryption == WEIR_ENCRYPTION_AUTO ?
			   "not required: --encrypt=auto takes clear text, too" :
			   "required: else the hosts do not connect");
}

static void check_session(struct report *report, const struct far_host *h)
{
	struct data_proof t = {
		.address = h->donor,
		.device = h->device,
		.key = h->key,
		.encryption = h->encryption,
		.seconds = BURST_SECONDS,
	};
	struct weir_error error = { "" };

	int rc = transfer_prove(&t, &error);

	if (rc == -ENOSPC || rc == -EDQUOT) {
		report_add(report, "throughput", VERDICT_WARN, "not measured: %s", error.text);
		report_remedy(report, "the measurement needs 16 MiB that the donor has not lent");
		return;
	}
	if (rc) {
		report_add(report, "session", VERDICT_FAIL, "%s", error.text);
		report_remedy(report, "%s",
			      rc == -ECONNREFUSED ? "start weir serve --listen there, with this "
						    "address and port" :
			      h->key ? "the donor's own messages say more; weir ping repeats this" :
				       "give the donor's key: --key FILE");
		return;
	}
	report_add(report, "session", VERDICT_OK, "with %s over %s", t.info.peer, t.info.device);
	check_cipher(report, h, t.info.encryption);
	report_measure(report, "write_bytes_per_s", t.write_mbps * 1e6);
	report_measure(report, "read_bytes_per_s", t.read_mbps * 1e6);
	report_add(report, "throughput", VERDICT_OK,
		   "%s written and read back, all equal: write %.1f MB/s, read %.1f MB/s, 4 KiB in "
		   "%.0f and %.0f us",
		   size_format(t.bytes).text, t.write_mbps, t.read_mbps, t.write_us, t.read_us);
}

/* Each step prints its findings, so that Ctrl-C leaves those so far. */
static bool step(struct report *report, struct far_host *h, const char *now,
		 bool (*check)(struct report *report, struct far_host *h))
{
	bool goes_on;

	report_progress(report, now);
	goes_on = check(report, h);
	if (!h->is_quiet)
		report_print_new(report);
	return goes_on;
}

static bool check_wire(struct report *report, struct far_host *h)
{
	bool goes_on = step(report, h, "looking for a route", check_route) &&
		       step(report, h, "asking UDP ports", check_ports) &&
		       step(report, h, "counting packets", check_packets) &&
		       step(report, h, "trying sizes of packets", check_mtu);

	probe_close(&h->probe);
	return goes_on;
}

void check_host(struct report *report, struct far_host *h)
{
	h->probe.fd = -1;
	h->is_here = probe_is_here(h->address->ai_addr);
	if (h->is_here)
		report_add(report, "route", VERDICT_OK, "near: %s is this host%s", h->name,
			   h->is_softnic ? ", and softnic uses shared memory" : "");
	else if (h->is_softnic && !check_wire(report, h))
		return;
	if (h->packets_only)
		return;
	report_progress(report, "moving data");
	check_session(report, h);
}

/* Adds what is not well; else one line. */
static void add_path(struct report *report, const struct report *found, const char *label,
		     const struct far_host *h)
{
	for (unsigned int i = 0; i < found->count; i++) {
		const struct finding *finding = &found->findings[i];

		if (finding->verdict == VERDICT_OK)
			continue;
		report_add(report, finding->check, finding->verdict, "%s at %s: %s", label, h->name,
			   finding->text);
		report_remedy(report, "%s", finding->remedy);
	}
	if (!found->count) {
		report_add(report, "path", VERDICT_WARN, "%s at %s: not checked", label, h->name);
		report_remedy(report, "give the donor's key: --key FILE");
	} else if (report_count(found, VERDICT_OK) == found->count) {
		report_add(report, "path", VERDICT_OK, "%s at %s: %s", label, h->name,
			   h->packets_only ? "packets are well; no session tried without --key" :
			   h->is_here	   ? "on this host; a session is well" :
					     "packets and a session are well");
	}
}

void check_donor_path(struct report *report, const char *label, const char *address,
		      const struct far_host *path)
{
	struct report *found = calloc(1, sizeof(*found));
	struct far_host h = *path;
	struct weir_error error;

	h.donor = address;
	h.is_quiet = true;
	h.packets_only = !h.key;
	if (!found) {
		report_add(report, "path", VERDICT_FAIL, "out of memory");
	} else if (host_resolve(&h, &error)) {
		report_add(report, "path", VERDICT_FAIL, "%s: %s", label, error.text);
		report_remedy(report, "start the donor with an address that clients can reach: "
				      "weir serve --listen ADDRESS");
	} else {
		check_host(found, &h);
		report->shows_progress |= found->shows_progress;
		if (!h.is_here || !h.packets_only) /* no packet leaves this host */
			add_path(report, found, label, &h);
		freeaddrinfo(h.address);
	}
	free(found);
}
