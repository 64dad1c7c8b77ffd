/* moed: the controller. Options, signals, loop; see manager.c for the rest. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "daemon/begin.h"
#include "daemon/manager.h"
#include "daemon/quarantine.h"
#include "daemon/webhooks.h"
#include "lib/base/clock.h"
#include "lib/base/options_args.h"
#include "lib/http/tls.h"
#include "lib/loop/loop.h"
#include "lib/loop/sandbox.h"
#include "lib/recipe/webhooks_file.h"

static bool given(const char *s)
{
	return s && *s;
}

static int complain(const struct mo_error *err, int r)
{
	fprintf(stderr, "moed: %s%s%s\n", mo_error_text(err, r), err->hint ? "; " : "",
		err->hint ? err->hint : "");
	return EXIT_FAILURE;
}

/* SIGCHLD is taken by the loop (plan helpers), SIGTERM and SIGINT end it, SIGHUP reads
 * certificates and webhooks anew; a write to a gone client, or beyond `ulimit -f`, must not kill:
 * the latter is a failure of the store. */
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
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	umask(077);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static void read_tls(struct manager *m)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int r = http_server_read_tls(m->http, &err);
	if (r < 0)
		mo_log(MO_ERR, NULL, NULL, "the certificate in use stays: %s",
		       mo_error_text(&err, r));
	else
		mo_log(MO_NOTICE, NULL, NULL,
		       "new connections get the certificate that is now in %s",
		       m->options->tls_cert);
}

/* `systemctl reload`. What is wrong with the new files is an entry of the log; those of before
 * are used on. */
static int on_hangup(sd_event_source *e, const struct signalfd_siginfo *si, void *userdata)
{
	struct manager *m = userdata;

	if (given(m->options->tls_cert))
		read_tls(m);
	webhooks_reload(m);
	return 0;
}

static int serve(sd_event *loop, const struct options *o, bool plain)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct manager m;

	bool both = given(o->unix_socket) && o->port >= 0;
	mo_log_open("moed", o->debug ? MO_DEBUG : MO_INFO);
	int r = manager_start(&m, loop, o, &err);
	if (r < 0) {
		int code = complain(&err, r);
		m.fatal = false;
		manager_done(&m);
		return code;
	}
	if (plain)
		mo_log(MO_WARNING, "6d6f6500000000000000000000000003", NULL,
		       "listening on %s without TLS (tls: off): tokens cross the network in clear "
		       "text",
		       o->listen);
	mo_log(MO_NOTICE, NULL, NULL, "controller " MO_VERSION " serves %s%s%s", m.url,
	       both ? " and unix:" : "", both ? o->unix_socket : "");
	r = sd_event_add_signal(loop, NULL, SIGHUP, on_hangup, &m);
	mo_loop_notify("READY=1");
	if (r >= 0)
		r = mo_loop_run(loop, &m.longest_callback_ns);
	mo_loop_notify("STOPPING=1");
	manager_done(&m);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int read_options(int argc, char **argv, struct options *o, bool *ret_plain,
			struct mo_error *err)
{
	int r = mo_options_args(&options_table, "moed", MO_SYSCONFDIR "/moe/moed.yaml", argc, argv,
				o, err);
	int checked = r < 0 || r == MO_ARGS_DONE ? r : options_check(o, ret_plain, err);

	return checked < 0 ? checked : r;
}

static int check_pair(const struct options *o, struct mo_error *err)
{
	struct tls_pair *pair = NULL;
	int64_t now = mo_clock_wall_us() / 1000000;
	int r = tls_pair_load(o->tls_cert, o->tls_key, &pair, err);

	if (r < 0)
		return r;
	if (now < pair->from || now > pair->until)
		r = mo_error_set(err, -EINVAL, "tls_cert %s: it %s", o->tls_cert,
				 now < pair->from ? "is not valid yet" : "has expired");
	tls_pair_free(pair);
	return r;
}

static int check_places(const struct mo_sandbox *s, const struct options *o, struct mo_error *err)
{
	_cleanup_(mo_freep) char *dir = given(o->unix_socket) ? mo_strdup(o->unix_socket) : NULL;

	if (dir)
		*strrchr(dir, '/') = '\0';
	int r = mo_sandbox_writes(s, "state_dir", o->state_dir, err);
	if (r >= 0)
		r = mo_sandbox_writes(s, "unix_socket", dir, err);
	if (r >= 0)
		r = mo_sandbox_writes(s, "bootstrap_tokens", o->bootstrap_tokens, err);
	if (r >= 0)
		r = mo_sandbox_reads(s, "tls_cert", o->tls_cert, err);
	if (r >= 0)
		r = mo_sandbox_reads(s, "tls_key", o->tls_key, err);
	if (r >= 0)
		r = mo_sandbox_reads(s, "webhooks", o->webhooks, err);
	return r;
}

static int check_webhooks(const struct options *o, struct mo_error *err)
{
	_cleanup_(webhooks_file_done) struct webhooks_file f;

	mo_desc_init(&webhooks_file_desc, &f);
	return webhooks_load(o->webhooks, &f, err);
}

/* --check-config, as whom and where moed.service runs it: the options are read once more by its
 * user, who may not be allowed to. */
static int check(int argc, char **argv, struct options *o, struct mo_error *err)
{
	_cleanup_(mo_sandbox_done) struct mo_sandbox s = { 0 };
	bool plain = false;
	int r = mo_sandbox_of("moed.service", &s, err);

	if (r >= 0)
		r = mo_sandbox_become(&s, err);
	if (r >= 0)
		r = check_places(&s, o, err);
	if (r < 0)
		return r;
	mo_options_done(&options_table, o);
	r = read_options(argc, argv, o, &plain, err);
	if (r >= 0 && given(o->tls_cert))
		r = check_pair(o, err);
	if (r >= 0 && given(o->webhooks))
		r = check_webhooks(o, err);
	if (r < 0)
		return r;
	puts("moed: configuration is valid");
	return MO_ARGS_CHECK;
}

int main(int argc, char **argv)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct options o;
	sd_event *loop = NULL;
	bool plain = false;
	int code;

	int r = read_options(argc, argv, &o, &plain, &err);
	if (r == MO_ARGS_CHECK)
		r = check(argc, argv, &o, &err);
	if (r < 0) {
		code = complain(&err, r);
	} else if (r != MO_ARGS_RUN) {
		code = EXIT_SUCCESS;
	} else if (o.quarantine || o.put_back) {
		umask(077);
		r = quarantine_run(&o, &err);
		code = r < 0 ? complain(&err, r) : EXIT_SUCCESS;
	} else if (o.init || o.restore) {
		umask(077);
		r = begin_run(&o, &err);
		code = r < 0 ? complain(&err, r) : EXIT_SUCCESS;
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
