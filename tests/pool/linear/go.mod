// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
module weir/tests/pool/linear

go 1.18

require github.com/anishathalye/porcupine v1.0.2
