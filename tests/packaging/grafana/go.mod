// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
module weir/tests/packaging/grafana

go 1.21

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
