# moectl: see README.md. Rooms are static archives; the inclusion ladder of docs/architecture.md is
# the order of linking.
VERSION := $(shell sed -n '1s/^[^(]*(\([^)]*\)).*/\1/p' debian/changelog)
BUILD ?= build
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
LIBEXECDIR ?= $(PREFIX)/libexec/moe
DATADIR ?= $(PREFIX)/share/moe
DESTDIR ?=
ifeq ($(origin CC),default)
CC := gcc
endif
# make V=1 shows the commands
Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)')
JOBS ?= $(shell nproc)
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

PKGS := libsystemd libcurl json-c libmicrohttpd gnutls libfyaml sqlite3 libpcre2-8 libarchive zlib
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wwrite-strings -Wformat=2 -Wundef -Wno-unused-parameter -Wno-missing-field-initializers
HARDEN := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fPIE
# what the programs know of themselves: files that use one of these are compiled again when one
# changes (rule of $(STAMP))
PLACES = -DMO_VERSION='"$(VERSION)"' -DMO_SOURCE_DIR='"$(CURDIR)"' -DMO_DATADIR='"$(DATADIR)"' \
	-DMO_LIBEXECDIR='"$(LIBEXECDIR)"' -DMO_SYSCONFDIR='"$(SYSCONFDIR)"' \
	$(if $(CHECK),-DMO_CHECK=1)
SAN ?=
# moed looks at its whole state after each turn and ends where it is broken
# (daemon/core/update/check.h)
CHECK ?= $(SAN)
OPT ?= $(if $(SAN),-O1 -g -fno-sanitize-recover=all,-O2 -g)
CFLAGS_ALL = -std=gnu11 $(OPT) $(WARN) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fPIE,$(HARDEN)) -D_GNU_SOURCE -I. \
	$(PLACES) \
	$(CPPFLAGS) $(CFLAGS) $(PKG_CFLAGS)
LDFLAGS_ALL = $(if $(SAN),-fsanitize=$(SAN)) -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)

# room: sources are its directory's *.c; a core has rooms of its own
ROOMS := base model recipe wire plan loop http store topo
SRC_base := $(wildcard lib/base/*.c)
SRC_model := $(wildcard lib/model/*.c)
SRC_recipe := $(wildcard lib/recipe/*.c)
SRC_wire := $(wildcard lib/wire/*.c)
SRC_plan := $(wildcard lib/plan/*.c)
SRC_loop := $(wildcard lib/loop/*.c)
SRC_http := $(wildcard lib/http/*.c)
SRC_store := $(wildcard lib/store/*.c)
SRC_topo := $(wildcard lib/topo/*.c)
SRC_dcore := $(wildcard daemon/core/*.c daemon/core/*/*.c)
SRC_acore := $(wildcard agent/core/*/*.c)
ALL_ROOMS := $(ROOMS) dcore acore
obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
lib = $(foreach r,$(1),$(BUILD)/lib$(r).a)

# program: its shell's sources, the rooms it links (in order) and libraries
PROGRAMS := moed moe-agent moe-stepd moe-discover moe-ckpt moe-config moe-probe moe-namespace \
	moe-image moe-recorder moe-runtime moe-hold moe-webhook moectl
SRC_moed := $(wildcard daemon/*.c)
ROOMS_moed := http loop store recipe dcore acore plan wire model base
LIBS_moed := -lmicrohttpd -lz -lsystemd -ljson-c -lsqlite3 -lfyaml -lpcre2-8 -lgnutls -lm
SRC_moe-webhook := $(wildcard daemon/webhook/*.c)
ROOMS_moe-webhook := loop wire model base
LIBS_moe-webhook := -lsystemd -ljson-c -lgnutls -lm
SRC_moe-agent := $(wildcard agent/*.c)
ROOMS_moe-agent := http loop acore wire model base
LIBS_moe-agent := -lmicrohttpd -lz -lsystemd -ljson-c -lgnutls -lpcre2-8 -lm
SRC_moe-stepd := $(wildcard agent/stepd/*.c)
ROOMS_moe-stepd := acore wire model base
LIBS_moe-stepd := -ljson-c -lpcre2-8 -lm
SRC_moe-discover := $(wildcard agent/discover/*.c)
ROOMS_moe-discover := topo wire model base
LIBS_moe-discover := -lhwloc -lnuma -ljson-c -lm
SRC_moe-ckpt := $(wildcard agent/ckpt/*.c)
ROOMS_moe-ckpt := acore wire model base
LIBS_moe-ckpt := -ljson-c -lpcre2-8 -lz -lm
SRC_moe-config := $(wildcard agent/config/*.c)
ROOMS_moe-config := recipe wire model base
LIBS_moe-config := -ljson-c -lfyaml -lpcre2-8 -lm
SRC_moe-probe := $(wildcard agent/probe/*.c)
ROOMS_moe-probe := recipe acore wire model base
LIBS_moe-probe := -ljson-c -lfyaml -lpcre2-8 -lm
SRC_moe-recorder := $(wildcard agent/recorder/*.c)
ROOMS_moe-recorder := acore wire model base
LIBS_moe-recorder := -ljson-c -lpcre2-8 -lm
SRC_moe-namespace := $(wildcard agent/namespace/*.c)
ROOMS_moe-namespace := acore wire model base
LIBS_moe-namespace = $(call archive,json-c) -lm
SRC_moe-image := $(wildcard agent/image/*.c)
ROOMS_moe-image := acore wire model base
LIBS_moe-image := -larchive -lcurl -lgnutls -ljson-c -lm
SRC_moe-runtime := $(wildcard agent/runtime/*.c)
ROOMS_moe-runtime := recipe acore wire model base
LIBS_moe-runtime := -ljson-c -lfyaml -lpcre2-8 -lm
SRC_moectl := $(wildcard cli/*.c)
ROOMS_moectl := loop recipe dcore acore plan wire model base
# a command is started for each word: what is found as an archive is linked in, as the dynamic
# linker takes longer for a library than the command for its work (docs/decisions/006)
archive = $(if $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a)),-l:lib$(1).a,-l$(1))
LIBS_moectl := -lsystemd $(foreach l,json-c fyaml pcre2-8,$(call archive,$(l))) -lm

.PHONY: all
all: check-packages $(PROGRAMS:%=$(BUILD)/%)

include $(sort $(wildcard mk/*.mk))

define ROOM_rule
$(BUILD)/lib$(1).a: $$(call obj,$$(SRC_$(1)))
	@mkdir -p $$(@D); rm -f $$@; $$(AR) rcs $$@ $$^
.PHONY: $(1)
$(1): $(BUILD)/lib$(1).a
endef
$(foreach r,$(ALL_ROOMS),$(eval $(call ROOM_rule,$(r))))
define PROGRAM_rule
$(BUILD)/$(1): $$(call obj,$$(SRC_$(1))) $$(call lib,$$(ROOMS_$(1)))
	$$(call say,LINK $$@)
	$$(Q)$$(CC) $$(LDFLAGS_ALL) -o $$@ $$(call obj,$$(SRC_$(1))) -Wl,--start-group \
		$$(call lib,$$(ROOMS_$(1))) -Wl,--end-group $$(LIBS_$(1))
endef
$(foreach p,$(filter-out moe-hold,$(PROGRAMS)),$(eval $(call PROGRAM_rule,$(p))))
# the only file of ours in a container: static, and there are no static sanitizers
$(BUILD)/moe-hold: agent/hold/main.c | check-packages
	$(call say,LINK $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(CFLAGS_ALL)) -static-pie \
		-Wl,-z,relro,-z,now -o $@ $<

$(BUILD)/%.o: %.c | check-packages
	$(call say,CC $<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# the page is part of moed
$(BUILD)/daemon/web.o: $(wildcard daemon/web/*)

STAMP := $(BUILD)/places
ASKS_PLACES := grep -rlE '\bMO_(VERSION|SOURCE_DIR|DATADIR|LIBEXECDIR|SYSCONFDIR|CHECK)\b'
$(call obj,$(shell $(ASKS_PLACES) --include='*.c' lib daemon agent cli tests/unit)): $(STAMP)
ifneq ($(file <$(STAMP)),$(subst ',,$(strip $(PLACES))))
.PHONY: $(STAMP)
endif
$(STAMP):
	@mkdir -p $(@D); echo $(PLACES) >$@

-include $(shell [ -d $(BUILD) ] && \
	find $(BUILD) -type f -name '*.d' -not -path '*/stage/*' 2>/dev/null)

.PHONY: clean
clean:
	rm -rf $(BUILD)
