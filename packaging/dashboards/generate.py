#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Write Grafana's dashboards from the panels below and the reference of metrics.

generate.py METRICS FOLDER

METRICS is docs/reference/metrics.md. A panel shows metrics by name: from the reference come its
description and, for a counter, the rate. Unknown names are errors.
"""
import dataclasses
import json
import pathlib
import re
import sys

ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", re.M)
WIDTH, HEIGHT = 8, 7  # of a panel; a row is 24 wide
SELECTED = 'instance=~"$instance"'


@dataclasses.dataclass(frozen=True)
class Panel:
    """@shown: (metric, labels to sum by, legend). Units are Grafana's names."""
    title: str
    unit: str
    shown: tuple


@dataclasses.dataclass(frozen=True)
class Board:
    name: str
    title: str
    about: str
    rows: dict


BY_PROCESS = ("instance, process", "{{instance}} {{process}}")
BY_DONOR = ("instance", "{{instance}}")
BY_TENANT = ("instance, tenant, process", "{{process}} {{tenant}}")


def panel(title, unit, by, *metrics):
    """Metrics of one source; the legend tells them apart if there are several."""
    labels, legend = by
    return Panel(title, unit, tuple(
        (name, labels, legend if len(metrics) == 1 else f"{legend} {what}")
        for name, what in metrics))


BOARDS = (
    Board("weir-host", "weir: a host", "Sessions, mounts and softnic of the processes of a host.", {
        "Sessions": (
            panel("Requests", "reqps", BY_PROCESS, ("weir_session_requests_total", "")),
            panel("Bytes", "Bps", BY_PROCESS, ("weir_session_read_bytes_total", "read"),
                  ("weir_session_written_bytes_total", "written")),
            panel("Latency, 99th percentile", "s",
                  ("instance, process, operation", "{{process}} {{operation}}"),
                  ("weir_session_request_duration_seconds", "")),
            panel("Work requests and doorbells", "ops", BY_PROCESS,
                  ("weir_session_work_requests_total", "work requests"),
                  ("weir_session_doorbells_total", "doorbells")),
            panel("Completion events and sleeps", "ops", BY_PROCESS,
                  ("weir_session_completion_events_total", "events"),
                  ("weir_session_sleeps_total", "sleeps")),
            panel("Bytes in flight, and the window", "bytes", BY_PROCESS,
                  ("weir_session_in_flight_bytes", "in flight"),
                  ("weir_session_window_bytes", "window")),
        ),
        "Trouble": (
            panel("Failures", "ops", BY_PROCESS,
                  ("weir_session_failed_work_requests_total", "failed"),
                  ("weir_session_retries_total", "posted again"),
                  ("weir_session_reconnects_total", "reconnected")),
            panel("Failures by cause", "ops", ("process, cause", "{{process}} {{cause}}"),
                  ("weir_session_failures_total", "")),
            panel("Waits for the window", "ops", BY_PROCESS,
                  ("weir_session_window_waits_total", "")),
            panel("Mounts that are up", "bool_on_off", ("mountpoint", "{{mountpoint}}"),
                  ("weir_mount_up", "")),
        ),
        "Mounts": (
            panel("Operations, 99th percentile", "s",
                  ("mountpoint, operation", "{{mountpoint}} {{operation}}"),
                  ("weir_mount_operation_duration_seconds", "")),
            panel("Operations in flight", "short", ("mountpoint", "{{mountpoint}}"),
                  ("weir_mount_in_flight_operations", "in flight"),
                  ("weir_mount_waiting_threads", "waiting")),
            panel("Inodes", "short", ("mountpoint", "{{mountpoint}}"), ("weir_mount_inodes", "")),
        ),
        "All mounts of the host, by weir metrics": (
            panel("Operations", "ops", ("mountpoint, operation", "{{mountpoint}} {{operation}}"),
                  ("weir_host_mount_operations_total", "")),
            panel("Operations, 99th percentile", "s",
                  ("mountpoint, operation", "{{mountpoint}} {{operation}}"),
                  ("weir_host_mount_operation_duration_seconds", "")),
            panel("Operations in flight", "short", ("mountpoint", "{{mountpoint}}"),
                  ("weir_host_mount_in_flight_operations", "in flight"),
                  ("weir_host_mount_waiting_threads", "waiting")),
        ),
        "softnic": (
            panel("Bytes moved", "Bps", BY_PROCESS, ("weir_softnic_read_bytes_total", "read"),
                  ("weir_softnic_written_bytes_total", "written"),
                  ("weir_softnic_sent_bytes_total", "sent")),
            panel("Packets to other hosts", "pps", ("peer", "{{peer}}"),
                  ("weir_softnic_peer_transmitted_packets_total", "sent"),
                  ("weir_softnic_peer_retransmitted_packets_total", "sent again"),
                  ("weir_softnic_peer_timeouts_total", "timeouts")),
            panel("Queue pairs and memory regions", "short", BY_PROCESS,
                  ("weir_softnic_queue_pairs", "queue pairs"),
                  ("weir_softnic_memory_regions", "memory regions")),
        ),
    }),
    Board("weir-pool", "weir: a pool", "Donors and groups of a pool: weir metrics --pool.", {
        "Pool": (
            panel("Groups", "short", ("pool, state", "{{pool}} {{state}}"),
                  ("weir_pool_groups", "")),
            panel("Donors", "short", ("pool, state", "{{pool}} {{state}}"),
                  ("weir_pool_donors", "")),
            panel("Memory of donors, and volumes without copies", "bytes", ("pool", "{{pool}}"),
                  ("weir_pool_memory_bytes", "memory"), ("weir_pool_volume_bytes", "volumes")),
            panel("Volumes", "short", ("pool", "{{pool}}"), ("weir_pool_volumes", "")),
            panel("Members to be rebuilt", "short", ("pool", "{{pool}}"),
                  ("weir_pool_syncing_members", "")),
            panel("Map can be read", "bool_on_off", ("pool", "{{pool}}"), ("weir_pool_up", "")),
        ),
    }),
    Board("weir-donors", "weir: donors", "The donors of all hosts, side by side.", {
        "Memory": (
            panel("Lent", "bytes", BY_DONOR, ("weir_donor_lent_bytes", "")),
            panel("Limit", "bytes", BY_DONOR, ("weir_donor_limit_bytes", "")),
            panel("Available on the machine", "bytes", BY_DONOR,
                  ("weir_donor_machine_available_bytes", "")),
        ),
        "Clients": (
            panel("Clients and regions", "short", BY_DONOR, ("weir_donor_clients", "clients"),
                  ("weir_donor_regions", "regions")),
            panel("Clients that come", "ops", BY_DONOR,
                  ("weir_donor_joined_clients_total", "joined"),
                  ("weir_donor_rejected_clients_total", "rejected")),
            panel("Messages, and unloaded writes", "ops", BY_DONOR,
                  ("weir_donor_messages_total", "messages"),
                  ("weir_donor_unloaded_writes_total", "unloaded"),
                  ("weir_donor_refused_unloaded_writes_total", "refused")),
        ),
        "File systems": (
            panel("Bytes used", "bytes", ("instance, tenant", "{{instance}} {{tenant}}"),
                  ("weir_file_server_used_bytes", "used"),
                  ("weir_file_server_limbo_bytes", "in limbo")),
            panel("Files", "short", ("instance, tenant", "{{instance}} {{tenant}}"),
                  ("weir_file_server_files", "")),
            panel("Clients", "short", ("instance, tenant", "{{instance}} {{tenant}}"),
                  ("weir_file_server_clients", "")),
        ),
    }),
    Board("weir-tenants", "weir: tenants", "The tenants of weir share, and what each gets.", {
        "Shares": (
            panel("Bytes sent", "Bps", BY_TENANT, ("weir_share_tenant_sent_bytes_total", "")),
            panel("Bytes received", "Bps", BY_TENANT,
                  ("weir_share_tenant_received_bytes_total", "")),
            panel("Weight", "short", BY_TENANT, ("weir_share_tenant_weight", "")),
            panel("Rate limit", "Bps", BY_TENANT, ("weir_share_tenant_rate_limit_bytes", "")),
        ),
        "Waiting and room": (
            panel("Part of the time that a tenant waits for turns", "percentunit", BY_TENANT,
                  ("weir_share_tenant_waited_seconds_total", "")),
            panel("Connections", "short", BY_TENANT, ("weir_share_tenant_connections", "open"),
                  ("weir_share_tenant_connections_limit", "limit")),
            panel("Memory", "bytes", BY_TENANT, ("weir_share_tenant_memory_bytes", "")),
        ),
        "Classes": (
            panel("Bytes sent", "Bps", ("process, class", "{{process}} class {{class}}"),
                  ("weir_share_tenant_class_sent_bytes_total", "")),
            panel("Bytes received", "Bps", ("process, class", "{{process}} class {{class}}"),
                  ("weir_share_tenant_class_received_bytes_total", "")),
            panel("Part of the time that connections wait for turns", "percentunit",
                  ("process, class", "{{process}} class {{class}}"),
                  ("weir_share_tenant_class_waited_seconds_total", "")),
        ),
    }),
)


def query(name, kind, labels):
    """PromQL for a metric, by its type."""
    if kind == "histogram":
        native, classic = (
            f"histogram_quantile(0.99, sum by ({labels}{bound}) "
            f"(rate({name}{suffix}{{{SELECTED}}}[$__rate_interval])))"
            for bound, suffix in (("", ""), (", le", "_bucket")))
        return f"{native} or {classic}"
    if kind == "counter":
        return f"sum by ({labels}) (rate({name}{{{SELECTED}}}[$__rate_interval]))"
    return f"sum by ({labels}) ({name}{{{SELECTED}}})"


def make_panel(described, known, number, x, y):
    targets = [{
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "expr": query(name, known[name][0], labels),
        "legendFormat": legend,
        "refId": chr(ord("A") + i),
    } for i, (name, labels, legend) in enumerate(described.shown)]
    return {
        "id": number,
        "type": "timeseries",
        "title": described.title,
        "description": "\n".join(f"{name}: {known[name][1]}." for name, _, _ in described.shown),
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": described.unit, "min": 0}, "overrides": []},
        "options": {"tooltip": {"mode": "multi", "sort": "desc"},
                    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True,
                               "calcs": []}},
        "targets": targets,
    }


def make_panels(board, known):
    panels, y = [], 0
    for title, described in board.rows.items():
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False,
                       "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}, "panels": []})
        y += 1
        for i, one in enumerate(described):
            panels.append(make_panel(one, known, len(panels) + 1, i % 3 * WIDTH,
                                     y + i // 3 * HEIGHT))
        y += (len(described) + 2) // 3 * HEIGHT
    return panels


def make_board(board, known):
    return {
        "uid": board.name,
        "title": board.title,
        "description": board.about,
        "tags": ["weir"],
        "schemaVersion": 36,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "annotations": {"list": []},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"},
            {"name": "instance", "type": "query", "label": "Instance", "refresh": 2,
             "datasource": {"type": "prometheus", "uid": "${datasource}"},
             "query": "label_values(weir_build_info, instance)",
             "includeAll": True, "multi": True, "allValue": ".*",
             "current": {"text": "All", "value": "$__all"}},
        ]},
        "panels": make_panels(board, known),
    }


def main(metrics, folder):
    text = pathlib.Path(metrics).read_text(encoding="utf-8")
    known = {name: (kind, meaning) for name, kind, meaning in ROW.findall(text)}
    for board in BOARDS:
        path = pathlib.Path(folder, f"{board.name}.json")
        path.write_text(json.dumps(make_board(board, known), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
