/* moe-agent: the node daemon. Command line and loop only; everything else is manager.h. It may
 * be stopped, upgraded and killed at any instant: steps run on and are adopted. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/ending.h"
#include "agent/manager.h"
#include "agent/options.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/options_args.h"
#include "lib/base/secret.h"
#include "lib/loop/loop.h"
#include "lib/loop/sandbox.h"

static int on_end(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
	ending_begin(arg);
	return 0;
}

static int handle_signals(sd_event *loop, struct manager *m)
{
	int r = sd_event_add_signal(loop, NULL, SIGTERM, on_end, m);

	return r < 0 ? r : sd_event_add_signal(loop, NULL, SIGINT, on_end, m);
}

static int block_signals(void)
{
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	return sigprocmask(SIG_BLOCK, &mask, NULL) < 0 ? -errno : 0;
}

static int serve(const struct agent_config *config, struct mo_error *err)
{
	_cleanup_(sd_event_unrefp) sd_event *loop = NULL;
	_cleanup_(manager_freep) struct manager *m = NULL;
	int r = sd_event_new(&loop);
	if (r >= 0)
		r = block_signals();
	if (r >= 0)
		r = sd_event_set_watchdog(loop, 1);
	if (r < 0)
		return mo_error_set(err, r, "event loop: %s", strerror(-r));
	r = manager_new(config, loop, &m, err);
	if (r < 0)
		return r;
	r = handle_signals(loop, m);
	if (r < 0)
		return mo_error_set(err, r, "signals: %s", strerror(-r));
	r = sd_event_loop(loop);
	mo_loop_notify("STOPPING=1");
	return r < 0 ? mo_error_set(err, r, "event loop: %s", strerror(-r)) : r;
}

/* A peer that goes away is an error of its write, not our end. */
static void ignore_pipe(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigaction(SIGPIPE, &ignore, NULL);
}

/* At a start a token that cannot be had is no end: steps are adopted all the same, and the link
 * says what is wrong with it. The file of a join token may go once it was traded. */
static int check_token(const struct mo_sandbox *s, const struct agent_config *c,
		       struct mo_error *err)
{
	_cleanup_(mo_freep) char *own = mo_path(c->state_dir, "agent.token");

	if (!c->token_file || (mo_access(c->token_file, F_OK) < 0 && mo_access(own, F_OK) == 0))
		return 0;
	int r = mo_sandbox_reads(s, "token_file", c->token_file, err);
	return r < 0 ? r : mo_secret_check(c->token_file, err);
}

/* As moe-agent.service would find it. */
static int check(const struct agent_config *c, struct mo_error *err)
{
	_cleanup_(mo_sandbox_done) struct mo_sandbox s = { 0 };
	int r = mo_sandbox_of("moe-agent.service", &s, err);

	if (r >= 0)
		r = mo_sandbox_become(&s, err);
	if (r >= 0)
		r = mo_sandbox_writes(&s, "state_dir", c->state_dir, err);
	if (r >= 0)
		r = mo_sandbox_writes(&s, "runtime_dir", c->runtime_dir, err);
	if (r >= 0)
		r = check_token(&s, c, err);
	if (r >= 0)
		r = mo_sandbox_reads(&s, "ca_file", c->ca_file, err);
	if (r >= 0)
		printf("moe-agent: the configuration is valid\n");
	return r;
}

static int run(struct agent_config *config, int argc, char *argv[], struct mo_error *err)
{
	int how = mo_options_args(&agent_options, "moe-agent", MO_SYSCONFDIR "/moe/agent.yaml",
				  argc, argv, config, err);
	if (how < 0 || how == MO_ARGS_DONE)
		return how < 0 ? how : 0;
	int r = agent_config_check(config, err);
	if (r < 0)
		return r;
	if (how == MO_ARGS_CHECK)
		return check(config, err);
	mo_log_open("moe-agent", config->debug ? MO_DEBUG : MO_INFO);
	return serve(config, err);
}

int main(int argc, char *argv[])
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct agent_config config;
	ignore_pipe();
	umask(022);
	int r = run(&config, argc, argv, &err);
	if (r < 0)
		fprintf(stderr, "moe-agent: %s\n", mo_error_text(&err, r));
	mo_options_done(&agent_options, &config);
	return r == -EINVAL ? 2 : r != 0;
}
