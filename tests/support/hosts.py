# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Hosts for tests, which are the network namespaces h1, h2, ... of 'weir lab net'."""
import os
import subprocess
import unittest

PATIENCE_S = 100


class Net:
    """A network of this process, from up() to down()."""

    def __init__(self, weir, name):
        self.weir = weir
        os.environ["WEIR_NET"] = f"{name}{os.getpid()}"

    def run(self, *words):
        return subprocess.run([self.weir, "lab", "net", *words], capture_output=True, text=True,
                              check=False, timeout=PATIENCE_S)

    def up(self, hosts, cleanup):
        """Make the hosts. Skip where namespaces cannot be made. @cleanup takes what ends them."""
        cleanup(self.run, "down")
        tried = self.run("up", str(hosts))
        if tried.returncode:
            raise unittest.SkipTest(f"no namespaces: {tried.stderr.strip()}")

    def on(self, host, *words, **variables):
        """The command line that runs @words on a host, with some variables of the environment."""
        return [self.weir, "lab", "net", "run", host, "--", "env",
                *(f"{name}={value}" for name, value in variables.items()), *words]
