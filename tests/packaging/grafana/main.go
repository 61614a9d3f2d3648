// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

// Reads dashboards by the types of Grafana's own library: main FILE... Unknown fields, absent ones
// and values out of bounds are errors.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The library's lists of errors are not nil when they are empty.
func isEmpty(err error) bool {
	return err == nil || err.Error() == ""
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var board dashboard.Dashboard
	if err := board.UnmarshalJSONStrict(text); !isEmpty(err) {
		return err
	}
	if err := board.Validate(); !isEmpty(err) {
		return err
	}
	return nil
}

func main() {
	plugins.RegisterDefaultPlugins()
	status := 0
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Printf("%s: %v\n", path, err)
			status = 1
		}
	}
	os.Exit(status)
}
