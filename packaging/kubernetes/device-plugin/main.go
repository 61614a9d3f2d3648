// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

// Command weir-device-plugin hands softnic to pods: Kubernetes gives a container that asks for
// weir.dev/softnic the library of softnic, and the environment that loads it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
)

func run() error {
	var p plugin
	flag.StringVar(&p.library, "library", "", "`PATH` of libweir-softnic.so here; required")
	flag.StringVar(&p.folder, "folder", "/var/lib/weir/softnic",
		"`FOLDER` of the node that receives the library, mounted here at the same path")
	flag.StringVar(&p.kubelet, "kubelet", "/var/lib/kubelet/device-plugins",
		"`FOLDER` of kubelet's sockets for device plugins")
	flag.IntVar(&p.count, "count", 64, "`NUMBER` of containers that may have softnic at a time")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%s: unexpected: see --help", flag.Arg(0))
	}
	if p.library == "" || p.count < 1 {
		return errors.New("--library and a positive --count are required: see --help")
	}
	return p.serve()
}

// The DaemonSet starts a new process after each error.
func main() {
	log.SetFlags(0)
	log.SetPrefix("weir-device-plugin: ")
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
