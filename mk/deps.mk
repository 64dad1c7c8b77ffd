# The one list of Debian packages: what building and running needs, and what tests need on top.
BUILD_PACKAGES := build-essential pkg-config libsystemd-dev libcurl4-openssl-dev libjson-c-dev libhwloc-dev libnuma-dev libmicrohttpd-dev libgnutls28-dev \
	libfyaml-dev libsqlite3-dev libpcre2-dev uthash-dev python3-torch python3-numpy procps curl
TEST_PACKAGES := libcmocka-dev python3-yaml iproute2 jq

.PHONY: deps deps-test check-packages
deps:
	@missing=""; for p in $(BUILD_PACKAGES); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then $(SUDO) apt-get update -q && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -q --no-install-recommends $$missing; fi
deps-test: deps
	@missing=""; for p in $(TEST_PACKAGES); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then $(SUDO) apt-get update -q && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -q --no-install-recommends $$missing; fi
check-packages:
	@pkg-config --exists $(PKGS) 2>/dev/null && [ -e /usr/include/uthash.h ] || { echo "moectl: build: packages are missing; run 'make deps' first" >&2; exit 1; }
