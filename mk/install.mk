# make install DESTDIR= PREFIX=: programs, data files, units, man pages. Nothing is put into SYSCONFDIR but empty directories for the site's options. make deb: three Debian packages in
# build-deb/, by debian/rules, which installs each part into its package.
UNITDIR ?= $(PREFIX)/lib/systemd/system
INSTALL := install
stage = $(DESTDIR)$(1)

.PHONY: install install-common install-controller install-agent man deb
install: all install-common install-agent install-controller
	@# on the machine itself (no DESTDIR), what a package's scripts would do
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || [ ! -d /run/systemd/system ] || { systemd-sysusers && systemd-tmpfiles --create moe.conf && journalctl --update-catalog && systemctl daemon-reload; }

# daemons and helpers find each other beside themselves in LIBEXECDIR
install_unit = sed 's\#/usr/local/libexec/moe\#$(LIBEXECDIR)\#g' units/$(1) >$(call stage,$(UNITDIR))/$(1) && chmod 644 $(call stage,$(UNITDIR))/$(1)
install_man = for f in $(1); do $(INSTALL) -D -m 644 $(BUILD)/man/$$f $(call stage,$(PREFIX))/share/man/man$${f\#\#*.}/$$f; done
# every option with its default, to read and to copy from; the site's own are in SYSCONFDIR
install_options = $(INSTALL) -D -m 644 config/$(1).yaml $(call stage,$(DATADIR))/$(1).yaml; $(INSTALL) -d $(call stage,$(SYSCONFDIR))/moe/$(1).d

# made from what the programs say of themselves
MAN := moectl.1 moed.8 moe-agent.8
man: $(addprefix $(BUILD)/man/,$(MAN))
$(BUILD)/man/%: mk/man docs/cli.md $(addprefix $(BUILD)/,moed moe-agent moectl)
	@mkdir -p $(@D); command -v scdoc >/dev/null || { echo "moectl: man pages: scdoc is missing; run 'make deps' first" >&2; exit 1; }
	@mk/man $* $(BUILD) $(SYSCONFDIR) >$@.scd && scdoc <$@.scd >$@.new && mv $@.new $@

# on every machine: the command line, data files (both sides name engine programs by the same path), the system user, what the journal's entries mean
install-common: all man
	$(INSTALL) -d $(addprefix $(call stage,$(PREFIX)),/bin /lib/sysusers.d /lib/systemd/catalog) $(call stage,$(DATADIR))
	$(INSTALL) -m 755 $(BUILD)/moectl $(call stage,$(PREFIX))/bin/
	$(INSTALL) -m 644 units/moe.sysusers.conf $(call stage,$(PREFIX))/lib/sysusers.d/moe.conf
	$(INSTALL) -m 644 units/moe.catalog $(call stage,$(PREFIX))/lib/systemd/catalog/moe.catalog
	@for f in $$(cd config && find . -mindepth 2 -type f -not -name '*.pyc' | sort); do $(INSTALL) -D -m 644 config/$$f $(call stage,$(DATADIR))/$$f; done
	@$(call install_man,moectl.1)

install-controller: all man
	$(INSTALL) -d $(call stage,$(LIBEXECDIR)) $(call stage,$(UNITDIR))
	$(INSTALL) -m 755 $(BUILD)/moed $(call stage,$(LIBEXECDIR))/
	@$(call install_unit,moed.service)
	@$(call install_options,moed)
	@$(call install_man,moed.8)

install-agent: all man
	$(INSTALL) -d $(call stage,$(LIBEXECDIR)) $(call stage,$(UNITDIR)) $(call stage,$(PREFIX))/lib/tmpfiles.d
	$(INSTALL) -m 755 $(addprefix $(BUILD)/,moe-agent moe-stepd moe-discover moe-ckpt moe-probe) $(call stage,$(LIBEXECDIR))/
	@for f in moe-agent.service moe.slice; do $(call install_unit,$$f); done
	$(INSTALL) -m 644 units/moe.tmpfiles.conf $(call stage,$(PREFIX))/lib/tmpfiles.d/moe.conf
	@$(call install_options,agent)
	@$(call install_man,moe-agent.8)

# programs know their directories, so the packages have a build of their own
DEB_BUILD ?= build-deb
deb: check-packages
	@command -v dh >/dev/null || { echo "moectl: make deb: debhelper is missing; run 'make deps-booted' first" >&2; exit 1; }
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(DEB_BUILD) PREFIX=/usr SYSCONFDIR=/etc all man
	@rm -f $(DEB_BUILD)/*.deb
	@rm -rf debian/.debhelper debian/*.debhelper* debian/*.substvars debian/files debian/moectl/ debian/moectl-controller/ debian/moectl-agent/
	@debian/rules binary BUILD=$(DEB_BUILD)
