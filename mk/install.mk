# make install DESTDIR= PREFIX=: programs, data files, units, man pages; install-controller and
# install-agent: what one of them needs, alone. Nothing is put into SYSCONFDIR but empty directories
# for the site's options. make uninstall, with the same variables, removes it. make deb: three
# Debian packages in build-deb/, by debian/rules, which puts each part into its package.
UNITDIR ?= $(PREFIX)/lib/systemd/system
INSTALL := install
stage = $(DESTDIR)$(1)

.PHONY: install install-controller install-agent uninstall part-common part-controller part-agent \
	man deb
# on the machine itself (no DESTDIR), what a package's scripts would do
here = [ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || [ ! -d /run/systemd/system ] || { $(1); }
told = @$(call here,systemd-sysusers && $(1)journalctl --update-catalog && systemctl daemon-reload)
tmpfiles = systemd-tmpfiles --create moe.conf &&
install: part-common part-controller part-agent
	$(call told,$(tmpfiles) )
install-controller: part-common part-controller
	$(call told)
install-agent: part-common part-agent
	$(call told,$(tmpfiles) )

# Files are those that an install puts into an empty directory; directories of our own go when they
# are empty. State, options and running steps stay, as with apt remove.
uninstall:
	@$(call here,systemctl disable --now moed moe-agent 2>/dev/null || :)
	@stage=$$(mktemp -d) && trap 'rm -rf "$$stage"' EXIT && \
		$(MAKE) --no-print-directory install DESTDIR="$$stage" >/dev/null && \
	(cd "$$stage" && find . -type f) | while read -r f; do rm -f "$(DESTDIR)/$$f"; done && \
	(cd "$$stage" && find . -depth -type d -path '*/moe*') | while read -r d; \
		do rmdir "$(DESTDIR)/$$d" 2>/dev/null || :; done
	@$(call here,journalctl --update-catalog && systemctl daemon-reload)

# daemons and helpers find each other beside themselves in LIBEXECDIR
install_unit = sed 's\#/usr/local/libexec/moe\#$(LIBEXECDIR)\#g' units/$(1) \
	>$(call stage,$(UNITDIR))/$(1) && chmod 644 $(call stage,$(UNITDIR))/$(1)
install_man = for f in $(1); do $(INSTALL) -D -m 644 $(BUILD)/man/$$f \
	$(call stage,$(PREFIX))/share/man/man$${f\#\#*.}/$$f; done
# every option with its default, to read and to copy from; the site's own are in SYSCONFDIR
install_options = $(INSTALL) -D -m 644 config/$(1).yaml $(call stage,$(DATADIR))/$(1).yaml; \
	$(INSTALL) -d $(call stage,$(SYSCONFDIR))/moe/$(1).d

# made from what the programs say of themselves
MAN := moectl.1 moed.8 moe-agent.8
man: $(addprefix $(BUILD)/man/,$(MAN))
$(BUILD)/man/%: mk/man docs/cli.md $(addprefix $(BUILD)/,moed moe-agent moectl)
	@mkdir -p $(@D); command -v scdoc >/dev/null || \
		{ echo "moectl: man pages: scdoc is missing; run 'make deps' first" >&2; exit 1; }
	@mk/man $* $(BUILD) $(SYSCONFDIR) >$@.scd && scdoc <$@.scd >$@.new && mv $@.new $@

# on every machine: the command line, data files (both sides name engine programs by the same path),
# the system user, what the journal's entries mean
part-common: all man
	$(INSTALL) -d \
		$(addprefix $(call stage,$(PREFIX)),/bin /lib/sysusers.d /lib/systemd/catalog) \
		$(call stage,$(DATADIR))
	$(INSTALL) -m 755 $(BUILD)/moectl $(call stage,$(PREFIX))/bin/
	$(INSTALL) -m 644 units/moe.sysusers.conf $(call stage,$(PREFIX))/lib/sysusers.d/moe.conf
	$(INSTALL) -m 644 units/moe.catalog $(call stage,$(PREFIX))/lib/systemd/catalog/moe.catalog
	@for f in $$(cd config && find . -mindepth 2 -type f -not -name '*.pyc' | sort); \
		do $(INSTALL) -D -m 644 config/$$f $(call stage,$(DATADIR))/$$f; done
	$(INSTALL) -D -m 644 cli/completion/moectl.bash \
		$(call stage,$(PREFIX))/share/bash-completion/completions/moectl
	$(INSTALL) -D -m 644 cli/completion/_moectl \
		$(call stage,$(PREFIX))/share/zsh/vendor-completions/_moectl
	$(INSTALL) -D -m 644 cli/completion/moectl.fish \
		$(call stage,$(PREFIX))/share/fish/vendor_completions.d/moectl.fish
	$(BUILD)/moectl explain schema >$(call stage,$(DATADIR))/recipe.schema.json
	@$(call install_man,moectl.1)

part-controller: all man
	$(INSTALL) -d $(call stage,$(LIBEXECDIR)) $(call stage,$(UNITDIR))
	$(INSTALL) -m 755 $(BUILD)/moed $(BUILD)/moe-webhook $(call stage,$(LIBEXECDIR))/
	@$(call install_unit,moed.service)
	@$(call install_options,moed)
	@$(call install_man,moed.8)

part-agent: all man
	$(INSTALL) -d $(call stage,$(LIBEXECDIR)) $(call stage,$(UNITDIR)) \
		$(call stage,$(PREFIX))/lib/tmpfiles.d
	$(INSTALL) -m 755 \
		$(addprefix $(BUILD)/,moe-agent moe-stepd moe-discover moe-ckpt moe-config \
		moe-probe moe-namespace moe-image moe-recorder moe-runtime moe-hold) \
		$(call stage,$(LIBEXECDIR))/
	@for f in moe-agent.service moe.slice; do $(call install_unit,$$f); done
	$(INSTALL) -m 644 units/moe.tmpfiles.conf $(call stage,$(PREFIX))/lib/tmpfiles.d/moe.conf
	@$(call install_options,agent)
	@$(call install_man,moe-agent.8)

# programs know their directories, so the packages have a build of their own
DEB_BUILD ?= build-deb
deb: check-packages
	@command -v dh >/dev/null || { echo \
		"moectl: make deb: debhelper is missing; run 'make deps-booted' first" >&2; \
		exit 1; }
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(DEB_BUILD) PREFIX=/usr SYSCONFDIR=/etc all \
		man
	@rm -f $(DEB_BUILD)/*.deb
	@rm -rf debian/.debhelper debian/*.debhelper* debian/*.substvars debian/files \
		debian/moectl/ debian/moectl-controller/ debian/moectl-agent/
	@debian/rules binary BUILD=$(DEB_BUILD)
