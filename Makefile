# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The friendly front. Meson and Ninja do the work: see CONTRIBUTING.md.
.DEFAULT_GOAL := help
.PHONY: help demo check check-suite check-hostile fuzz check-wire check-wire-programs check-repeat check-canary check-mutations check-distros check-vm check-kernel-debug check-pool check-upgrade check-troubles check-chart soak
.PHONY: deb rpm check-deb vm-shell lab bench bench-fs bench-swap build docs modules dkms wheel install uninstall clean
# Meson and Ninja run jobs in parallel by themselves.
.NOTPARALLEL:

BUILD ?= build
MESON_ARGS ?=

help:
	@echo 'make demo     install what is missing, build, and mount remote memory on this machine'
	@echo 'make check    install what is missing, build, and run the tests'
	@echo 'make check-canary  plant bugs, one at a time, and see the tests find each: 30 minutes of CPU'
	@echo 'make check-mutations  change core and wire one operator at a time; a test must notice: hours'
	@echo 'make check-hostile  for SECONDS=60: attackers beside an honest client, whose calls stay as fast'
	@echo 'make fuzz     for MINUTES=60: strangers and hostile peers, by libFuzzer with sanitizers'
	@echo 'make check-distros demo and check on fresh Debian 12, Debian 13 and Ubuntu 24.04; as root'
	@echo 'make check-suite only those that need no virtual machine (part of make check)'
	@echo 'make check-wire  tests over softnic between hosts, on good and bad networks: an hour'
	@echo 'make check-repeat  twenty programs on softnic over and over: an hour for RUNS=1000'
	@echo 'make check-wire-programs  many programs over softnic between hosts, and with Soft-RoCE: an hour'
	@echo 'make check-vm only those that run on Soft-RoCE, in a virtual machine (part of make check)'
	@echo 'make check-pool MINUTES=60 SEED=1: kill and stop the processes of a pool, and check all bytes'
	@echo 'make check-upgrade  an older version and this one as peers, and a rolling upgrade; BASE=REVISION'
	@echo 'make check-troubles  ten troubles of a pool, each by its signs; as root, some ten minutes'
	@echo 'make check-chart  the Helm chart, by Helm itself and by the schemas of Kubernetes'
	@echo 'make check-kernel-debug  /dev/weirN on a kernel with KASAN and lockdep, built once'
	@echo 'make soak     for MINUTES=60: swap to /dev/weir0 while its donors die and come again'
	@echo 'make vm-shell a prompt in that machine'
	@echo "make lab      the papers' figures on a simulated NIC, paper beside model, as one page of HTML"
	@echo 'make bench    compare with a memory-backed file system without a network'
	@echo 'make bench-fs compare with plain verbs, UCX, libfabric and GlusterFS as file systems'
	@echo 'make bench-swap programs that swap: to weir, nbd and a disk, in virtual machines'
	@echo 'make build    build into $(BUILD)/; the command is $(BUILD)/weir'
	@echo 'make docs     the documents as a site, into $(BUILD)/docs-site/site'
	@echo 'make modules  the kernel modules, into $(BUILD)/modules, for this kernel or KERNEL=VERSION'
	@echo 'make dkms     install them with DKMS, which builds them for each kernel; as root'
	@echo "make deb      Debian packages, into $(BUILD)/deb; make check-deb installs and purges them"
	@echo "make rpm      RPMs for Fedora and its kin, into $(BUILD)/rpm"
	@echo "make wheel    build the Python package and softnic's wheel into $(BUILD)/wheels/"
	@echo 'make install  build and install (DESTDIR and MESON_ARGS=--prefix=/usr are heeded)'
	@echo 'make uninstall  remove what "make install" of this folder installed'
	@echo 'make clean    remove $(BUILD)/'

demo:
	@scripts/deps demo
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	ninja -C $(BUILD) weir-demo
	@scripts/demo $(BUILD)/weir

check:
	@$(MAKE) --no-print-directory check-suite && failed=0 || failed=1; \
	$(MAKE) --no-print-directory check-vm && exit $$failed

check-suite:
	@scripts/deps check
	@$(MAKE) --no-print-directory build
	meson test -C $(BUILD) --no-rebuild --print-errorlogs

# What the last "make check" left as its results stays.
check-canary:
	@scripts/deps check
	@$(MAKE) --no-print-directory build
	meson test -C $(BUILD) --no-rebuild --print-errorlogs --logbase canarylog --suite canary

# Goes on where an earlier run was stopped. ONLY="core/sched wire" takes those files alone.
check-mutations:
	@scripts/deps check
	@mkdir -p $(BUILD)
	tests/core/mutations.py $(addprefix --only ,$(ONLY)) --state $(BUILD)/mutations.jsonl . $(CC)

# Each campaign alone: the others would take its CPUs.
check-hostile: SECONDS ?= 60
check-hostile:
	@scripts/deps check
	@$(MAKE) --no-print-directory build
	SECONDS=$(SECONDS) meson test -C $(BUILD) --no-rebuild --logbase hostilelog --suite hostile \
		--num-processes 1 --timeout-multiplier 10 --verbose

fuzz:
	@scripts/deps fuzz
	@tests/fuzz/long $(MINUTES) $(TARGETS)

RELEASES ?= bookworm trixie noble

rpm:
	@scripts/deps rpm
	@rpmlint --config packaging/rpm/rpmlint.toml packaging/rpm/weir.spec
	@scripts/rpm $(BUILD)/rpm
	@ls $(BUILD)/rpm/RPMS/*/*.rpm

# 77: no root of a release can be made here, and the script has said why.
check-distros:
	@scripts/deps distros
	@failed=; for release in $(RELEASES); do \
		scripts/distro-root $$release demo check; \
		case $$? in 0|77) ;; *) failed="$$failed $$release" ;; esac; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# Failures of a pool's processes, from a seed.
SEED ?= 1
check-pool: build
	@for kind in file etcd hosts; do \
		WEIR_TEST_PRELOAD=$(abspath $(BUILD))/softnic/libweir-softnic.so tests/pool/campaign.py \
			--kind $$kind --seed $(SEED) --minutes $(MINUTES) \
			$(BUILD)/weir $(BUILD)/tests/pool/pool_register || [ $$? -eq 77 ] || exit 1; \
	done

# The oldest revision that builds and speaks to this one, unless another is named.
BASE ?= a510046b
check-upgrade:
	@scripts/deps check
	@$(MAKE) --no-print-directory build
	@scripts/check-upgrade $(BASE) $(BUILD)

check-troubles:
	@scripts/deps check
	@$(MAKE) --no-print-directory build
	@tests/packaging/troubles.py check $(BUILD)/weir $(BUILD)/tests/apps/metrics_mover

# 77: no go, and it has said so.
check-chart:
	@scripts/deps wheel
	@scripts/check-chart $(BUILD)/chart || [ $$? -eq 77 ]

# 77: no virtual machine can run here, and it has said why.
check-vm:
	@scripts/deps vm
	@$(MAKE) --no-print-directory build
	tests/vm/vm check $(BUILD) || [ $$? -eq 77 ]

check-kernel-debug:
	@scripts/deps debug
	@$(MAKE) --no-print-directory build
	tests/vm/vm --debug check $(BUILD) 'block device' 'block device with a local disk' || [ $$? -eq 77 ]

MINUTES ?= 60

soak:
	@scripts/deps soak
	@$(MAKE) --no-print-directory build
	tests/vm/vm soak $(BUILD) $(MINUTES) || [ $$? -eq 77 ]

# Ten minutes for each network on two busy cores; WIRE='-c loss' for one. In pieces of half an hour,
# until the exit status is 0: WIRE='--minutes 30 --record wire.json'.
check-wire:
	@scripts/deps check
	@$(MAKE) --no-print-directory build
	tests/softnic/udp/suites.py $(BUILD) $(WIRE)

# An hour: long attacks and copies between hosts, then each program in each way, between two softnics
# and with Soft-RoCE in a virtual machine.
check-wire-programs:
	@scripts/deps check
	@scripts/deps vm
	@$(MAKE) --no-print-directory build
	WEIR_TEST_ROUNDS=300 python3 tests/softnic/udp/hosts_test.py $(BUILD)/weir \
		$(BUILD)/softnic/libweir-softnic.so $(BUILD)/tests/softnic/far_program \
		-k line_rate -k capture
	WEIR_TEST_FILES=10000 python3 tests/softnic/programs/far_programs.py \
		$(BUILD)/softnic/libweir-softnic.so $(BUILD)/weir -k mount
	@python3 tests/softnic/programs/perftest.py $(BUILD)/softnic/libweir-softnic.so --far $(BUILD)/weir \
		--all && failed=0 || failed=1; \
	tests/vm/vm run tests/vm/interop.py $(BUILD)/weir --all || [ $$? -eq 77 ] && exit $$failed

# RUNS=1000 takes an hour on two cores; REPEAT=--kill ends one side of each pair in the middle.
RUNS ?= 200

check-repeat:
	@scripts/deps check
	@$(MAKE) --no-print-directory build
	tests/support/apart net tests/softnic/programs/repeat.py $(BUILD)/softnic/libweir-softnic.so \
		--runs $(RUNS) $(REPEAT)

vm-shell:
	@scripts/deps vm
	@tests/vm/vm shell

lab:
	@scripts/deps lab
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	ninja -C $(BUILD) weir-lab
	$(BUILD)/weir lab report -o $(BUILD)/weir-lab.html

bench:
	@scripts/deps demo
	@$(MAKE) --no-print-directory build
	@bench/run $(BUILD)/weir

bench-fs:
	@scripts/deps bench
	@$(MAKE) --no-print-directory build
	@bench/fs/run $(BUILD)/weir

bench-swap:
	@scripts/deps swap
	@$(MAKE) --no-print-directory build
	@bench/swap/run --build $(BUILD)

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

docs:
	@scripts/deps docs
	@docs/site/build $(BUILD)/docs-site
	@echo $(BUILD)/docs-site/site/index.html

KERNEL ?= $(shell uname -r)

modules:
	@scripts/modules $(BUILD)/modules $(KERNEL)

dkms:
	@scripts/dkms install

deb:
	@scripts/deps deb
	@scripts/deb $(BUILD)/deb
	@lintian --fail-on error,warning $(BUILD)/deb/*.changes
	@ls $(BUILD)/deb/*.deb

# 77: no root of a release can be made here, and the script has said why.
check-deb: deb
	@scripts/deps distros
	@rm -f $(BUILD)/deb/*dbgsym*
	@scripts/distro-root --online --with $(BUILD)/deb bookworm packaging/debian-test $(BUILD)/deb || \
		[ $$? -eq 77 ]

wheel: $(BUILD)/build.ninja
	@scripts/deps wheel
	ninja -C $(BUILD) softnic/libweir-softnic.so
	/usr/bin/python3 -m pip wheel -q --no-deps --no-build-isolation -w $(BUILD)/wheels bindings/python
	@packaging/wheel/build.py $(BUILD)/softnic/libweir-softnic.so \
		$$(sed -n "s/^ *version: '\(.*\)'.*/\1/p" meson.build) $(BUILD)/wheels >/dev/null
	@ls $(BUILD)/wheels/*.whl

$(BUILD)/build.ninja:
	@scripts/deps build
	meson setup $(BUILD) $(MESON_ARGS)

install: build
	meson install -C $(BUILD) --no-rebuild

# Meson has kept a list of the files, DESTDIR included.
uninstall:
	ninja -C $(BUILD) uninstall

clean:
	rm -rf $(BUILD)
