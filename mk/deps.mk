# The one list of Debian packages: what building, running and the unit tests need, what all other
# tests need on top, and what only the linters, sanitizers and fuzzers need.
BUILD_PACKAGES := build-essential pkg-config libsystemd-dev libcurl4-openssl-dev libjson-c-dev \
	libhwloc-dev libnuma-dev libmicrohttpd-dev libgnutls28-dev libarchive-dev \
	libfyaml-dev libsqlite3-dev libpcre2-dev uthash-dev zlib1g-dev libcmocka-dev python3-torch \
		python3-numpy procps curl scdoc
TEST_PACKAGES := man-db strace openssl python3-yaml iproute2 jq chromium
# for make numa-vm and its suite, which is skipped by name where they cannot be had
NUMAVM_PACKAGES := qemu-system-x86 busybox-static cpio binutils
# for the packages and for booting machines that they are installed on; what needs them is skipped
# by name where they cannot be had
BOOTED_PACKAGES := debhelper lintian mmdebstrap systemd-container
# for images in the store of podman, or in a file; likewise
STORE_PACKAGES := podman runc squashfs-tools
# unpacked in the build: installed they would start a daemon, which changes the machine's network
DOCKER_PACKAGES := docker.io containerd
# the same: installed it would listen on this machine
PROMETHEUS_PACKAGES := prometheus
LINT_PACKAGES := clang-14 clang-tidy-14 clang-format-14 black libclang-rt-14-dev cppcheck \
	codespell shellcheck valgrind

# $(call install_packages,LIST): installs those that are missing, asks nothing
install_packages = missing=""; for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | \
	grep -q 'install ok installed' || missing="$$missing $$p"; done; \
	[ -z "$$missing" ] || { $(SUDO) apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -q \
		--no-install-recommends $$missing; }

.PHONY: deps deps-test deps-numavm deps-booted deps-stores deps-prometheus deps-lint check-packages
deps:
	@$(call install_packages,$(BUILD_PACKAGES))
deps-numavm:
	@$(call install_packages,$(NUMAVM_PACKAGES)) || \
		echo "deps: not installed: $(NUMAVM_PACKAGES)"
deps-booted:
	@$(call install_packages,$(BOOTED_PACKAGES)) || \
		echo "deps: not installed: $(BOOTED_PACKAGES)"
deps-stores:
	@$(call install_packages,$(STORE_PACKAGES)) || \
		echo "deps: not installed: $(STORE_PACKAGES)"
	@command -v dockerd >/dev/null || [ -x $(BUILD)/docker/usr/sbin/dockerd ] || { \
		mkdir -p $(BUILD)/docker && cd $(BUILD)/docker && \
		apt-get download -q $(DOCKER_PACKAGES) && \
		for p in *.deb; do dpkg -x "$$p" . || exit; done; } || \
		echo "deps: not unpacked: $(DOCKER_PACKAGES)"
# for the metrics; their suite is skipped by name where it cannot be had
deps-prometheus:
	@command -v prometheus >/dev/null || [ -x $(BUILD)/prometheus/usr/bin/prometheus ] || { \
		mkdir -p $(BUILD)/prometheus && cd $(BUILD)/prometheus && \
		apt-get download -q $(PROMETHEUS_PACKAGES) && \
		for p in *.deb; do dpkg -x "$$p" . || exit; done; } || \
		echo "deps: not unpacked: $(PROMETHEUS_PACKAGES)"
deps-test: deps deps-numavm deps-booted deps-stores deps-prometheus
	@$(call install_packages,$(TEST_PACKAGES))
	@# for the page test; not as packages of the list: other sources of node bring npm along and
	@# conflict with Debian's
	@command -v npm >/dev/null || { $(call install_packages,nodejs npm); }
deps-lint: deps-test
	@$(call install_packages,$(LINT_PACKAGES))
check-packages:
	@pkg-config --exists $(PKGS) 2>/dev/null && [ -e /usr/include/uthash.h ] || \
		{ echo "moectl: build: packages are missing; run 'make deps' first" >&2; exit 1; }
