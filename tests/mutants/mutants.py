#!/usr/bin/python3
"""One-line sabotages of the promises that outrank features, each of which the simulator or an end-to-end test must catch. Every mutant is made in a copy of the tree (build/mutants),
built there, and given to its killers until one fails; a mutant that none notices is a failure, as is one whose line is no longer in the code. Usage: mutants.py --lines | [NAME ...]; --lines: only whether every line is there (make lint)"""
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TREE = os.path.join(ROOT, "build/mutants/tree")
# a killer: what make builds for it, and the command
SIM = ("build/sim", "for s in $(seq 60); do timeout 20 build/sim --seed $s >build/sim.txt 2>&1 || { tail -n 3 build/sim.txt; exit 1; }; done")   # a mutant may turn in circles


def e2e(file, *tests):
    return ("all fakes", "/usr/bin/python3 tests/e2e/%s %s" % (file, " ".join(tests)))


def unit(room, program):
    return ("build/tests/unit/%s/%s" % (room, program), "build/tests/unit/%s/%s" % (room, program))


# name, file, what stands there, what the mutant says, killers (the quick ones first)
MUTANTS = [
    ("command before commit", "daemon/turn.c", "	if (store_records(m, &out) == 0) {\n",
     "	static struct core_out late;\n	struct core_out latest = out;\n	carry_out(m, inputs, n, &out);\n	latest.n_effects = 0;\n	out = late;\n	late = latest;\n	if (store_records(m, &out) == 0) {\n",
     [e2e("test_order.py")]),
    ("reply before sync", "lib/store/store.c", "PRAGMA synchronous=FULL", "PRAGMA synchronous=OFF", [e2e("test_order.py")]),
    ("attempt number reused", "daemon/core/rules/schedule.c", "int64_t attempt = job_next_attempt(j);", "int64_t attempt = j->attempt ? j->attempt : 1;", [SIM]),
    ("next attempt before proof", "daemon/core/rules/recovery.c", "return j->n_places > 0 && j->n_dead == (int64_t)j->n_places;", "return j->n_places > 0 && (j->failed || j->n_dead == (int64_t)j->n_places);", [SIM]),
    ("stale attempt accepted", "agent/core/agent/steps_command.c", "if (c->epoch < s->epoch || c->attempt <= steps_highest(s, c->job)) {", "if (c->epoch < 0) {", [e2e("test_agent.py", "stale_orders"), SIM]),
    ("silence taken as death", "daemon/core/state/state.c", "return s->gone || s->unkillable;", "return s->gone || s->unkillable || s->hung;", [SIM, e2e("test_faults.py", "hung_supervisor")]),
    ("silent node taken as dead", "daemon/core/rules/fleet.c", "			node_state(t, s->nodes[i].name, NODE_DOWN, reason);\n",
     "		{\n			struct record g;\n			node_state(t, s->nodes[i].name, NODE_DOWN, reason);\n			for (size_t k = 0; k < s->n_jobs; k++)\n				for (size_t m = 0; m < s->jobs[k].n_steps; m++)\n"
     "					if (mo_streq(s->jobs[k].steps[m].node, s->nodes[i].name) && !s->jobs[k].steps[m].gone) {\n						record_init(&g, REC_GONE);\n						g.job = s->jobs[k].id;\n"
     "						g.attempt = s->jobs[k].steps[m].attempt;\n						g.node = mo_strdup(s->nodes[i].name);\n						turn_emit(t, &g);\n					}\n		}\n", [SIM, e2e("test_faults.py", "silent_node")]),
    ("beats of a stall lost", "daemon/core/rules/fleet.c", "	if (by <= 0)\n		return;\n", "	if (by != 0)\n		return;\n", [SIM, e2e("test_faults.py", "frozen_machine")]),
    ("incomplete checkpoint taken", "agent/core/ckpt/ckpt_judge.c", "	return reason ? reason : ckpt_judge_tracker(r, e, q);", "	free(reason);\n	return ckpt_judge_tracker(r, e, q);", [e2e("test_helpers.py")]),
    ("cut index taken", "agent/core/ckpt/pickle.c", "			return w->depth == 0 && w->n_marks == 0 ? w->at == w->n ? NULL : \"something lies behind its end\" : garbage;\n	}\n	return cut;", "			return NULL;\n	}\n	return NULL;",
     [unit("acore", "test_ckpt_formats"), e2e("test_checkpoints.py", "a_cut_index_never_passes")]),
    ("unlisted shard taken", "agent/core/ckpt/ckpt_judge.c", "	return unknown ? mo_printf(", "	return unknown && !f->name ? mo_printf(", [unit("acore", "test_ckpt_formats")]),
    ("missing column taken", "agent/core/ckpt/ckpt_grid.c", "	if (told > 0 && told != parts)", "	if (told < 0)", [unit("acore", "test_ckpt_formats"), e2e("test_checkpoints.py", "damaged_megatron_lm_legacy")]),
    ("zeros taken for a shard", "agent/ckpt/format.c", "	return mo_strdup(only_zeros(head, n) ? \"it holds zeros\" : \"it is no file of torch.save\");", "	return NULL;", [e2e("test_checkpoints.py", "damaged_torchtitan")]),
    ("announced checkpoint holds a place", "daemon/core/update/checkpoints.c", "newer += c->state == CKPT_VERIFIED;", "newer++;", [unit("dcore", "test_keep")]),
    ("removal forgotten at the end", "daemon/core/rules/commands.c", "	add_known(j, k);\n	add_removals(j, k);\n", "	add_known(j, k);\n", [unit("dcore", "test_keep")]),
    ("bind left out", "agent/stepd/child.c", "if (p->cpus && sched_setaffinity(0, p->cpus_size, p->cpus) < 0)", "if (p->cpus && !p->cpus_size)", [e2e("test_bind.py", "each_rank_on_its_own_core")]),
    ("read-back constant", "agent/core/bind/bind_judge.c", "mo_idset_parse(allowed_cpus, &have) < 0", "mo_idset_parse(want->cpus, &have) < 0", [unit("acore", "test_bind"), e2e("test_bind.py")]),
    ("environment leaked", "agent/stepd/prepare.c", "	c->envp = env;\n",
     "	extern char **environ;\n	size_t n = 0, k = 0;\n	while (env[n])\n		n++;\n	while (environ[k])\n		k++;\n	env = prepared_keep(p, mo_realloc_array(memcpy(mo_alloc_array(n + k + 1, sizeof(char *)), env, n * sizeof(char *)), n + k + 1, sizeof(char *)));\n"
     "	memcpy(env + n, environ, (k + 1) * sizeof(char *));\n	c->envp = env;\n", [e2e("test_agent.py", "launch_eight_ranks")]),
    ("ledger second dropped", "daemon/core/update/ledger.c", "j->ledger[category] += job_gpus(j) * (time - j->ledger_at);", "j->ledger[category] += job_gpus(j) * ((time - j->ledger_at) / 1000000 * 1000000);", [SIM]),
    ("superseded checkpoint offered again", "daemon/core/update/checkpoints.c", "if ((c->state == CKPT_SUPERSEDED && f->saved_at <= c->saved_at) || ", "if (", [SIM]),
    ("damage behind which one went back offered again", "daemon/core/update/checkpoints.c", "if (c->iteration <= resume || c->state == CKPT_SUPERSEDED || c->state == CKPT_DELETED)",
     "if (c->iteration <= resume || !checkpoint_usable(c))", [unit("dcore", "test_checkpoints")]),
    ("chosen checkpoint removed", "daemon/core/update/checkpoints.c", "c->iteration == asked || ", "asked == INT64_MAX || ", [unit("dcore", "test_keep")]),
    ("manifest not compared", "daemon/core/rules/commands.c", "		if (!c->manifest || c->state", "		if (c->manifest || c->state", [unit("dcore", "test_verify"), SIM]),
    ("every manifest taken for the same", "agent/ckpt/scan.c", "reason = mo_streq(digest, known->manifest) ? ", "reason = mo_streq(digest, digest) ? ", [e2e("test_checkpoints.py")]),
    ("last good checkpoint removed", "daemon/core/update/checkpoints.c", "c->iteration == good || ", "good == INT64_MAX || ", [unit("dcore", "test_interval")]),
    ("measured interval not applied", "daemon/core/update/update.c", "	every_set(s, j);\n", "", [unit("dcore", "test_interval")]),
    ("users push out nodes' events", "daemon/core/update/ring.c", "MO_MIN(n_others, side)", "MO_MIN(n_others / 2, side)", [unit("dcore", "test_ring")]),
    ("viewers take both searches", "daemon/core/rules/searches.c", "n_viewers < SEARCHES_OF_VIEWERS", "n_viewers < SEARCHES_AT_ONCE", [unit("dcore", "test_searches")]),
    ("part counted twice", "daemon/core/update/verify.c", "j->verify_done |= 1LL << part;", "j->verify_done = (1LL << j->verify_parts) - 1;", [unit("dcore", "test_verify")]),
    ("shell's signal taken for an exit", "daemon/core/rules/recovery.c", "return k->exit->code > 128 && ", "return k->exit->code > 255 && ", [unit("dcore", "test_recovery")]),
    ("cordon cap ignored", "daemon/core/rules/cordon.c", "if (cordoned_like(t->core, finding) >= cordon_cap(t->core)) {", "if (cordoned_like(t->core, finding) >= t->core->state.n_nodes) {", [unit("dcore", "test_health"), SIM]),
    ("checks told with the next beat", "agent/health.c", "	if (health_awaited(w->core))\n", "	if (health_awaited(w->core) && false)\n", [e2e("test_health.py", "what_a_job_waits_for_does_not_wait_for_a_beat")]),
    ("older health taken over newer", "daemon/core/rules/cordon.c", "h->version <= l->health_seen", "h->version == l->health_seen", [unit("dcore", "test_health")]),
    ("spool entry removed last", "agent/step_dir.c", "		unlinkat(d->fd, \"launch.json\", 0);\n", "		;\n", [e2e("test_faults.py", "agent_killed_while_it_forgets_a_step")]),
    ("cut line of the fence believed", "agent/fence.c", "line && (end = strchr(line, '\\n')); line = end + 1", "line && *line && ((end = strchr(line, '\\n')) || (end = line + strlen(line) - 1)); line = end + 1", [e2e("test_agent.py", "the_fence_is_appended_to_and_a_cut_line_never_counted")]),
    ("finding stops the job", "daemon/core/rules/cordon.c", "	r.cause = mo_strdup(\"idle\");", "	r.cause = mo_strdup(\"now\");", [unit("dcore", "test_health"), SIM]),
    ("broken node used", "daemon/core/rules/place.c", " && health_allows(&s->nodes[node], r, slots->well[node]);", ";", [unit("dcore", "test_preflight"), SIM]),
    ("undrain forgotten", "daemon/core/update/update_node.c", "	if (!r->flag)\n		waive(n);\n", "", [unit("dcore", "test_health")]),
    ("baseline of another GPU kept", "agent/core/health/health_counters.c", "		if (k->identity) {\n", "		if (k->identity && !identity) {\n", [unit("acore", "test_health_kept")]),
    ("counter that began anew compared with its past", "agent/core/health/health_counters.c", "} else if (k->last != MO_NONE_F && value < k->last) {", "} else if (k->last != MO_NONE_F && value < -k->last) {", [unit("acore", "test_health_kept")]),
    ("history taken for a finding", "agent/core/health/health_rules.c", "MO_MIN(rule_limits(c, k->base), c->history)", "rule_limits(c, k->base)", [unit("health", "test_checks")]),
    ("a rate forgets what it saw", "agent/core/health/health_counters.c", "		add_moment(k, k->seen, k->last);\n", "		k->n_moments = 0;\n", [unit("acore", "test_health_kept")]),
    ("garbage is no bad page", "agent/probe/gpu.c", "!text_bad_pages(b->data, &pages))", "!(text_bad_pages(b->data, &pages), true))", [e2e("test_probe_broken.py", "each_file_broken_in_each_way")]),
    ("a sum told without one of its parts", "agent/probe/gpu.c", "l->problems == problems && k < RAS_KINDS", "k < RAS_KINDS", [e2e("test_probe_broken.py", "each_file_broken_in_each_way")]),
    ("secret on the command line told", "agent/core/health/sysfs_text.c", "n <= TEXT_LINE_MAX && cmdline_known(p, name) && ", "n <= TEXT_LINE_MAX && ", [unit("acore", "test_sysfs_text")]),
    ("living node fenced", "daemon/core/rules/fleet.c", "	if (n->state == NODE_UP) {\n		turn_reply(t, 409", "	if (n->state == _NODE_STATE_N) {\n		turn_reply(t, 409", [e2e("test_faults.py", "fenced_node")]),
    ("next boot fenced", "daemon/core/rules/fleet.c", "if (t->event->text && !mo_streq(t->event->text, n->boot_id)) {", "if (t->event->text && !t->now) {", [unit("dcore", "test_fleet")]),
    ("question numbers of the run before", "daemon/agent_link.c", "q->id = (manager_state(l->manager)->epoch & INT32_MAX) << 32 | (++l->n_asked & UINT32_MAX);", "q->id = ++l->n_asked;", [e2e("test_streams.py", "followed_to_the_end")]),
    ("living rank's log ended", "daemon/api_logs.c", "bool end = s->follow ? a->end && !rank_lives(k) : a->end || !a->more;", "bool end = a->end || (!s->follow && !a->more);", [e2e("test_streams.py", "logs")]),
    ("a hook chooses what is resumed", "agent/core/stepd/hooks.c", "return (flag_same(extra->key, flag) && !on_command(l, extra)) ||", "return mo_streq(extra->key, \"\") ||",
     [unit("acore", "test_prepare"), e2e("test_engines.py", "prepare")]),
    ("engine.args choose what is resumed", "lib/recipe/rules_engine.c", "	if (instead)\n		errors_at(", "	if (instead && !value)\n		errors_at(", [unit("recipe", "test_rules")]),
    ("rules blind to engine.args", "lib/recipe/rules_features.c", "(!arg->origin && rules_unchecked(k, arg->flag))", "!arg->origin", [unit("recipe", "test_rules")]),
    ("1 is not true", "lib/recipe/args.c", "{ \"true\", \"1\",", "{ \"true\", \"true\",", [unit("recipe", "test_rules")]),
    ("runaway pattern taken", "lib/recipe/runaway.c", "== PCRE2_ERROR_MATCHLIMIT", "== PCRE2_ERROR_NOMEMORY", [unit("recipe", "test_engine")]),
    ("hostile rule tried for ever", "agent/core/text/lines.c", "r->gave_up < GIVE_UPS_MAX && ", "", [unit("acore", "test_lines")]),
    ("flood of iterations told whole", "agent/core/stepd/step.c", "	s->room_us -= SAMPLE_US;\n", "", [unit("acore", "test_step_samples")]),
    ("a script's own interval word stays", "daemon/core/rules/launch.c", "? word_now(j, k) : NULL", "? every_now(j, k) : NULL", [unit("dcore", "test_interval")]),
    ("changed model resumed silently", "lib/recipe/resume.c", "if (old && new && !may && ", "if (old && new && may && ", [unit("recipe", "test_rules")]),
    ("environment of a rank said of its node", "cli/dryrun.c", "			return BY_RANK;\n", "			return BY_NODE;\n", [e2e("test_recipes.py", "text_says_what_json_says")]),
    ("what is unread passes as verified", "agent/core/bind/bind_judge.c", "(verified != 0 && !unread)", "verified != 0", [unit("acore", "test_bind")]),
    ("vanished GPU shifts slots", "agent/core/agent/discovery.c", "join_gpus(info, before, &(const struct left_outs){ 0 }, true);", "join_gpus(info, before, &(const struct left_outs){ 0 }, false);", [unit("acore", "test_discovery")]),
    ("preflight of another boot kept", "agent/core/health/health_kept.c", "!mo_streq(m->boot_id, h->boot_id) || ", "", [unit("acore", "test_health_kept")]),
    ("findings beyond the limit are silent", "daemon/core/rules/cordon.c", "i + 1 == told ? n - told : 0", "0", [unit("dcore", "test_health")]),
    ("sensors of one sync are all there is", "daemon/core/rules/readings.c", "at = l->sensors[i].slot == g->slot ? &l->sensors[i] : NULL;", "at = &l->sensors[i];", [unit("dcore", "test_health")]),
    ("one more page is no news", "agent/core/health/health_counters.c", "k->total + MO_MAX(x - MO_MAX(k->last, 0), 0)", "k->total", [unit("acore", "test_health_kept"), unit("health", "test_checks")]),
    ("nonsense taken for a value", "agent/core/health/ranges.c", "return value >= ranges[i].least && value <= ranges[i].most ? NULL : &ranges[i];", "return NULL;", [unit("acore", "test_gpu_metrics")]),
    ("orphans not looked for", "agent/stuck.c", "return mo_proc_each(look_at, &p);", "return p.found == NULL;", [e2e("test_discovery.py", "what_hangs_since_an_earlier_agent_is_not_tried_again")]),
    ("missing GPU not told of", "daemon/core/state/slot_health.c", "		ret->missing |= gone;\n", "", [e2e("test_node_truth.py", "a_gpu_that_vanishes_under_a_job_is_shown_where_people_look")]),
    ("sign-in link used twice", "daemon/api_signin.c", "	if (s)\n		forget(s);\n", "", [e2e("test_rest.py", "sign_in_links")]),
    ("terminal steered by others", "cli/client.c", "	if (!cli->raw && !cli->json)\n		visible_json(ret->doc);\n", "", [e2e("test_cli.py", "texts_of_others_do_not_steer_the_terminal")]),
    ("long log cut for its last lines", "agent/logs.c", "		if (l->look_left < end - from)\n			return false;\n", "		if (l->look_left < end - from)\n			break;\n", [e2e("test_cli.py", "last_lines_of_a_long_log")]),
    ("a second job takes the directory", "daemon/core/rules/jobs.c", "!mo_streq(j->saves_to, clean)) || (!j->attempt && ", "!mo_streq(j->saves_to, clean)) || (j->attempt >= 0 && ",
     [unit("dcore", "test_checkpoints")]),
    ("a job saves below another one's directory", "daemon/core/rules/jobs.c", "		if (!how || (!own && *ret_warning))\n", "		if (!how || own || *ret_warning)\n", [unit("dcore", "test_checkpoints")]),
    ("a word of the engine's main stays a flag", "agent/core/stepd/hooks.c", "itself ? mo_printf(\"%s=%s\"", "!l ? mo_printf(\"%s=%s\"", [unit("acore", "test_prepare")]),
    ("a save elsewhere goes on", "daemon/core/update/checkpoints.c", "			doubt_begin(j, n->path, iteration);\n", "			j->path_refused = true;\n", [unit("dcore", "test_announced")]),
    ("a checkpoint of other sizes is tried", "daemon/core/update/checkpoints.c", "&& saved != have)", "&& saved > have + 100)", [unit("dcore", "test_checkpoints")]),
    ("found checkpoint taken for written", "daemon/core/update/checkpoints.c", "c->attempt != MO_NONE && mo_streq(c->path, found->path)", "mo_streq(c->path, found->path)", [unit("dcore", "test_checkpoints")]),
    ("time jumps, marks stay", "daemon/core/state/clock.c", "			shift_job(&s->jobs[i], shift);", "			(void)shift_job;", [unit("dcore", "test_clock")]),
    ("an incarnation below what agents obeyed", "daemon/core/rules/incarnation.c", "MO_MAX(now, MO_MAX(before, 0) / EPOCH_STARTS + 1) * EPOCH_STARTS", "now * EPOCH_STARTS + (before == 0)",
     [unit("dcore", "test_incarnation")]),
    ("numbers of the incarnation between again", "daemon/core/rules/incarnation.c", "return to > n ? to : next_multiple(n, by);", "return next_multiple(n, by) + 0 * to;", [unit("dcore", "test_incarnation"), SIM]),
    ("a hung step never goes missing", "daemon/core/rules/reports.c", "st->accepted && !st->missing)", "st->accepted && !st->hung)", [unit("dcore", "test_incarnation"), SIM]),
    ("a rank whose end nobody told died first", "daemon/core/rules/recovery.c", "(b.kind >= B_NODE && b.rank && ", "(false && b.rank && ", [unit("dcore", "test_recovery")]),
    ("an example machine passes for one of theirs", "daemon/core/rules/dryrun.c", "		placed = DRYRUN_EXAMPLE;\n", "", [unit("cli", "test_dryrun")]),
    ("the echo of a planned stop is a failure", "daemon/core/rules/recovery.c", "	if (outside) {\n", "	if (outside && !t) {\n", [unit("dcore", "test_outside"), SIM]),
    ("a launch beside an unknown step", "daemon/core/rules/commands.c", " || n->strange_steps ? -1 : CMD_LAUNCH", " ? -1 : CMD_LAUNCH", [unit("dcore", "test_incarnation")]),
    ("an unknown step is ended", "daemon/core/rules/commands.c", "	return discarded ? CMD_KILL : -1;", "	return CMD_KILL;", [unit("dcore", "test_incarnation"), SIM]),
    ("a restored job beside an attempt that nobody asked for", "daemon/core/rules/incarnation.c", "	unseen = some_unseen(s, &n);", "	(void)some_unseen;\n	unseen = NULL;\n	n = 0;",
     [unit("dcore", "test_incarnation")]),
    ("attempt numbers of after the backup again", "daemon/core/state/state.c", "MO_MAX(j->attempt, j->attempt_floor) + 1", "j->attempt + 1", [unit("dcore", "test_incarnation")]),
    ("acknowledged to the lost controller, told to no other", "agent/core/agent/steps.c", "	rewind_all(s, w, out);", "	(void)rewind_all;", [unit("acore", "test_steps_link")]),
    ("a start makes a state", "daemon/begin.c", "	if (begin_there(dir))", "	if (begin_there(dir) || dir)", [e2e("test_incarnation.py", "test_no_state_is_no_start")]),
]


def misplaced(root, mutant):
    """None when the line to change is there, once; else what to put right."""
    name, file, old, *_ = mutant
    path = os.path.join(root, file)
    n = 0
    if os.path.exists(path):
        with open(path) as f:
            n = f.read().count(old)
    return None if n == 1 else "its line is there %d times in %s: put it right in tests/mutants/mutants.py" % (n, file)


def copy_tree():
    shutil.rmtree(TREE, ignore_errors=True)
    os.makedirs(TREE)
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.split("\n")
    for f in filter(None, files):
        if os.path.exists(os.path.join(ROOT, f)):
            os.makedirs(os.path.dirname(os.path.join(TREE, f)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, f), os.path.join(TREE, f), follow_symlinks=False)


def run(command, timeout=120):
    """True when it succeeds, None when it was not finished in time. Its output goes to the log."""
    with open(os.path.join(TREE, "../log.txt"), "a") as log:
        log.write("$ %s\n" % command)
        log.flush()
        env = {k: v for k, v in os.environ.items() if k not in ("BUILD", "MAKEFLAGS", "MFLAGS")}
        try:
            return subprocess.run(["/bin/sh", "-c", command], cwd=TREE, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, timeout=timeout).returncode == 0
        except subprocess.TimeoutExpired:
            log.write("not finished in %d s\n" % timeout)
            return None


def make(targets):
    return run("make --no-print-directory -j2 %s" % targets, 900)


def killers_pass(wanted):
    """On the code as it is every killer must pass, or its failing says nothing."""
    ok = True
    for targets, command in sorted({k for m in MUTANTS for k in m[4] if not wanted or m[0] in wanted}):
        begin = time.monotonic()
        if not make(targets) or not run(command):
            print("FAIL %s: fails without any mutant" % command, flush=True)
            ok = False
        else:
            print("     %s passes (%.0f s)" % (command, time.monotonic() - begin), flush=True)
    return ok


def caught(mutant):
    """What is wrong, if anything, and what noticed the mutant. One that turns in circles is noticed by the time, which is said: a machine that is too busy looks the same."""
    name, file, old, new, killers = mutant
    path = os.path.join(TREE, file)
    if misplaced(TREE, mutant):
        return misplaced(TREE, mutant), None
    with open(path) as f:
        text = f.read()
    with open(path, "w") as f:
        f.write(text.replace(old, new))
    try:
        for targets, command in killers:
            if not make(targets):
                return "does not compile", None
            passed = run(command)
            if not passed:
                return None, ("the simulator" if targets == SIM[0] else command) + (", not finished in time" if passed is None else "")
        return "survived " + ", ".join(command for _, command in killers), None
    finally:
        with open(path, "w") as f:
            f.write(text)


def main():
    wanted = sys.argv[1:]
    if wanted == ["--lines"]:
        wrong = [(m[0], misplaced(ROOT, m)) for m in MUTANTS if misplaced(ROOT, m)]
        for w in wrong:
            print("mutant '%s': %s" % w)
        return 1 if wrong else 0
    passed = failed = 0
    copy_tree()
    if not killers_pass(wanted):
        print("0 passed, 1 failed")
        return 1
    for m in MUTANTS:
        if wanted and m[0] not in wanted:
            continue
        begin = time.monotonic()
        why, noticed = caught(m)
        if why:
            failed += 1
            print("FAIL %s: %s" % (m[0], why), flush=True)
        else:
            passed += 1
            print("ok   %s (%.0f s: %s)" % (m[0], time.monotonic() - begin, noticed), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
