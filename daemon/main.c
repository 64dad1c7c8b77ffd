/* moed: the controller. Options, signals, loop; see manager.c for the rest. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include "daemon/manager.h"

static int complain(const struct mo_error *err, int r)
{
	fprintf(stderr, "moed: %s%s%s\n", mo_error_text(err, r), err->hint ? "; " : "", err->hint ? err->hint : "");
	return EXIT_FAILURE;
}

/* SIGCHLD is taken by the loop (plan helpers), SIGTERM and SIGINT end it; a write to a gone client, or beyond `ulimit -f`, must not kill: the latter is a failure of the store. */
static void prepare_process(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct rlimit files;
	sigset_t set;

	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	umask(077);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static int serve(sd_event *loop, const struct options *o, bool plain)
{
	_cleanup_(mo_error_done) struct mo_error err = {0};
	struct manager m;

	mo_log_open("moed", o->debug ? MO_DEBUG : MO_INFO);
	int r = manager_start(&m, loop, o, &err);
	if (r < 0) {
		int code = complain(&err, r);
		m.fatal = false;
		manager_done(&m);
		return code;
	}
	if (plain)
		mo_log(MO_WARNING, "6d6f6500000000000000000000000003", NULL, "listening on %s without TLS (tls: off): tokens cross the network in clear text", o->listen);
	mo_log(MO_NOTICE, NULL, NULL, "controller " MO_VERSION " serves %s%s%s", m.url, o->unix_socket && *o->unix_socket && o->port >= 0 ? " and unix:" : "",
	       o->unix_socket && *o->unix_socket && o->port >= 0 ? o->unix_socket : "");
	sd_notify(0, "READY=1");
	r = sd_event_loop(loop);
	sd_notify(0, "STOPPING=1");
	manager_done(&m);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = {0};
	struct options o;
	sd_event *loop = NULL;
	bool plain = false;
	int code;

	int r = mo_options_args(&options_table, "moed", MO_SYSCONFDIR "/moe/moed.yaml", argc, argv, &o, &err);
	if (r >= 0 && r != MO_ARGS_DONE) {
		int checked = options_check(&o, &plain, &err);
		r = checked < 0 ? checked : r;
	}
	if (r < 0) {
		code = complain(&err, r);
	} else if (r != MO_ARGS_RUN) {
		if (r == MO_ARGS_CHECK)
			puts("moed: configuration is valid");
		code = EXIT_SUCCESS;
	} else {
		prepare_process();
		r = sd_event_default(&loop);
		if (r >= 0)
			r = sd_event_add_signal(loop, NULL, SIGTERM, NULL, NULL);
		if (r >= 0)
			r = sd_event_add_signal(loop, NULL, SIGINT, NULL, NULL);
		code = r < 0 ? complain(&err, r) : serve(loop, &o, plain);
		sd_event_unref(loop);
	}
	mo_options_done(&options_table, &o);
	return code;
}
