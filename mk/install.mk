# make install DESTDIR= PREFIX=: programs, data files, units, man pages. Existing files in SYSCONFDIR/moe are kept. make deb: two Debian packages in build-deb/, made from a staged install.
UNITDIR ?= $(PREFIX)/lib/systemd/system
INSTALL := install
stage = $(DESTDIR)$(1)

.PHONY: install install-controller install-agent deb
install: all install-agent install-controller

# daemons and helpers find each other beside themselves in LIBEXECDIR; units are written for the given directories
install_unit = sed -e 's\#/usr/local/libexec/moe\#$(LIBEXECDIR)\#g' -e 's\#/etc/moe\#$(SYSCONFDIR)/moe\#g' units/$(1) >$(call stage,$(UNITDIR))/$(1) && chmod 644 $(call stage,$(UNITDIR))/$(1)
install_config = $(INSTALL) -d $(call stage,$(SYSCONFDIR))/moe; [ ! -e config/$(1) ] || [ -e $(call stage,$(SYSCONFDIR))/moe/$(1) ] || $(INSTALL) -m 644 config/$(1) $(call stage,$(SYSCONFDIR))/moe/$(1)
install_man = for f in $(1); do $(INSTALL) -D -m 644 $(BUILD)/man/$$f $(call stage,$(PREFIX))/share/man/man$${f\#\#*.}/$$f; done

# made from what the programs say of themselves
CONTROLLER_MAN := moed.8 moectl.1
AGENT_MAN := moe-agent.8
$(BUILD)/man/%: mk/man docs/cli.md $(addprefix $(BUILD)/,moed moe-agent moectl)
	@mkdir -p $(@D); command -v scdoc >/dev/null || { echo "moectl: man pages: scdoc is missing; run 'make deps' first" >&2; exit 1; }
	@mk/man $* $(BUILD) $(SYSCONFDIR) >$@.scd && scdoc <$@.scd >$@.new && mv $@.new $@

install-controller: all $(addprefix $(BUILD)/man/,$(CONTROLLER_MAN))
	$(INSTALL) -d $(call stage,$(PREFIX))/bin $(call stage,$(LIBEXECDIR)) $(call stage,$(UNITDIR)) $(call stage,$(PREFIX))/lib/sysusers.d
	$(INSTALL) -m 755 $(BUILD)/moectl $(call stage,$(PREFIX))/bin/
	$(INSTALL) -m 755 $(BUILD)/moed $(call stage,$(LIBEXECDIR))/
	@$(call install_unit,moed.service)
	$(INSTALL) -m 644 units/moe.sysusers.conf $(call stage,$(PREFIX))/lib/sysusers.d/moe.conf
	@$(call install_config,moed.yaml)
	@$(call install_man,$(CONTROLLER_MAN))

install-agent: all $(addprefix $(BUILD)/man/,$(AGENT_MAN))
	$(INSTALL) -d $(call stage,$(LIBEXECDIR)) $(call stage,$(UNITDIR)) $(call stage,$(PREFIX))/lib/tmpfiles.d $(call stage,$(DATADIR)) $(call stage,$(PREFIX))/lib/systemd/catalog
	$(INSTALL) -m 755 $(BUILD)/moe-agent $(BUILD)/moe-stepd $(BUILD)/moe-discover $(BUILD)/moe-ckpt $(BUILD)/moe-probe $(call stage,$(LIBEXECDIR))/
	@for f in moe-agent.service moe.slice; do $(call install_unit,$$f); done
	$(INSTALL) -m 644 units/moe.tmpfiles.conf $(call stage,$(PREFIX))/lib/tmpfiles.d/moe.conf
	@[ ! -e units/moe.catalog ] || $(INSTALL) -m 644 units/moe.catalog $(call stage,$(PREFIX))/lib/systemd/catalog/moe.catalog
	@for f in $$(cd config && find . -mindepth 2 -type f -not -name '*.pyc' | sort); do $(INSTALL) -D -m 644 config/$$f $(call stage,$(DATADIR))/$$f; done
	@$(call install_config,agent.yaml)
	@$(call install_man,$(AGENT_MAN))

# programs know their directories, so the packages have a build of their own
deb: check-packages
	@$(MAKE) --no-print-directory BUILD=build-deb PREFIX=/usr SYSCONFDIR=/etc all
	@rm -rf build-deb/stage build-deb/*.deb
	@$(MAKE) --no-print-directory BUILD=build-deb PREFIX=/usr SYSCONFDIR=/etc DESTDIR=build-deb/stage/controller install-controller
	@$(MAKE) --no-print-directory BUILD=build-deb PREFIX=/usr SYSCONFDIR=/etc DESTDIR=build-deb/stage/agent install-agent
	@mk/deb $(VERSION) build-deb
