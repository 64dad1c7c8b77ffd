/* What a daemon's own unit lets it do, so that --check-config, run by root from a shell, judges as
 * the started daemon would find it. systemd is asked, hence with an operator's drop-ins. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/base/error.h"

struct mo_sandbox {
	/* NULL: this program is run by no unit here, nothing is forbidden */
	char *unit;
	char *user;                          /* NULL: root */
	char *protect_system, *protect_home; /* as in the unit: "strict", "yes", ... */
	bool private_tmp;
	uint64_t capabilities; /* that it may have at most */
	char **writable;
	size_t n_writable; /* ReadWritePaths= */
	char **made;
	size_t n_made; /* directories that systemd makes for it, writable too */
};
void mo_sandbox_done(struct mo_sandbox *s);
/* Of the unit when systemd runs here and the unit runs this very program; else empty. Empty also
 * for a user whom nobody tells (no D-Bus): what he may not do shows in what he may not do, as in
 * `systemctl reload`, which checks inside of the unit. */
int mo_sandbox_of(const char *unit, struct mo_sandbox *ret, struct mo_error *err);
/* Makes this process, when it is root's, the user with the capabilities of the unit. For good. */
int mo_sandbox_become(const struct mo_sandbox *s, struct mo_error *err);
/* 0, or -EACCES with what to do: an option's directory (or the directory of its socket) that the
 * daemon writes to; a file that it reads. An empty path is fine. */
int mo_sandbox_writes(const struct mo_sandbox *s, const char *option, const char *dir,
		      struct mo_error *err);
int mo_sandbox_reads(const struct mo_sandbox *s, const char *option, const char *file,
		     struct mo_error *err);
