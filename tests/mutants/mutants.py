#!/usr/bin/python3
"""One-line sabotages of the promises that outrank features, each of which the simulator or an
end-to-end test must catch. Every mutant is made in a copy of the tree (build/mutants), built there,
and given to its killers until one fails; a mutant that none notices is a failure, as is one whose
place is no longer in the code.

A mutant's place is a function (or a declared object) and a pattern that stands there once. The file
is looked for, and the pattern's white space is of no weight: code that is moved or set anew keeps
its mutants. Of functions of one name that several files define, one may hold the pattern.

Usage: mutants.py --places | --areas | [NAME ...]
--places: only whether every place and every killer is there (make lint)
--areas: how many mutants there are of what holds the house together (AREAS)"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TREE = os.path.join(ROOT, "build/mutants/tree")
ROOMS = ("agent", "cli", "daemon", "lib")

# Where what holds the house together is kept; calls of sync are known by the mutant's name.
AREAS = {
    "turn order": ("daemon/turn.c", "daemon/effects.c", "daemon/core/core.c"),
    "journal": (
        "daemon/journal.c",
        "daemon/journal_parts.c",
        "agent/journal.c",
        "agent/stepd/journal.c",
    ),
    "fence": ("agent/fence.c", "agent/core/agent/fence_book.c"),
    "codec": ("lib/wire/", "lib/model/orders.c"),
    "held syncs": ("daemon/agent_", "agent/link.c", "agent/token.c", "agent/core/agent/link.c"),
    "replay": ("daemon/journal_replay.c", "daemon/begin.c", "daemon/snapshot.c", "lib/store/"),
}
SYNC_CALLS = re.compile(r"\bsynced\b|before sync")


# a killer: what make builds for it, and the command
# a mutant may turn in circles
def sim(seeds):
    return (
        "build/sim",
        "for s in $(seq %d); do timeout 20 build/sim --seed $s >build/sim.txt 2>&1 || { tail -n 3 "
        "build/sim.txt; exit 1; }; done" % seeds,
    )


SIM = sim(60)
SIM_SOON = sim(8)  # what is lost with the power of any node


def e2e(file, *tests):
    return ("all fakes", "/usr/bin/python3 tests/e2e/%s %s" % (file, " ".join(tests)))


def unit(room, program):
    return ("build/tests/unit/%s/%s" % (room, program), "build/tests/unit/%s/%s" % (room, program))


# name, function or declared object, what stands there, what the mutant says, its killers
MUTANTS = [
    (
        "command before commit",
        "steps",
        "if (store_records(m, &out) == 0) {",
        "static struct core_out late;\n	struct core_out latest = out;\n"
        "	carry_out(m, inputs, n, &out);\n	latest.n_effects = 0;\n	out = late;\n"
        "	late = latest;\n"
        "	if (store_records(m, &out) == 0) {",
        [unit("seams", "test_turn"), e2e("test_order.py")],
    ),
    (
        "reply before sync",
        "database_open",
        "synchronous=FULL",
        "synchronous=OFF",
        [unit("seams/store", "test_loss"), e2e("test_order.py")],
    ),
    (
        "a log of which a bit is another ends there",
        "store_read",
        "s->through > s->last_seq",
        "s->through < 0",
        [unit("seams/store", "test_loss")],
    ),
    (
        "a directory that was made is not synced",
        "make_dir",
        "r == 0 && sync",
        "r == 0 && sync && made < 0",
        [unit("seams/store", "test_loss"), SIM_SOON],
    ),
    ("the fence is not synced", "write_described", "0600, true)", "0600, false)", [SIM_SOON]),
    (
        "the bytes of a small file are not synced",
        "write_tmp",
        "sync && mo_sync(fd, false) < 0",
        "sync && fd < 0",
        [SIM_SOON],
    ),
    (
        "the name of a small file is not synced",
        "mo_write_file",
        "return sync ? sync_parent(path) : 0;",
        "return sync ? (void)sync_parent, 0 : 0;",
        [SIM_SOON],
    ),
    ("a spool entry is not synced", "step_entry_write", "0600, true)", "0600, false)", [SIM]),
    (
        "a launch is not in the fence's log",
        "fence_save",
        "append(f, job, attempt) == 0",
        "(append ? 0 : 1) == 0",
        [SIM_SOON],
    ),
    (
        "a number that begins with 0 is read without the tree",
        "integer",
        "(*begin == '0' && (negative || r->at - begin > 1))",
        "(*begin == '0' && negative)",
        [unit("wire", "test_direct")],
    ),
    (
        "a key that is given twice is read without the tree",
        "members",
        "seen[i] || ",
        "",
        [unit("wire", "test_direct")],
    ),
    (
        "attempt number reused",
        "place_job",
        "int64_t attempt = job_next_attempt(j);",
        "int64_t attempt = j->attempt ? j->attempt : 1;",
        [SIM],
    ),
    (
        "next attempt before proof",
        "policy_all_dead",
        "return j->run.n_places > 0 && j->counts.dead == (int64_t)j->run.n_places;",
        "return j->run.n_places > 0 && (j->failure.decided || j->counts.dead == "
        "(int64_t)j->run.n_places);",
        [SIM],
    ),
    (
        "a label of another value is one that is asked for",
        "has",
        "return !w->value || is_text(labels[i].value, w->value, w->n_value);",
        "return true;",
        [unit("model", "test_labels")],
    ),
    (
        "labels asked for are found when one of them is there",
        "labels_match",
        "if (!has(labels, n, &w)) return false;",
        "if (has(labels, n, &w)) return true;",
        [unit("model", "test_labels")],
    ),
    (
        "what moves beside the iterations counts for nothing",
        "quiet_of",
        "written = MO_MIN(written, k.written);",
        "",
        [unit("dcore", "test_hang"), SIM],
    ),
    (
        "the clock of a start is taken for a beat of a run",
        "core_decide",
        "if (in->type == IN_CLOCK && !c->heard_from)",
        "if (0)",
        [unit("dcore", "test_hang")],
    ),
    (
        "a rank does for ever what it said at its start",
        "rank_engine_doing",
        "(iteration != MO_NONE || j->progress.iteration == MO_NONE)",
        "true",
        [unit("dcore", "test_rank_doing")],
    ),
    (
        "ranks of a silent node do what they did",
        "rank_doing_of",
        "n->state == NODE_SUSPECT || n->state == NODE_DOWN",
        "false",
        [unit("dcore", "test_rank_doing")],
    ),
    (
        "all asleep for half a minute hang",
        "limit_of",
        "v->processors ? l->asleep",
        "v->processors ? l->two",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "cards that stand are a verdict at once",
        "limit_of",
        "v->network ? l->cards",
        "v->network ? l->two",
        [unit("dcore", "test_hang")],
    ),
    (
        "cards that are not used stand still",
        "stands",
        "moved <= overdue + l->p99 + UNUSED_US",
        "true",
        [unit("dcore", "test_hang")],
    ),
    (
        "cards that poll move for ever",
        "quiet_of",
        "written < l->spins ?",
        "true ?",
        [unit("dcore", "test_hang")],
    ),
    (
        "a card that cannot be read stands still",
        "motion_net",
        "return known ||",
        "return true ||",
        [unit("acore", "test_motion")],
    ),
    (
        "a card that another job moves moves for this one",
        "motion_net",
        "if (!(c->shared && moves))",
        "if (true)",
        [unit("acore", "test_motion")],
    ),
    (
        "a GPU that other ranks share spins for this one",
        "motion_work",
        "g->shared ||",
        "",
        [unit("acore", "test_motion")],
    ),
    (
        "a webhook goes on though nobody took what it sent",
        "webhook_ended",
        "if (result != WEBHOOK_FAILED)",
        "if (true)",
        [unit("dcore", "test_webhook")],
    ),
    (
        "what a receiver never takes keeps all later events back",
        "webhook_judge",
        "return WEBHOOK_REFUSED;",
        "return WEBHOOK_FAILED;",
        [unit("dcore", "test_webhook")],
    ),
    (
        "a webhook's secret path is shown",
        "webhook_host",
        'strcspn(url + n, "/?#")',
        "strlen(url + n)",
        [unit("recipe", "test_webhooks_file")],
    ),
    (
        "a kernel that touches no memory waits for a peer",
        "gpu_work_take",
        "power * POWER_SHARE <= w->power_most",
        "true",
        [unit("acore", "test_gpu_work")],
    ),
    (
        "a GPU of which nothing was read did nothing",
        "gpu_work_take",
        "if (unseen)",
        "if (false)",
        [unit("acore", "test_gpu_work")],
    ),
    (
        "sensors that always say the same are believed",
        "gpu_work_take",
        "w->memory |= !still",
        "w->memory = true",
        [unit("acore", "test_gpu_work")],
    ),
    (
        "controllers of before are told of GPUs",
        "steps_to_wire",
        "!l->gpus && k",
        "k",
        [e2e("test_hang.py", "a_controller_of_before_is_not_told_of_gpus")],
    ),
    (
        "who compiles while GPUs wait for it hangs",
        "stalled",
        "MO_MIN(k->computed, k->processors)",
        "k->computed",
        [unit("dcore", "test_hang_gpus")],
    ),
    (
        "GPUs that spin have done so all the time",
        "evident",
        "a->spun >= l->one",
        "a->spun > 0",
        [unit("dcore", "test_hang_gpus")],
    ),
    (
        "a GPU that seemed to spin while the job iterated is evidence",
        "stalled",
        "stands(l, k->computed, overdue) ?",
        "true ?",
        [unit("dcore", "test_hang_gpus")],
    ),
    (
        "what goes by sockets stands still",
        "limit_of",
        "v->network ? gpus : MO_MAX(gpus, l->unread)",
        "gpus",
        [unit("dcore", "test_hang_gpus")],
    ),
    (
        "what nobody heard of a rank is rest",
        "look",
        "k.processors = age_us(m->cpu_ms);",
        "k.processors = age_us(m->cpu_ms == MO_NONE ? MO_NONE : m->cpu_ms + (now - at) / 1000);",
        [unit("dcore", "test_hang")],
    ),
    (
        "one GPU that can be read names its rank",
        "hang_judge",
        "if (!gpus)",
        "if (false)",
        [unit("dcore", "test_hang_gpus")],
    ),
    (
        "what a collective sends that waits is motion",
        "health_traffic_take",
        "rate >= MO_MAX((double)TRAFFIC_LEAST, t->most / TRAFFIC_SHARE)",
        "rate > 0",
        [unit("acore", "test_traffic")],
    ),
    (
        "cards are asked every few seconds for nothing",
        "pass_ended",
        "o->area == PROBE_NIC && now < h->traffic_until",
        "o->area == PROBE_NIC",
        [unit("acore", "test_traffic")],
    ),
    (
        "a hello whose agent has left is served",
        "door_left_behind",
        "poll(&p, 1, 0) > 0",
        "false",
        [unit("http", "test_door")],
    ),
    (
        "everybody may come in",
        "door_open",
        "d->inside < r->route->most",
        "true",
        [unit("http", "test_door")],
    ),
    (
        "all are asked to come again at the same time",
        "again_s",
        "d->pace_ns / 1000",
        "0",
        [unit("http", "test_door")],
    ),
    (
        "what is prompt waits for its turn",
        "must_wait",
        "(r->route && r->route->prompt) ||",
        "",
        [unit("http", "test_door")],
    ),
    (
        "a node whose old boot lives is not told when to come again",
        "turn_reply_later",
        "e->reply->after_s = (after_us + 999999) / 1000000;",
        "e->reply->after_s = MO_NONE;",
        [unit("dcore", "test_fleet")],
    ),
    (
        "an agent comes again before the time that it was told",
        "agent_core_lose_link",
        "asked ? MO_MIN(after_us, HELLO_MAX_US)",
        "asked ? s->backoff_us",
        [unit("acore", "test_agent_link")],
    ),
    (
        "whoever asks for a node gets the one before",
        "asked_again",
        "strcmp(s->nodes[*s->node_last]->name, name) == 0",
        "true",
        [unit("dcore", "test_fleet")],
    ),
    (
        "lines that come together were never awaited",
        "gap_of",
        "passed < took / 10",
        "false",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "a line of before a save ends it",
        "is_before",
        "n->sample->iteration <= p->phase_of",
        "false",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "a line of before an evaluation ends it",
        "is_before",
        "n->time - samples_step_us(j) <= p->phase_said",
        "false",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "what trains on beside a save is of before it",
        "is_before",
        "if (p->phase_of != MO_NONE)",
        "if (false)",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "a start may spin for ever",
        "hang_judge",
        "l->busy && v.quiet_us < l->spins",
        "l->busy",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "who is missing because it waits elsewhere is named",
        "look_for",
        "other->n_waits ? &ret->busy : &ret->free",
        "&ret->free",
        [unit("dcore", "test_hang_recorder")],
    ),
    (
        "a recorder that says nothing of a group has not joined",
        "enqueued",
        "return INT64_MAX;",
        "return -1;",
        [unit("dcore", "test_hang_recorder")],
    ),
    (
        "a stopped rank's peers name another",
        "name_missing",
        "v->plain || !f->named",
        "!f->named",
        [unit("dcore", "test_hang_recorder")],
    ),
    (
        "what flight recorders said before counts",
        "said",
        "at <= c->since ||",
        "",
        [unit("dcore", "test_hang_recorder")],
    ),
    (
        "the state of an entry is believed",
        "sort_out",
        "if (e->retired)",
        'if (e->retired || is(e->state, "completed"))',
        [unit("acore", "test_recorder")],
    ),
    (
        "flight recorders are asked all the time",
        "agent_core_motion",
        "s->recorder && !e->recorder_asked",
        "s->recorder",
        [unit("acore", "test_motion")],
    ),
    (
        "who names another place for dumps is asked",
        "add_recorder",
        "if (find(l, places[i]))",
        "if (false)",
        [unit("acore", "test_env")],
    ),
    (
        "every rank gets what asks its flight recorder",
        "add_recorder",
        "!r->recorder_dir || !recorder_wanted(l)",
        "!r->recorder_dir",
        [unit("acore", "test_env")],
    ),
    (
        "a node is odd by one slow pair",
        "odd",
        "t->slow > 1",
        "t->slow > 0",
        [unit("plan", "test_fabric")],
    ),
    (
        "a link is odd by one measurement",
        "fabric_is_link",
        "slow = !same_pair(&f->runs[i], r->a, r->b) ||",
        "slow = true ||",
        [unit("plan", "test_fabric")],
    ),
    (
        "a node with a job is checked",
        "check_node",
        "if (js_len(jobs)) {",
        "if (js_len(jobs) > 9) {",
        [e2e("test_fabric.py", "a_running_job_is_left_alone")],
    ),
    (
        "a measurement that somebody cancelled tells of its nodes",
        "gives_none",
        'mo_streq(state, "cancelled") ||',
        'mo_streq(state, "cancelling") ||',
        [e2e("test_fabric.py", "what_somebody_cancels_says_nothing")],
    ),
    (
        "a hang whose rank is known is blamed on the fabric",
        "why_hang_without_cause",
        "inc->first_rank == MO_NONE ||",
        "inc->first_rank != MO_NONE ||",
        [unit("dcore", "test_hang")],
    ),
    (
        "ranks of a hang are killed before they say where they stand",
        "hang_asks_stands",
        "return j->failure.decided",
        "return false && j->failure.decided",
        [unit("dcore", "test_hang")],
    ),
    (
        "what ends beside a hang is its cause",
        "blame_root",
        "\tif (blame_by_hang(j))",
        "\tif (best.kind == B_NONE && blame_by_hang(j))",
        [unit("dcore", "test_hang")],
    ),
    (
        "the first thread of all stands for its rank",
        "fold",
        "t->n -= t->n_thread;",
        "t->n -= 0;",
        [unit("acore", "test_split")],
    ),
    (
        "ranks that say where they stand dump their memory",
        "process_signal_ranks",
        "if (signal == SIGABRT)",
        "if (signal == SIGABRT && !s)",
        [e2e("test_hang.py", "spinning_is_suspected_and_ends_late")],
    ),
    (
        "a rank that nobody sees hangs too",
        "hang_act",
        "v.sure && v.unseen == 0 &&",
        "",
        [unit("dcore", "test_hang")],
    ),
    (
        "a verdict that is only to be told ends the attempt",
        "hang_act",
        'mo_streq(j->spec.recipe.hang, "auto")',
        "true",
        [unit("dcore", "test_hang")],
    ),
    (
        "a disk that hangs is a rank that does",
        "limit_of",
        "v->waits ? MO_MAX(limit, l->slow) : limit",
        "limit",
        [unit("dcore", "test_hang")],
    ),
    (
        "starts before say nothing of this one",
        "starting",
        "if (took == MO_NONE)",
        "if (took != 0)",
        [unit("dcore", "test_hang")],
    ),
    (
        "no node may compile again",
        "starting",
        "MO_MAX(8 * MO_MIN(took, us), 2 * l.suspect)",
        "8 * MO_MIN(took, us)",
        [unit("dcore", "test_hang")],
    ),
    (
        "what it survived it may not do again",
        "hang_limits_of",
        "l.two = MO_MAX(MO_MAX(5 * p99, 2 * longest),",
        "l.two = MO_MAX(MO_MAX(5 * p99, 0),",
        [unit("dcore", "test_hang")],
    ),
    (
        "the time before the controller was there counts",
        "hang_act",
        "t->core->heard_from",
        "0",
        [unit("dcore", "test_hang")],
    ),
    (
        "a reading that comes late says that nothing moved",
        "motion_take",
        "passed > LATE_US || passed < 0",
        "false",
        [unit("acore", "test_motion")],
    ),
    (
        "fourth net ignored",
        "hunt",
        "d->hunt.mnt = namespace_of(d);",
        "d->hunt.mnt = namespace_of(d) * 0;",
        [e2e("test_namespace.py", "escaped_of_a_killed_supervisor")],
    ),
    (
        "who closes its devices yet is gone",
        "lives",
        "p.state != 'Z' || living_thread(p.pid)",
        "!p.ending",
        [unit("base", "test_proc")],
    ),
    (
        "links of an image lead to the node",
        "open_in",
        "IN_ROOT | NO_MAGIC_LINKS | resolve",
        "0",
        [e2e("test_images.py", "links_lead_nowhere_else")],
    ),
    (
        "set-user bits of an image stay",
        "entry_read",
        "& RWX_ALL",
        "& 07777",
        [e2e("test_images.py", "rights_and_devices_are_left_out")],
    ),
    (
        "bytes of a layer not compared",
        "blob_end",
        "if (digest && !mo_streq(seen, digest))",
        "if (false)",
        [e2e("test_images.py", "damaged_images_are_refused")],
    ),
    (
        "unpacked bytes of a layer not compared",
        "layer_unpack",
        "if (r == 0 && digest)",
        "if (false)",
        [e2e("test_images.py", "what_docker_save_writes")],
    ),
    (
        "whiteouts take away what their layer brings",
        "tree_apply",
        "is_made(t, dir, e->name) ? 0 : ",
        "",
        [e2e("test_images.py", "what_lower_layers_brought_is_taken_away")],
    ),
    (
        "images that are about to be used go",
        "cache_keeps",
        "return true;",
        "return false;",
        [e2e("test_image_command.py", "what_a_job_waits_for_stays")],
    ),
    (
        "images of a user looked at as root",
        "look",
        "mo_identity_become(&s->owner);",
        "0;",
        [e2e("test_image_command.py", "of_one_user_alone")],
    ),
    (
        "images brought for people past the limit",
        "ask",
        "!images_may_ask(t, l, r && r->ready)",
        "false",
        [unit("dcore", "test_prefetch")],
    ),
    (
        "nodes kept for an image are queue time",
        "ledger_category",
        "j->image.waits ? GPU_IMAGE : GPU_QUEUE",
        "GPU_QUEUE",
        [unit("dcore", "test_image_waits")],
    ),
    (
        "a restart waits for its image without a word",
        "waterfall_image",
        "pass(j, MO_MAX(time, j->waterfall.at));",
        "j->waterfall.at = time;",
        [unit("dcore", "test_image_waits")],
    ),
    (
        "digest of a store not compared",
        "agent_core_image_news",
        "!mo_streq(is->digest, p->order.digest)",
        "false",
        [e2e("test_stores.py", "one_name_and_two_images")],
    ),
    (
        "digest of a store not compared by a step",
        "store_ask",
        "!mo_streq(ret->digest, b->digest)",
        "false",
        [e2e("test_stores.py", "a_name_that_moves_before_the_step")],
    ),
    (
        "lock on the image ends with its maker",
        "process_take_fd",
        "taken < 0 ? -errno : (int)taken",
        "taken < 0 ? -errno : mo_close((int)taken)",
        [e2e("test_container.py", "the_image_is_locked_while_the_step_runs")],
    ),
    (
        "why a program of an image cannot be executed",
        "child_look",
        "look_elsewhere(p->argv[0], ret);",
        "",
        [e2e("test_container_jobs.py", "programs_that_cannot_be_executed")],
    ),
    (
        "image looked at as root",
        "probe_image",
        "r = become(o, &who, err);",
        "r = mo_identity_resolve(o->user, &o->rule, &who, err);",
        [e2e("test_doctor_image.py", "devices_of_others")],
    ),
    (
        "image of another machine fits",
        "why",
        "f->machine && f->own && f->machine != f->own",
        "f->machine && !f->own",
        [unit("model", "test_program")],
    ),
    (
        "namespace known by its number alone",
        "is_inside",
        "mo_streq(b.data, h->text)",
        "h->text",
        [unit("base", "test_proc")],
    ),
    (
        "namespace not entered",
        "become",
        "if (p->mnt_fd >= 0 && setns(p->mnt_fd, CLONE_NEWNS) < 0)",
        "if (p->mnt_fd < -1)",
        [e2e("test_namespace.py", "escaped_of_a_killed_supervisor")],
    ),
    (
        "engine.prepare not in the namespace",
        "hook_fork",
        "plan.mem_policy = -1;",
        "plan.mem_policy = plan.mnt_fd = -1;",
        [e2e("test_container.py", "prepare_runs_in_the_image")],
    ),
    (
        "bound to the supervisor before the change of user",
        "child_run",
        "become(p);\n"
        "\t/* no program that it runs makes it another user: sudo, a set-user-id file of a mount "
        "*/\n"
        "\tif (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)\n"
        "\t\tfail(p, CHILD_USER, errno);\n"
        "\t/* After the change of user, which clears it; then the parent may have died before it "
        "was\n"
        "\t * set. */\n"
        "\tif (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)\n"
        "\t\tfail(p, CHILD_PARENT, errno);",
        "if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)\n"
        "\t\tfail(p, CHILD_PARENT, errno);\n"
        "\tbecome(p);\n"
        "\tif (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)\n"
        "\t\tfail(p, CHILD_USER, errno);",
        [e2e("test_container.py", "ends_with_its_supervisor")],
    ),
    (
        "saves into the layer of an image go on",
        "look_in_layer",
        "!container_mount_of(c, path) &&",
        "!c->image &&",
        [e2e("test_container_jobs.py", "saves_into_the_layer_of_the_image")],
    ),
    (
        "what an engine writes may lie in no mount",
        "check_outputs",
        "if (path && !container_mount_of(c, path)",
        "if (!path && !container_mount_of(c, path)",
        [unit("recipe", "test_container")],
    ),
    (
        "layer of a step not removed",
        "layers_remove",
        "int r = put_away(l, path);",
        "int r = path ? 0 : -ENOENT;",
        [e2e("test_container.py", "what_is_written_goes_with_the_step")],
    ),
    (
        "process without its first thread taken for dead",
        "look_at",
        "p.state == 'Z' ? living_thread(pid) : pid",
        "p.state == 'Z' ? living_thread(-1) : pid",
        [unit("base", "test_proc")],
    ),
    (
        "bytes of a registry not compared",
        "has_digest",
        'return mo_streq(hex, digest + strlen("sha256:"));',
        "return hex[0] && digest;",
        [e2e("test_registries.py", "other_bytes_are_refused")],
    ),
    (
        "command beside a rank not in its namespace",
        "exec_run",
        "if (s->mnt_fd >= 0) {",
        "if (s->mnt_fd < -1) {",
        [e2e("test_exec.py", "where_it_runs")],
    ),
    (
        "what a command leaves lives on",
        "run",
        "int r = env ? process_adopts_orphans() : -ENODATA;",
        "int r = env ? 0 : -ENODATA;",
        [e2e("test_exec.py", "leaves_nothing")],
    ),
    (
        "command runs twice",
        "was_taken",
        "if (s->execs[i].id == id)",
        "if (s->execs[i].id == -id)",
        [e2e("test_exec.py", "once_in_spite_of_a_new_agent")],
    ),
    (
        "everybody runs commands",
        "exec_forbidden",
        "if (admin || (user && mo_streq(user, j->spec.user)))",
        "if (admin || user)",
        [unit("dcore", "test_exec")],
    ),
    (
        "root in an image may change its root",
        "drop_rights",
        "cap < 64; cap++)",
        "cap < 0; cap++)",
        [e2e("test_container_root.py", "nothing_is_gained_outside")],
    ),
    (
        "groups of the account left outside of its image",
        "mo_userns_become",
        "setgroups((size_t)who->n_groups, who->groups) < 0",
        "setgroups(0, NULL) < 0",
        [e2e("test_container_root.py", "devices_by_group")],
    ),
    (
        "any directory of root's becomes the user's",
        "image_is_lent",
        "if (!is_of(image->bundle, st.st_uid, true) ||",
        "if (false && ",
        [e2e("test_container_root.py", "images_that_are_not_shared")],
    ),
    (
        "root in an image on a node that cannot",
        "node_runs_image",
        "c->user != CONTAINER_ROOT || ",
        "true || ",
        [unit("dcore", "test_images")],
    ),
    (
        "heartbeats read without the rights of the image",
        "heartbeat_start",
        ".user_fd = s->user_fd,",
        ".user_fd = 0,",
        [e2e("test_container_root.py", "heartbeats_are_read")],
    ),
    (
        "a password without TLS to where a registry wants it",
        "set_up",
        "t->http->plain && is_loopback(q->url)",
        "t->http->plain",
        [e2e("test_registries.py", "a_password_goes_without_tls_to_this_machine_only")],
    ),
    (
        "images of one user are never too many",
        "images_tidy",
        "mo_strs_add(&all->untidy, &all->n_untidy, own);",
        ";",
        [e2e("test_pulls.py", "images_of_users_are_bounded_too")],
    ),
    (
        "marker below a directory of the user's",
        "check_run",
        "st.st_uid != root || st.st_mode & 022",
        "false",
        [e2e("test_image_root.py", "marker_cannot_be_forged")],
    ),
    (
        "what a process put in the marker's place is opened",
        "mo_open_plain_in",
        "!S_ISREG(st.st_mode)",
        "false",
        [unit("base", "test_proc")],
    ),
    (
        "images for all jobs are open to all users",
        "open_cache",
        "fchmod(dir, 0700)",
        "fchmod(dir, 0755)",
        [e2e("test_pulls.py", "an_image_of_a_shared_directory")],
    ),
    (
        "refused images hold places of pull_parallel",
        "fetches",
        "return !r || !(r->ready || r->refused);",
        "return !r || !r->ready;",
        [unit("dcore", "test_prefetch")],
    ),
    (
        "a pull that trickles goes on",
        "has_moved",
        "is->done - p->moved_bytes >= MOVED_BYTES;",
        "is->done > p->moved_bytes;",
        [unit("acore", "test_pulls")],
    ),
    (
        "a pull that stands still is never ended",
        "end_still",
        "agent_effect(out, AX_IMAGE_STOP, 0, 0)->image = p->id;",
        "",
        [unit("acore", "test_pulls")],
    ),
    (
        "what was fetched is pruned while it is unpacked",
        "bring",
        "place_lock(p->layout) : -1;",
        "mo_open_at(AT_FDCWD, p->layout, O_RDONLY | O_DIRECTORY, 0) : -1;",
        [e2e("test_images.py", "pruned_while_it_is_unpacked")],
    ),
    (
        "all is pruned where there are no locks",
        "cache_prune",
        "bool locks = has_locks(path);",
        "bool locks = true;",
        [e2e("test_images.py", "a_file_system_without_locks")],
    ),
    (
        "images of steps pruned where there are no locks",
        "cache_prune",
        "|| cache_keeps(a, all.all[i].name)",
        "",
        [e2e("test_images.py", "a_file_system_without_locks")],
    ),
    (
        "no image where there are no locks",
        "place_lock",
        "if (r < 0 && !mo_flock_lacks(r))",
        "if (r < 0)",
        [e2e("test_images.py", "a_file_system_without_locks")],
    ),
    (
        "images brought as a system account",
        "add_user",
        "if (own) /* images for all are a system account's */",
        "if (!own)",
        [e2e("test_agent_start.py", "bad_users")],
    ),
    (
        "directory of images made for a system account",
        "become",
        "r = IMAGE_REFUSED;",
        "r = 0;",
        [e2e("test_images.py", "a_system_account_brings_none")],
    ),
    (
        "credentials read from a FIFO",
        "mo_secret_read_file",
        "O_NONBLOCK | O_NOCTTY",
        "0",
        [e2e("test_registries.py", "credentials_in_what_is_no_file")],
    ),
    (
        "link in place of a brought image followed",
        "image_open",
        "(b->brought ? O_NOFOLLOW : 0)",
        "0",
        [e2e("test_image_root.py", "a_brought_image_is_out_of_reach")],
    ),
    (
        "image without nosuid",
        "assemble",
        'mount("overlay", ROOT, "overlay", MS_NOSUID | MS_NODEV, options)',
        'mount("overlay", ROOT, "overlay", MS_NODEV, options)',
        [e2e("test_image_root.py", "set_user_id_gives_nothing")],
    ),
    (
        "every runtime allowed",
        "is_allowed",
        "if (mo_streq(s->runtimes[i], runtime))",
        "if (true)",
        [unit("acore", "test_box_image")],
    ),
    (
        "container of another step entered",
        "is_marked",
        "return r == 0 && mo_streq(said.data, s->marker);",
        "return r == 0;",
        [e2e("test_holder.py", "a_process_that_is_not_its")],
    ),
    (
        "container's process believed",
        "is_hold",
        "return same_file(exe, s->program);",
        "return true;",
        [e2e("test_holder.py", "a_process_that_is_not_its")],
    ),
    (
        "container with users of its own entered",
        "look",
        "s->why = wrong_spaces(pid);",
        "s->why = NULL;",
        [e2e("test_holder.py", "a_process_that_is_not_its")],
    ),
    (
        "container's pipe handed on",
        "process_fifo",
        "O_RDWR | O_CLOEXEC",
        "O_RDWR",
        [e2e("test_holder.py", "a_rank_in_it_everywhere")],
    ),
    (
        "container without nosuid",
        "holder_enter",
        "FLAG_NOSUID | FLAG_NODEV",
        "FLAG_NODEV",
        [e2e("test_holder.py", "a_rank_in_it_everywhere")],
    ),
    (
        "container on a node that starts none",
        "holds",
        "if (mo_streq(n->info.holders[i], runtime))",
        "if (runtime)",
        [unit("dcore", "test_images")],
    ),
    (
        "squashfs of users mounted where the site does not say so",
        "add_squashfs",
        "if (!s->squashfs)",
        "if (false)",
        [unit("acore", "test_box_image")],
    ),
    (
        "loop device of a killed step stays",
        "attach",
        "LO_FLAGS_READ_ONLY |\n\t\t\t\t\t\t\t\t  LO_FLAGS_AUTOCLEAR",
        "LO_FLAGS_READ_ONLY",
        [e2e("test_squashfs.py", "nothing_is_left_of_a_killed_supervisor")],
    ),
    (
        "image's name is an option of the runtime",
        "runtime_image_valid",
        "|| !isalnum((unsigned char)text[0])",
        "",
        [unit("recipe", "test_runtime_file")],
    ),
    (
        "layers of a runtime anywhere",
        "runtime_image_layers",
        "path[0] != '/' ||",
        "",
        [unit("acore", "test_runtime_image")],
    ),
    (
        "what a runtime kept is given up once",
        "failed",
        "mo_timer_in(r->timer, wait_us);",
        "(void)wait_us;",
        [e2e("test_stores.py", "what_is_not_given_up_at_once")],
    ),
    (
        "container of a runtime whose image it is not",
        "check_holder",
        "(b->holder && mo_streq(b->runtime, c->runtime))",
        "b->holder",
        [unit("acore", "test_box_image")],
    ),
    (
        "a young image pruned",
        "cache_prune",
        "all.all[i].used_us >= since ||",
        "",
        [e2e("test_images.py", "a_directory_of_images")],
    ),
    (
        "brought although it may not be",
        "pull",
        "if (a->never)",
        "if (false)",
        [e2e("test_images.py", "only_what_is_there_already")],
    ),
    (
        "squashfs opened as root",
        "open_squash",
        "\tuser_begin(b);\n\t_cleanup_(mo_closep) int file = squash_open(b);",
        "\t_cleanup_(mo_closep) int file = squash_open(b);",
        [e2e("test_squashfs.py", "a_file_of_somebody_else")],
    ),
    (
        "kept for all that is not known",
        "is_left",
        "return dir && mo_access(dir, F_OK) < 0 && errno == ENOENT;",
        "return dir != NULL;",
        [e2e("test_stores.py", "what_an_agent_before_left")],
    ),
    (
        "mounts opened as root",
        "user_begin",
        "set((uid_t)b->uid, (gid_t)b->gid);",
        "set(0, 0);",
        [e2e("test_image_root.py", "mounts_that_do_not_fit")],
    ),
    (
        "target made on the node",
        "make",
        "if (!is_own(dir))",
        "if (dir < 0 && !is_own(dir))",
        [e2e("test_image_root.py", "nothing_is_made_on_the_node")],
    ),
    (
        "link of the image followed",
        "check",
        "if (S_ISLNK(st.st_mode))",
        "if (st.st_mode == 0)",
        [e2e("test_image_root.py", "links_below_targets")],
    ),
    (
        "marker below the job's mounts",
        "place_outside",
        "mounts_place(&o->mounts);\n\tcheck_run(b);\n\tmount_place(&o->marker);",
        "mount_place(&o->marker);\n\tmounts_place(&o->mounts);",
        [e2e("test_image_root.py", "marker_cannot_be_forged")],
    ),
    (
        "walls of devices forgotten",
        "box_asks",
        "return b->root || b->n_walled > 0;",
        "return b->root;",
        [e2e("test_devices.py", "two_jobs_of_four")],
    ),
    (
        "GPUs behind walls keep the node's numbers",
        "walls_number",
        "if (!walls_gpus(l, info))",
        "if (l && info)",
        [unit("acore", "test_env"), e2e("test_devices.py", "two_jobs_of_four")],
    ),
    (
        "walls not read back",
        "judge",
        "problem = box_verify(s, m->pid);",
        "problem = m->pid ? NULL : box_verify(s, m->pid);",
        [e2e("test_devices.py", "maker_that_hides_nothing")],
    ),
    (
        "stale attempt accepted",
        "on_launch",
        "if (c->epoch < s->epoch || c->attempt <= agent_core_highest(s, c->job)) {",
        "if (c->epoch < 0) {",
        [e2e("test_agent.py", "stale_orders"), SIM],
    ),
    (
        "silence taken as death",
        "step_dead",
        "return s->gone || s->unkillable;",
        "return s->gone || s->unkillable || s->hung;",
        [SIM, e2e("test_faults.py", "hung_supervisor")],
    ),
    (
        "silent node taken as dead",
        "fall_silent",
        "silent_now(t, *list, state + 1);",
        "		{\n			const struct state *s = &t->core->state;\n"
        "			const struct node *n = (*list)->node;\n"
        "			struct record g;\n"
        "			silent_now(t, *list, state + 1);\n"
        "			for (size_t k = 0; n->state == NODE_DOWN && k < s->n_jobs; k++)\n"
        "				for (size_t m = 0; m < s->jobs[k]->n_steps; m++)\n"
        "					if (mo_streq(s->jobs[k]->steps[m].node, "
        "n->name) && !s->jobs[k]->steps[m].gone) {\n"
        "						record_init(&g, REC_GONE);\n"
        "						g.job = s->jobs[k]->id;\n"
        "						g.attempt = s->jobs[k]->steps[m].attempt;\n"
        "						g.node = mo_strdup(n->name);\n"
        "						turn_emit(t, &g);\n"
        "					}\n		}\n",
        [SIM, e2e("test_faults.py", "silent_node")],
    ),
    (
        "heard last stands first",
        "watch",
        "DL_APPEND2(*list, l, earlier, later);",
        "DL_PREPEND2(*list, l, earlier, later);",
        [unit("dcore", "test_cost"), unit("dcore", "test_fleet")],
    ),
    (
        "nobody is remembered to bring an image",
        "images_may_ask",
        "asks(c, l);",
        "(void)asks;",
        [unit("dcore", "test_prefetch")],
    ),
    (
        "room for cordons that nobody remembers",
        "health_cordon_all",
        "c->room_awaited |= i < c->state.n_nodes;",
        "",
        [unit("dcore", "test_health")],
    ),
    (
        "beats of a stall lost",
        "fleet_late",
        "if (by <= 0)\n		return;",
        "if (by != 0)\n		return;",
        [SIM, e2e("test_faults.py", "frozen_machine")],
    ),
    (
        "incomplete checkpoint taken",
        "ckpt_judge",
        "return reason ? reason : ckpt_judge_tracker(r, e, q);",
        "free(reason);\n	return ckpt_judge_tracker(r, e, q);",
        [e2e("test_helpers.py")],
    ),
    (
        "cut index taken",
        "walk",
        'return w->depth == 0 && w->n_marks == 0 ? w->at == w->n ? NULL : "something lies '
        'behind its end" : garbage;\n	}\n	return cut;',
        "return NULL;\n	}\n	return NULL;",
        [
            unit("acore", "test_ckpt_formats"),
            e2e("test_checkpoints.py", "a_cut_index_never_passes"),
        ],
    ),
    (
        "unlisted shard taken",
        "judge_shard",
        "return unknown ? mo_printf(",
        "return unknown && !f->name ? mo_printf(",
        [unit("acore", "test_ckpt_formats")],
    ),
    (
        "missing column taken",
        "judge_count",
        "if (stated > 0 && stated != parts)",
        "if (stated < 0)",
        [
            unit("acore", "test_ckpt_formats"),
            e2e("test_checkpoints.py", "damaged_megatron_lm_legacy"),
        ],
    ),
    (
        "zeros taken for a shard",
        "torch_damage",
        'return mo_strdup(only_zeros(head, n) ? "it holds zeros" : "it is no file of '
        'torch.save");',
        "return NULL;",
        [e2e("test_checkpoints.py", "damaged_torchtitan")],
    ),
    (
        "announced checkpoint holds a place",
        "checkpoint_surplus",
        "newer += c->state == CKPT_VERIFIED;",
        "newer++;",
        [unit("dcore", "test_keep")],
    ),
    (
        "removal forgotten at the end",
        "add_end_scan",
        "add_known(j, k);\n	add_removals(j, k);",
        "add_known(j, k);",
        [unit("dcore", "test_keep")],
    ),
    (
        "bind left out",
        "child_run",
        "if (p->cpus && sched_setaffinity(0, p->cpus_size, p->cpus) < 0)",
        "if (p->cpus && !p->cpus_size)",
        [e2e("test_bind.py", "each_rank_on_its_own_core")],
    ),
    (
        "read-back constant",
        "judge",
        "mo_idset_parse(allowed_cpus, &have) < 0",
        "mo_idset_parse(want->cpus, &have) < 0",
        [unit("acore", "test_bind"), e2e("test_bind.py")],
    ),
    (
        "environment leaked",
        "prepare_rank",
        "c->envp = env;",
        "extern char **environ;\n	size_t n = 0, k = 0;\n	while (env[n])\n"
        "		n++;\n"
        "	while (environ[k])\n		k++;\n"
        "	env = prepared_keep(p, mo_realloc_array(memcpy(mo_alloc_array(n + k + 1, "
        "sizeof(char "
        "*)), env, n * sizeof(char *)), n + k + 1, sizeof(char *)));\n"
        "	memcpy(env + n, environ, (k + 1) * sizeof(char *));\n	c->envp = env;",
        [e2e("test_agent.py", "launch_eight_ranks")],
    ),
    (
        "ledger second dropped",
        "ledger_charge_as",
        "j->ledger[category] += job_gpus(j) * (time - j->ledger_at);",
        "j->ledger[category] += job_gpus(j) * ((time - j->ledger_at) / 1000000 * 1000000);",
        [SIM],
    ),
    (
        "superseded checkpoint offered again",
        "judge",
        "if ((c->state == CKPT_SUPERSEDED && known) ||",
        "if (",
        [unit("dcore", "test_checkpoints"), SIM],
    ),
    (
        "the controller's clock says what was written again",
        "as_known",
        "f->saved_at <= checkpoint_seen(c)",
        "f->saved_at <= c->saved_at",
        [unit("dcore", "test_checkpoints")],
    ),
    (
        "what was saved behind a backup is the last attempt's",
        "last_writer",
        "j->attempt < j->attempt_floor ? 0 : j->attempt",
        "j->attempt",
        [unit("dcore", "test_numbers")],
    ),
    (
        "a refusal of a step that was called off is waited for",
        "known_step",
        "if (done_with(j, st))",
        "if (false)",
        [unit("dcore", "test_fleet")],
    ),
    (
        "damage behind which one went back offered again",
        "checkpoint_supersede",
        "if (c->iteration <= resume || c->state == CKPT_SUPERSEDED || c->state == CKPT_DELETED)",
        "if (c->iteration <= resume || !checkpoint_usable(c))",
        [unit("dcore", "test_checkpoints")],
    ),
    (
        "chosen checkpoint removed",
        "held",
        "c->iteration == asked ||",
        "asked == INT64_MAX ||",
        [unit("dcore", "test_keep")],
    ),
    (
        "manifest not compared",
        "add_known",
        "f->manifest = mo_strdup(c->manifest);",
        "f->manifest = NULL;",
        [unit("dcore", "test_verify"), SIM],
    ),
    (
        "every manifest taken for the same",
        "examine",
        "reason = mo_streq(digest, known->manifest) ?",
        "reason = mo_streq(digest, digest) ?",
        [e2e("test_checkpoints.py")],
    ),
    (
        "last good checkpoint removed",
        "held",
        "c->iteration == good ||",
        "good == INT64_MAX ||",
        [unit("dcore", "test_interval")],
    ),
    (
        "measured interval not applied",
        "update_place",
        "every_set(s, j);",
        "",
        [unit("dcore", "test_interval")],
    ),
    (
        "what jobs share is changed in place",
        "update_config",
        "words_own(&j->spec); /* it is changed */",
        "",
        [unit("dcore", "test_config")],
    ),
    (
        "of a shared list all words are the lender's",
        "word",
        "*mine && mo_streq(*mine, theirs)",
        "*mine && theirs",
        [unit("base", "test_desc_lend")],
    ),
    (
        "users push out nodes' events",
        "thin",
        "MO_MIN(n_others, side)",
        "MO_MIN(n_others / 2, side)",
        [unit("dcore", "test_ring")],
    ),
    (
        "viewers take both searches",
        "may_run",
        "n_viewers < SEARCHES_OF_VIEWERS",
        "n_viewers < SEARCHES_AT_ONCE",
        [unit("dcore", "test_searches")],
    ),
    (
        "part counted twice",
        "verify_result",
        "j->verify.done |= 1LL << part;",
        "j->verify.done = (1LL << j->verify.parts) - 1;",
        [unit("dcore", "test_verify")],
    ),
    (
        "shell's signal taken for an exit",
        "signal_of",
        "return k->exit->code > 128 &&",
        "return k->exit->code > 255 &&",
        [unit("dcore", "test_recovery")],
    ),
    (
        "a checkpoint on two nodes taken for the program",
        "holds",
        "return !f->loading && !numbers_may_skip",
        "return !numbers_may_skip",
        [unit("dcore", "test_suspect")],
    ),
    (
        "age of notes by a clock that is set",
        "age_of",
        "return n->mono_ns != MO_NONE ?",
        "return n->mono_ns == MO_NONE ?",
        [unit("dcore", "test_recovery")],
    ),
    (
        "cordon cap ignored",
        "health_cordon",
        "if (!cordon_room(t->core, finding->hardware)) {",
        "if (t->core->n_cordoned >= t->core->state.n_nodes) {",
        [unit("dcore", "test_health"), SIM],
    ),
    (
        "checks sent with the next beat",
        "tell_awaited",
        "if (health_awaited(w->core))",
        "if (health_awaited(w->core) && false)",
        [e2e("test_health.py", "what_a_job_waits_for_does_not_wait_for_a_beat")],
    ),
    (
        "a launch does not wait for its GPUs",
        "health_release",
        "if (r <= worst)",
        "if (true)",
        [unit("acore", "test_health")],
    ),
    (
        "a GPU is called held while it settles",
        "verdict_judge",
        "if (f->early) {",
        "if (false) {",
        [unit("acore", "test_health")],
    ),
    (
        "held before is held by the job",
        "of_check",
        "v->known ||",
        "",
        [unit("acore", "test_health")],
    ),
    (
        "what cannot be read holds a launch up",
        "of_object",
        "o->silent ||",
        "",
        [unit("acore", "test_health")],
    ),
    (
        "an agent that began anew trusts its GPUs",
        "add_object",
        "h->begun_anew ? now : MO_NONE",
        "MO_NONE",
        [unit("acore", "test_health_retained")],
    ),
    (
        "who begins anew does not wait for its checks",
        "watch_release",
        "return RELEASE_WAITS;",
        "return RELEASE_DONE;",
        [e2e("test_release.py", "an_agent_that_begins_anew_looks_again")],
    ),
    (
        "checks that cannot be read hold a launch up",
        "on_checks",
        "releases_look(w->m->releases);",
        "",
        [e2e("test_release.py", "checks_that_cannot_be_read_hold_nothing_up")],
    ),
    (
        "a mark before 1970 stays where it is",
        "move",
        "*mark != 0)",
        "*mark > 0)",
        [unit("dcore", "test_clock")],
    ),
    (
        "two nodes that keep GPUs are the program",
        "holds",
        "return blame_gpu_held(&v->blame);",
        "return false;",
        [unit("dcore", "test_recovery")],
    ),
    (
        "a look that never comes holds a launch up",
        "of_check",
        "if (now >= last + LATE_US)",
        "if (false)",
        [unit("acore", "test_health")],
    ),
    (
        "who ended beside a job counts against its GPU",
        "judge",
        "health_idle(h, o) && !health_loaded(h)",
        "!health_loaded(h)",
        [unit("acore", "test_health")],
    ),
    (
        "who is looked at every second is always next",
        "due_longest",
        "(!found || at < object_due(h, found))",
        "!found",
        [unit("acore", "test_health")],
    ),
    (
        "a long finding makes a message that nobody reads",
        "health_note",
        "mo_utf8_shown(f->text, FOUND_BYTES_MAX)",
        "1 << 20",
        [unit("acore", "test_health")],
    ),
    (
        "a process whose first thread ended has ended",
        "has_ended",
        '&& strstr(l->text.data, "\\nThreads:\\t1\\n")',
        "",
        [e2e("test_probe.py", "what_ended_processes_left")],
    ),
    (
        "a step's waiting is told a controller that cannot read it",
        "steps_to_wire",
        "if (!l->waits)",
        "if (false)",
        [e2e("test_release.py", "a_controller_of_before_is_not_told")],
    ),
    (
        "started while its GPUs are held",
        "on_fence_done",
        "} else if (e->has_gpus) {",
        "} else if (false) {",
        [unit("acore", "test_agent_orders")],
    ),
    (
        "a node that keeps GPUs is no fault of it",
        "blame_class",
        "|| blame_gpu_held(b)",
        "",
        [unit("dcore", "test_recovery")],
    ),
    (
        "older health taken over newer",
        "health_reported",
        "h->version <= l->health_seen",
        "h->version == l->health_seen",
        [unit("dcore", "test_health")],
    ),
    (
        "a step that is over is removed piece by piece",
        "step_dir_forget",
        "mo_rename(d->path, gone) < 0",
        "mo_rm_rf(d->path) < 0",
        [unit("seams/agent", "test_agent"), SIM],
    ),
    (
        "a refusal is said before its step is put away",
        "step_effect",
        "case AX_FORGET: step_dir_forget(d); break;",
        "case AX_FORGET: d->forgotten = true; break;",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "a node's own token is not synced",
        "write_token",
        "0600, true)",
        "0600, false)",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "cut line of the fence believed",
        "read_log",
        "line && (end = strchr(line, '\\n')); line = end + 1",
        "line && *line && ((end = strchr(line, '\\n')) || (end = line + strlen(line) - 1)); line "
        "= end + 1",
        [e2e("test_agent.py", "the_fence_is_appended_to_and_a_cut_line_never_counted")],
    ),
    (
        "finding stops the job",
        "health_cordon",
        'r.drain->when = mo_strdup("idle");',
        'r.drain->when = mo_strdup("now");',
        [unit("dcore", "test_health"), SIM],
    ),
    (
        "broken node used",
        "takes",
        "&& health_allows(n, r, slots->nodes[node]->well);",
        ";",
        [unit("dcore", "test_preflight"), SIM],
    ),
    (
        "undrain forgotten",
        "update_drain",
        "if (!on)\n		waive(n);",
        "",
        [unit("dcore", "test_health")],
    ),
    (
        "baseline of another GPU kept",
        "health_counters_of",
        "if (k->identity) {",
        "if (k->identity && !identity) {",
        [unit("acore", "test_health_retained")],
    ),
    (
        "counter that began anew compared with its past",
        "take",
        "} else if (k->last != MO_NONE_F && value < k->last) {",
        "} else if (k->last != MO_NONE_F && value < -k->last) {",
        [unit("acore", "test_health_retained")],
    ),
    (
        "history taken for a finding",
        "pass_since_boot",
        "MO_MIN(rule_limits(c, k->base), c->history)",
        "rule_limits(c, k->base)",
        [unit("health", "test_checks")],
    ),
    (
        "a rate forgets what it saw",
        "take_moment",
        "add_moment(k, k->seen, k->last);",
        "k->n_moments = 0;",
        [unit("acore", "test_health_retained")],
    ),
    (
        "garbage is no bad page",
        "pass_bad_pages",
        "!text_bad_pages(b->data, &pages))",
        "!(text_bad_pages(b->data, &pages), true))",
        [e2e("test_probe_broken.py", "each_file_broken_in_each_way")],
    ),
    (
        "a sum reported without one of its parts",
        "pass_ras_counts",
        "l->problems == problems && k < RAS_KINDS",
        "k < RAS_KINDS",
        [e2e("test_probe_broken.py", "each_file_broken_in_each_way")],
    ),
    (
        "secret on the command line reported",
        "text_cmdline",
        "n <= TEXT_LINE_MAX && cmdline_known(p, name) &&",
        "n <= TEXT_LINE_MAX &&",
        [unit("acore", "test_sysfs_text")],
    ),
    (
        "living node fenced",
        "fence",
        "if (n->state == NODE_UP) {\n		turn_reply(t, 409",
        "if (n->state == _NODE_STATE_N) {\n		turn_reply(t, 409",
        [e2e("test_faults.py", "fenced_node")],
    ),
    (
        "next boot fenced",
        "fence",
        "if (seen && !mo_streq(seen, n->boot.id)) {",
        "if (seen && !t->now) {",
        [unit("dcore", "test_fleet")],
    ),
    (
        "question numbers of the run before",
        "question_new",
        "q->id = (epoch & INT32_MAX) << 32 | (++l->n_asked & UINT32_MAX);",
        "q->id = ++l->n_asked;",
        [e2e("test_streams.py", "followed_to_the_end")],
    ),
    (
        "living rank's log ended",
        "on_answer",
        "bool end = s->follow ? a->end && !rank_lives(k) : a->end || !a->more;",
        "bool end = a->end || (!s->follow && !a->more);",
        [e2e("test_streams.py", "logs")],
    ),
    (
        "a hook chooses what is resumed",
        "decides",
        "return (flag_same(extra->key, flag) && !on_command(l, extra)) ||",
        'return mo_streq(extra->key, "") ||',
        [unit("acore", "test_prepare"), e2e("test_engines.py", "prepare")],
    ),
    (
        "engine.args choose what is resumed",
        "check_arg",
        "if (instead)\n		errors_at(",
        "if (instead && !value)\n		errors_at(",
        [unit("recipe", "test_rules")],
    ),
    (
        "rules blind to engine.args",
        "see_arg",
        "(!arg->origin && rules_unchecked(k, arg->flag))",
        "!arg->origin",
        [unit("recipe", "test_rules")],
    ),
    (
        "1 is not true",
        "bool_holds",
        '{ "true", "1",',
        '{ "true", "true",',
        [unit("recipe", "test_rules")],
    ),
    (
        "runaway pattern taken",
        "over_limit",
        "== PCRE2_ERROR_MATCHLIMIT",
        "== PCRE2_ERROR_NOMEMORY",
        [unit("recipe", "test_engine")],
    ),
    (
        "hostile rule tried for ever",
        "lines_feed",
        "r->gave_up < GIVE_UPS_MAX &&",
        "",
        [unit("acore", "test_lines")],
    ),
    (
        "flood of iterations reported whole",
        "take_room",
        "r->us -= cost;",
        "",
        [unit("acore", "test_stepd_samples")],
    ),
    (
        "a script's own interval word stays",
        "add_word",
        "? word_now(j, k) : NULL",
        "? every_now(j, k) : NULL",
        [unit("dcore", "test_interval")],
    ),
    (
        "changed model resumed silently",
        "recipe_changed",
        "if (old && new && !may &&",
        "if (old && new && may &&",
        [unit("recipe", "test_rules")],
    ),
    (
        "environment of a rank said of its node",
        "spread_of",
        "return BY_RANK;",
        "return BY_NODE;",
        [e2e("test_recipes.py", "text_says_what_json_says")],
    ),
    (
        "what is unread passes as verified",
        "bind_passes",
        "(verified != 0 && !unread)",
        "verified != 0",
        [unit("acore", "test_bind")],
    ),
    (
        "vanished GPU shifts slots",
        "discovery_vanished",
        "join_gpus(info, before, &(const struct left_outs){ 0 }, true);",
        "join_gpus(info, before, &(const struct left_outs){ 0 }, false);",
        [unit("acore", "test_discovery")],
    ),
    (
        "preflight of another boot kept",
        "health_restore",
        "!mo_streq(m->boot_id, h->boot_id) ||",
        "",
        [unit("acore", "test_health_retained")],
    ),
    (
        "findings beyond the limit are silent",
        "tell_all",
        "i + 1 == reported ? n - reported : 0",
        "0",
        [unit("dcore", "test_health")],
    ),
    (
        "sensors of one sync are all there is",
        "take_gpu",
        "at = l->sensors[i].slot == g->slot ? &l->sensors[i] : NULL;",
        "at = &l->sensors[i];",
        [unit("dcore", "test_health")],
    ),
    (
        "one more page is no finding",
        "take_rise",
        "k->total + MO_MAX(x - MO_MAX(k->last, 0), 0)",
        "k->total",
        [unit("acore", "test_health_retained"), unit("health", "test_checks")],
    ),
    (
        "nonsense taken for a value",
        "reading_impossible",
        "return value >= ranges[i].least && value <= ranges[i].most ? NULL : &ranges[i];",
        "return NULL;",
        [unit("acore", "test_gpu_metrics")],
    ),
    (
        "orphans not looked for",
        "orphans_find",
        "return mo_proc_each(visit, &p);",
        "return p.found == NULL;",
        [e2e("test_discovery.py", "what_hangs_since_an_earlier_agent_is_not_tried_again")],
    ),
    (
        "missing GPU not reported",
        "slot_health",
        "ret->missing |= gone;",
        "",
        [e2e("test_node_truth.py", "a_gpu_that_vanishes_under_a_job_is_shown_where_people_look")],
    ),
    (
        "sign-in link used twice",
        "api_signin_use",
        "if (s)\n		forget(s);",
        "",
        [e2e("test_rest.py", "sign_in_links")],
    ),
    (
        "terminal steered by others",
        "client_send",
        "if (!cli->raw && !cli->json)\n		visible_json(ret->doc);",
        "",
        [e2e("test_cli.py", "texts_of_others_do_not_steer_the_terminal")],
    ),
    (
        "long log cut for its last lines",
        "find_tail",
        "if (l->search_left < end - from)\n			return false;",
        "if (l->search_left < end - from)\n			break;",
        [e2e("test_cli.py", "last_lines_of_a_long_log")],
    ),
    (
        "a second job takes the directory",
        "dir_taken",
        "if (!j->attempt && !mo_streq(j->spec.user",
        "if (j->attempt >= 0 && !mo_streq(j->spec.user",
        [unit("dcore", "test_checkpoints")],
    ),
    (
        "a job saves below another one's directory",
        "dir_nested",
        "if (!how || (!own && *ret_warning))",
        "if (!how || own || *ret_warning)",
        [unit("dcore", "test_checkpoints")],
    ),
    (
        "a word of the engine's main stays a flag",
        "hooks_apply",
        'itself ? mo_printf("%s=%s"',
        '!l ? mo_printf("%s=%s"',
        [unit("acore", "test_prepare")],
    ),
    (
        "a save elsewhere goes on",
        "checkpoint_note",
        "doubt_begin(j, n->path, iteration);",
        "j->saves.path_refused = true;",
        [unit("dcore", "test_announced")],
    ),
    (
        "a checkpoint of other sizes is tried",
        "checkpoint_misfit",
        "&& saved != have)",
        "&& saved > have + 100)",
        [unit("dcore", "test_checkpoints")],
    ),
    (
        "found checkpoint taken for written",
        "writer_of",
        "c->attempt != MO_NONE && mo_streq(c->path, found->path)",
        "mo_streq(c->path, found->path)",
        [unit("dcore", "test_checkpoints")],
    ),
    (
        "time jumps, marks stay",
        "clock_shift",
        "shift_job(s->jobs[i], shift);",
        "(void)shift_job;",
        [unit("dcore", "test_clock")],
    ),
    (
        "an incarnation below what agents obeyed",
        "incarnation_epoch",
        "MO_MAX(now, MO_MAX(before, 0) / EPOCH_STARTS + 1) * EPOCH_STARTS",
        "now * EPOCH_STARTS + (before == 0)",
        [unit("dcore", "test_incarnation")],
    ),
    (
        "numbers of the incarnation between again",
        "leap",
        "return to > n ? to : next_multiple(n, by);",
        "return next_multiple(n, by) + 0 * to;",
        [unit("dcore", "test_incarnation"), SIM],
    ),
    (
        "a hung step never goes missing",
        "absent_steps",
        "st->accepted && !st->missing)",
        "st->accepted && !st->hung)",
        [unit("dcore", "test_incarnation"), SIM],
    ),
    (
        "a rank whose end nobody reported died first",
        "blame_step",
        "(b.kind >= B_NODE && b.rank &&",
        "(false && b.rank &&",
        [unit("dcore", "test_recovery")],
    ),
    (
        "an example machine passes for one of theirs",
        "dry_run",
        "placed = DRYRUN_EXAMPLE;",
        "",
        [unit("cli", "test_dryrun")],
    ),
    (
        "a machine that goes down is not counted",
        "update_leaving",
        "c->n_leaving += n->boot.leaving;",
        "",
        [unit("dcore", "test_outside")],
    ),
    (
        "the echo of a planned stop is a failure",
        "after_failure",
        "if (outside) {",
        "if (outside && !t) {",
        [unit("dcore", "test_outside"), SIM],
    ),
    (
        "a launch beside an unknown step",
        "command_for",
        "n->agent.token_expired || n->strays.any",
        "n->agent.token_expired",
        [unit("dcore", "test_incarnation")],
    ),
    (
        "a launch with an image to an agent that cannot run one",
        "command_for",
        "!node_runs_image(n, &j->spec.recipe)",
        "false",
        [unit("dcore", "test_images")],
    ),
    (
        "a node that runs no image is room for one",
        "takes",
        "node_runs_image(n, r) &&",
        "",
        [unit("dcore", "test_images")],
    ),
    (
        "checkpoints stay in the layer of the image",
        "container",
        "!dir || container_mount_of(ret->container, dir)",
        "dir",
        [unit("dcore", "test_images")],
    ),
    (
        "checkpoints go where the nodes do not look",
        "container_on_node",
        "c && clean && *clean == '/' ? container_mount_of(c, clean) : NULL",
        "NULL",
        [unit("recipe", "test_container")],
    ),
    (
        "a mount covers what tells whose step it is",
        "target_good",
        "*made = container_made(target)",
        "*made = NULL",
        [unit("recipe", "test_container")],
    ),
    (
        "an unknown step is ended",
        "stray_command",
        "return discarded ? CMD_KILL : -1;",
        "return CMD_KILL;",
        [unit("dcore", "test_incarnation"), SIM],
    ),
    (
        "a restored job beside an attempt that nobody asked for",
        "incarnation_holds",
        "unseen = some_unseen(s, &n);",
        "(void)some_unseen;\n	unseen = NULL;\n	n = 0;",
        [unit("dcore", "test_incarnation")],
    ),
    (
        "attempt numbers of after the backup again",
        "job_next_attempt",
        "MO_MAX(j->attempt, j->attempt_floor) + 1",
        "j->attempt + 1",
        [unit("dcore", "test_incarnation")],
    ),
    (
        "an announcement outlives what the scan found",
        "only_unmarked",
        "if (mo_streq(f->reason, missing))",
        "if (missing)",
        [unit("dcore", "test_rotten"), SIM],
    ),
    (
        "a checkpoint is loaded until the job fails",
        "suspect_blame",
        "if (k->failed_loads >= LOADS_MAX)",
        "if (k->failed_loads > 99)",
        [unit("dcore", "test_suspect")],
    ),
    (
        "a suspect without checksums is not read",
        "checkpoint_compares",
        "!c->compared && c->manifest &&",
        '!c->compared && c->manifest && mo_streq(c->level, "crc") &&',
        [unit("dcore", "test_suspect")],
    ),
    (
        "agents of before have read their part",
        "verify_result",
        "(checkpoint_compares(c) && f && f->level)",
        "checkpoint_compares(c)",
        [unit("dcore", "test_suspect")],
    ),
    (
        "what an archive says of its records is not compared",
        "file_records_feed",
        "if (r->crc != k->crc)",
        "if (false)",
        [e2e("test_checkpoints.py", "what_is_suspected_is_read_whole")],
    ),
    (
        "whoever was killed speaks against the checkpoint",
        "suspect_counts",
        "somebody_sent(b->rank->exit))",
        "false)",
        [unit("dcore", "test_suspect")],
    ),
    (
        "any two failures of a node are of one device",
        "named",
        "mo_streq(inc->device, device) && ",
        "",
        [unit("dcore", "test_device")],
    ),
    (
        "a device that two failures name is given to jobs",
        "after_failure",
        "d.action == DO_CORDON || twice",
        "d.action == DO_CORDON",
        [unit("dcore", "test_device")],
    ),
    (
        "a spare waits for its image when it is needed",
        "spares_images",
        "if (j && n->state == NODE_UP)",
        "if (j && n->state == NODE_DOWN)",
        [unit("dcore", "test_image_waits")],
    ),
    (
        "free slots are not of now",
        "attempt_over",
        "slots_touch_places(c, j);",
        "",
        [unit("dcore", "test_jobs")],
    ),
    (
        "the cluster's figures are counted anew",
        "tally_of",
        "s->tally && s->tally->n_stale == 0",
        "false",
        [unit("dcore", "test_cost")],
    ),
    (
        "the queue is judged for each input",
        "core_decide",
        "	act_jobs(&t);",
        "	act(&t);",
        [unit("dcore", "test_cost")],
    ),
    (
        "a spare is given to other jobs",
        "kept",
        "of != MO_NONE && ",
        "of == 0 && ",
        [unit("dcore", "test_spares")],
    ),
    (
        "a spare is kept while a job ahead waits",
        "judge_all",
        "!t->core->blocked && ",
        "",
        [unit("dcore", "test_spares")],
    ),
    (
        "a moment of silence ends a spare",
        "lost",
        "unheard && !n->drain.asked",
        "false",
        [unit("dcore", "test_spares")],
    ),
    (
        "a spare that computes wrong stays one",
        "computes_wrong",
        "r->state == CHECK_CRIT",
        "false",
        [unit("dcore", "test_spares")],
    ),
    (
        "a spare is taken for checked before it answers",
        "checked",
        "health_checked(n->health, j->id, n->spare.asked)",
        "true",
        [unit("dcore", "test_spares")],
    ),
    (
        "a lost node is replaced by any other",
        "offer_order",
        "x->strange != y->strange",
        "false",
        [unit("dcore", "test_spares")],
    ),
    (
        "the time of a spare is nobody's",
        "spare_end",
        "n->spare.gpus * MO_MAX(0, time - n->spare.since)",
        "0",
        [unit("dcore", "test_spares")],
    ),
    (
        "a spare outlives its job",
        "update_job",
        "if (k->state == JOB_PAUSED || job_state_final(k->state))",
        "if (false)",
        [unit("dcore", "test_spares")],
    ),
    (
        "nodes are powered off for jobs that wait",
        "power_wanted",
        'mo_streq(j->spec.recipe.on_node_loss, "spare")',
        "j != NULL",
        [unit("dcore", "test_power")],
    ),
    (
        "nodes are powered off however many are silent",
        "too_many_silent",
        "n > MO_MAX((size_t)1, s->n_nodes / 10)",
        "n > s->n_nodes",
        [unit("dcore", "test_power")],
    ),
    (
        "a node that was heard meanwhile is taken for off",
        "power_answered",
        "n->power.step != POWER_ASKED || ",
        "",
        [unit("dcore", "test_power")],
    ),
    (
        "an answer about another boot is taken",
        "power_answered",
        " || !mo_streq(n->boot.id, in->boot_id)",
        "",
        [unit("dcore", "test_power")],
    ),
    (
        "a command that failed is proof",
        "on_ended",
        "end->exited && end->status == 0",
        "end->exited",
        [e2e("test_faults.py", "a_command_that_fails_is_no_proof")],
    ),
    (
        "scarce room is told with each save",
        "space_event",
        "j->saves.space_told > told_before",
        "s.level > SPACE_ENOUGH",
        [unit("dcore", "test_space")],
    ),
    (
        "what checkpoint.keep removes takes room for ever",
        "removed_soon",
        "n += checkpoint_removing(&j->checkpoints[i]);",
        "n += 0;",
        [unit("dcore", "test_space")],
    ),
    (
        "a controller of before is told what is free",
        "answers_to_wire",
        "if (!space)",
        "if (false)",
        [unit("wire", "test_orders")],
    ),
    (
        "what was seen of checkpoint.dir before a cut is told as new",
        "drop_old_scans",
        "now - s->scans[i].began > SCAN_OLD_US",
        "false",
        [unit("acore", "test_agent_link")],
    ),
    (
        "room for a slow job is searched in each turn",
        "core_search_room",
        "return false;",
        "",
        [unit("dcore", "test_straggler_leave")],
    ),
    (
        "room for a slow job is searched once",
        "schedule",
        "c->passes++;",
        "",
        [unit("dcore", "test_straggler_leave")],
    ),
    (
        "the first nodes to come back have all jobs",
        "held",
        "if (c->tally.awaited > 0 && job_gpus(j) <= c->tally.gpus)",
        "if (false)",
        [unit("dcore", "test_waiting")],
    ),
    (
        "a job that the whole fleet cannot hold waits for it after a start",
        "held",
        "if (c->tally.awaited > 0 && job_gpus(j) <= c->tally.gpus)",
        "if (c->tally.awaited > 0)",
        [unit("dcore", "test_waiting")],
    ),
    (
        "a start waits for nodes that take no work",
        "node_awaited",
        "&& !n->drain.asked",
        "",
        [unit("dcore", "test_waiting")],
    ),
    (
        "a new agent has the queue judged",
        "update_node",
        "c->queue_dirty |= places_change(n, h);",
        "c->queue_dirty = true;",
        [unit("dcore", "test_cost")],
    ),
    (
        "a new agent that has more GPUs gets no work",
        "places_change",
        "|| !mo_desc_equal(&nodeinfo_desc, &n->info, &h->info)",
        "",
        [unit("dcore", "test_fleet")],
    ),
    (
        "a hello that was said again is stored again",
        "registered",
        "if (!known_so(",
        "if (true || !known_so(",
        [unit("dcore", "test_fleet")],
    ),
    (
        "a node that proves late that it is broken is taken again",
        "tell",
        "elsewhere_cordon(t, id, node, FAILURE_CORDON, text);",
        "(void)elsewhere_cordon;",
        [unit("dcore", "test_later")],
    ),
    (
        "findings of the attempt that runs are told of the one before",
        "of_failure",
        "r->since >= j->run.placed_at && place_of(j, node)",
        "false",
        [unit("dcore", "test_later")],
    ),
    (
        "a suspect is whole again when it is looked at",
        "judge",
        "if (c->failed_loads != MO_NONE && f->complete && known)",
        "if (false)",
        [unit("dcore", "test_suspect"), SIM],
    ),
    (
        "a tainted checkpoint is resumed",
        "checkpoint_usable",
        "return !c->tainted && (",
        "return (",
        [unit("dcore", "test_numbers")],
    ),
    (
        "data at which the loss went bad are trained again",
        "launch_make",
        "skip_words(&j->spec.engine, j->skips, j->n_skips, &ret->argv, &ret->n_argv);",
        "",
        [unit("dcore", "test_skip")],
    ),
    (
        "data are left out without end",
        "numbers_may_skip",
        "(int64_t)j->n_skips < j->spec.recipe.skips",
        "j->spec.recipe.skips > 0",
        [unit("dcore", "test_skip")],
    ),
    (
        "a recipe leaves data out that its engine trains",
        "rules_skip",
        "if (!e->n_skip)",
        "if (false)",
        [unit("recipe", "test_bad")],
    ),
    (
        "a check of the fabric is forgotten by the state",
        "on_fabric",
        "j->fabric = mo_desc_dup(&fabric_check_desc, r->fabric);",
        "return 0;",
        [unit("dcore", "test_fabric")],
    ),
    (
        "a hang that was looked into wants another check",
        "why_fabric_next",
        "(j->fabric && j->fabric->time >= inc->time)",
        "false",
        [unit("dcore", "test_fabric")],
    ),
    (
        "an odd verdict names nobody",
        "odd_problem",
        "if ((f->verdict == FABRIC_ODD) != (f->n_odd > 0))",
        "if (false)",
        [unit("dcore", "test_fabric")],
    ),
    (
        "data that begin anew are said to go on",
        "compare",
        "int64_t more = o->begins - o->ended;",
        "int64_t more = 0;",
        [unit("dcore", "test_data_order")],
    ),
    (
        "data left out by a window are a warning",
        "asked",
        "samples == add(0, left_out(j, resume + 1), n)",
        "false",
        [unit("dcore", "test_data_order")],
    ),
    (
        "half a line says that the engine tells no samples",
        "data_order_judge",
        "if (s->consumed_samples == MO_NONE ? !second(j, at)",
        "if (s->consumed_samples == MO_NONE ? false",
        [unit("dcore", "test_data_order")],
    ),
    (
        "a batch that changed between two lines is skipped data",
        "told",
        "s->iteration > o->resume + 1 && n != old",
        "false",
        [unit("dcore", "test_data_order")],
    ),
    (
        "a launch names what agents of before refuse",
        "line_rule",
        'if (!mo_streq(value, "consumed_samples") && !mo_streq(value, "batch_samples"))',
        "if (true)",
        [unit("dcore", "test_data_order")],
    ),
    (
        "a checkpoint of the last good loss is taken for good",
        "numbers_taint",
        "iteration >= n->good",
        "iteration > n->good",
        [unit("dcore", "test_numbers")],
    ),
    (
        "what an attempt began with is never tainted",
        "mark_all",
        "j->checkpoints[i].iteration == j->run.resume",
        "false",
        [unit("dcore", "test_numbers")],
    ),
    (
        "one NaN is a fault",
        "numbers_fault",
        "n->row >= NUMBERS_NAN_STAYS",
        "n->row >= 1",
        [unit("dcore", "test_numbers")],
    ),
    (
        "a spike that stays goes back although nobody asked for it",
        "numbers_fault",
        "numbers_goes_back(j) && n->row",
        "n->row",
        [unit("dcore", "test_numbers")],
    ),
    (
        "a loss that is never printed is NaN",
        "numbers_fault",
        "!numbers_bad(j) || !n->trusted ||",
        "!numbers_bad(j) ||",
        [unit("dcore", "test_numbers")],
    ),
    (
        "a skipped iteration is a loss of 0",
        "number_of_sample",
        "if (s->loss == MO_NONE_F || (none && s->skipped != MO_NONE && s->skipped > 0))",
        "if (s->loss == MO_NONE_F)",
        [unit("dcore", "test_numbers")],
    ),
    (
        "an iteration that is told twice counts twice",
        "numbers_sample",
        "if (!first && s->iteration <= n->judged)",
        "if (false)",
        [unit("dcore", "test_numbers")],
    ),
    (
        "the first losses are judged",
        "spikes",
        "if (n < LEAST)",
        "if (n < 2)",
        [unit("dcore", "test_numbers")],
    ),
    (
        "a loss near 0 that is a multiple is too high",
        "spikes",
        "MO_MAX(fabs(usual), SMALL)",
        "fabs(usual)",
        [unit("dcore", "test_numbers")],
    ),
    (
        "a gradient that was skipped is told",
        "numbers_grad_spike",
        "(s->skipped != MO_NONE && s->skipped > 0)",
        "false",
        [unit("dcore", "test_numbers")],
    ),
    (
        "a job goes back from one place without end",
        "numbers_went_back",
        "n->rollbacks = before + 1;",
        "n->rollbacks = 1;",
        [unit("dcore", "test_numbers")],
    ),
    (
        "going back counts though the job is past the place",
        "numbers_rollbacks",
        "checkpoint_newest_at_most(j, INT64_MAX, false) > n->place",
        "false",
        [unit("dcore", "test_numbers")],
    ),
    (
        "the next job takes what the one before knows to be tainted",
        "numbers_inherit",
        "checkpoint_tainted(theirs) && !c->tainted",
        "false",
        [unit("dcore", "test_numbers")],
    ),
    (
        "what a scan finds of a bad time is taken for good",
        "judge",
        "if ((is_new && j->attempt > 0) || (f->complete && !known))",
        "if (f->complete && !known)",
        [unit("dcore", "test_numbers")],
    ),
    (
        "with none but suspects a fresh start",
        "newest_or_fresh",
        "if (unread || suspect)",
        "if (unread)",
        [unit("dcore", "test_suspect")],
    ),
    (
        "rot behind a death is read and not compared",
        "examine",
        'if (!reason && suspected && mo_streq(known->level, "crc"))',
        "if (false)",
        [e2e("test_checkpoints.py", "what_attempts_die_of_is_not_loaded_for_ever")],
    ),
    (
        "a failed job begins again in another's directory",
        "stays_over",
        "if (other) {",
        "if (other && !j) {",
        [unit("dcore", "test_again")],
    ),
    (
        "the time that a job was over is charged to it",
        "begin_again",
        "j->ledger_at = j->waterfall.gone_at = time;",
        "j->waterfall.gone_at = time;",
        [unit("dcore", "test_again"), SIM],
    ),
    (
        "acknowledged to the lost controller, sent to no other",
        "agent_core_on_welcome",
        "rewind_all(s, w, out);",
        "(void)rewind_all;",
        [unit("acore", "test_agent_link")],
    ),
    (
        "a start makes a state",
        "begin_check",
        "if (begin_there(dir))",
        "if (begin_there(dir) || dir)",
        [e2e("test_incarnation.py", "test_no_state_is_no_start")],
    ),
    (
        "words about a peer count",
        "weight_of",
        "case FAIL_COLLATERAL:",
        "case _FAILURE_CLASS_N:",
        [unit("dcore", "test_verdict")],
    ),
    (
        "an echo beats a signal",
        "weight_of",
        "return signalled ? W_SIGNAL : W_EXIT;",
        "return W_EXIT;",
        [unit("dcore", "test_verdict")],
    ),
    (
        "what was survived is evidence",
        "near_end",
        "return at - 1;",
        "return 0;",
        [unit("dcore", "test_verdict")],
    ),
    (
        "an old finding is near",
        "near",
        "r->since >= at - VERDICT_NEAR_US",
        "r->since >= at - 10 * VERDICT_NEAR_US",
        [unit("dcore", "test_verdict")],
    ),
    (
        "a user's error asks the node",
        "verdict_of",
        "own_error |= ranks[i] == b->rank &&",
        "own_error |= !ranks[i] &&",
        [unit("dcore", "test_verdict")],
    ),
    (
        "a program's word cordons",
        "holds",
        "return v->proved;",
        "return v->class == FAIL_NODE_FAULT;",
        [unit("dcore", "test_verdict")],
    ),
    (
        "cordons without limit",
        "elsewhere_cordon",
        "if (!cordon_room(t->core, false)) {",
        "if (!t->core) {",
        [unit("dcore", "test_verdict")],
    ),
    (
        "storage is counted",
        "update_incident",
        "if (k->uncounted)",
        "if (k->uncounted && !j)",
        [unit("dcore", "test_verdict")],
    ),
    (
        "the recipe's action is ignored",
        "remedy_of",
        "found.action = action;",
        "found.action += 0;",
        [unit("dcore", "test_verdict")],
    ),
    (
        "no pause",
        "update_job",
        "MO_MAX(MO_MAX(j->spec.recipe.grace_us, k->pause_us), 0)",
        "MO_MAX(j->spec.recipe.grace_us, 0)",
        [unit("dcore", "test_streak")],
    ),
    (
        "a short win resets the pause",
        "won",
        "at - before->time >= STREAK_WON_US",
        "at > before->time",
        [unit("dcore", "test_streak")],
    ),
    (
        "time alone resets the pause",
        "won",
        "(before->iteration == MO_NONE || iteration > before->iteration)",
        "iteration >= before->iteration",
        [unit("dcore", "test_streak")],
    ),
    (
        "given up at once",
        "streak_spent",
        "j->failure.at - b->since < STREAK_PATIENCE_US",
        "j->failure.at < b->since",
        [unit("dcore", "test_streak")],
    ),
    (
        "a person waits",
        "update_intent",
        "j->not_before = 0;",
        "j->intent_now |= false;",
        [unit("dcore", "test_streak")],
    ),
    (
        "no node is avoided",
        "elsewhere_place",
        "if (j->incidents[i].elsewhere &&",
        "if (j->incidents[i].time < 0 &&",
        [unit("dcore", "test_streak")],
    ),
    (
        "the code is never to blame",
        "remedy_elsewhere_too",
        "return moved || same >= EVERYWHERE_BEFORE ? other : NULL;",
        "return NULL;",
        [unit("dcore", "test_streak")],
    ),
    (
        "the code is to blame only where an attempt was sent elsewhere",
        "remedy_elsewhere_too",
        "moved || same >= EVERYWHERE_BEFORE",
        "moved",
        [unit("dcore", "test_streak")],
    ),
    (
        "any failure elsewhere is the code's",
        "remedy_elsewhere_too",
        "if (!streak_same(inc, f))",
        "if (!f->class)",
        [unit("dcore", "test_streak")],
    ),
    (
        "start keeps its ballast",
        "ballast_before_start",
        "(void)ballast_release(dir);",
        ";",
        [unit("store", "test_store")],
    ),
    (
        "damaged fence of this boot begun anew",
        "fence_book_anew",
        "!b->boot.boot_id || mo_streq(b->boot.boot_id, boot_id)",
        "!b->boot.boot_id && boot_id",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "epoch forgotten with a damaged fence",
        "fence_book_anew",
        "b->file.epoch = MO_MAX(b->file.epoch, b->boot.epoch);",
        ";",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "step without its entry taken for none",
        "adopt",
        "step_left_read(d)",
        "STEP_LEFT_NOTHING",
        [e2e("test_namespace.py", "escaped_of_a_step_without_its_entry")],
    ),
    (
        "step of which nothing is known proved",
        "step_sweep",
        "if (!d->spool.step_id)",
        "if (d->sweeping)",
        [e2e("test_namespace.py", "nothing_proves_a_step_of_which_nothing_is_known")],
    ),
    (
        "standing counted productive",
        "ledger_charge_train",
        "charge_beyond(j, time, explained, GPU_HANG);",
        ";",
        [unit("dcore", "test_standing")],
    ),
    (
        "standing shown as productive",
        "standing_us",
        "now - since > explained ? now - since - explained : 0",
        "now < since ? now - since - explained : 0",
        [unit("dcore", "test_standing")],
    ),
    (
        "marks never thinned",
        "thin_marks",
        "m[i].at - m[i - 2].at <= MO_MAX(MARK_US, age / MARK_SHARE)",
        "m[i].at < m[i - 2].at",
        [unit("dcore", "test_window")],
    ),
    (
        "window from the mark behind it",
        "ledger_until",
        "j->ledger_marks[i].at <= moment",
        "j->ledger_marks[i].at <= moment + MO_MAX(moment - j->created_at, 0) / 2",
        [unit("dcore", "test_window")],
    ),
    (
        "queue in the GPU time",
        "seconds_of",
        "total += i == GPU_QUEUE ? 0 : ledger[i];",
        "total += ledger[i];",
        [unit("dcore", "test_standing")],
    ),
    (
        "overdue iteration is nothing to do",
        "next_of_iteration",
        "now - since <= limit",
        "now > 0",
        [unit("dcore", "test_overdue")],
    ),
    (
        "stopped supervisor told late",
        "on_word",
        "mo_timer_in(d->timer, PING_US);",
        "mo_timer_in(d->timer, 5 * PING_US);",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "a canary that broke lets the node back",
        "way_back_against",
        "!(r->when & WHEN_DOUBT)",
        "!(r->when & WHEN_DOUBT) || r->state == CHECK_UNKNOWN",
        [unit("dcore", "test_way_back")],
    ),
    (
        "what was found stays for ever where it can be tried no more",
        "settled",
        "found == CHECK_OK || f->skipped",
        "found == CHECK_OK",
        [unit("acore", "test_canary")],
    ),
    (
        "a NaN of the loss doubts no GPU",
        "core_sync_reply",
        "(!j->checks.doubted || mo_streq(j->checks.doubted, node))",
        "mo_streq(j->checks.doubted, node)",
        [unit("dcore", "test_way_back")],
    ),
    (
        "a doubt has no more time than other checks",
        "health_order_ends",
        "order->thorough ? HEALTH_DOUBT_BUDGET_US : HEALTH_BUDGET_US",
        "HEALTH_BUDGET_US",
        [unit("acore", "test_canary")],
    ),
    (
        "a job does not wait for the end of a doubt",
        "health_wait_us",
        "thorough ? HEALTH_DOUBT_US : HEALTH_CHECK_US",
        "HEALTH_CHECK_US",
        [unit("dcore", "test_way_back")],
    ),
    (
        "how fast a GPU is, is asked before what it computes",
        "program_begins",
        "c->when & WHEN_DOUBT || ",
        "true || ",
        [unit("acore", "test_canary")],
    ),
    (
        "memory that the canary holds is a finding",
        "judge",
        "(health_idle(h, o) && !health_loaded(h))",
        "health_idle(h, o)",
        [unit("acore", "test_canary")],
    ),
    (
        "memory that the canary held a moment ago is a finding",
        "health_program_left",
        "!health_loads(c)",
        "true",
        [unit("acore", "test_canary")],
    ),
    (
        "the way back is answered by time",
        "health_order_ends",
        "!order->job",
        "false",
        [unit("acore", "test_canary")],
    ),
    (
        "cordon of hardware lifted by itself",
        "cordon_lift",
        "!mo_starts_with(cordon, DISK_FULL)",
        "!cordon[0]",
        [unit("dcore", "test_health")],
    ),
    (
        "a rank is blamed where many stand out",
        "among",
        "if (s.n_odd * MANY > n)",
        "if (s.n_odd > n)",
        [unit("dcore", "test_straggler")],
    ),
    (
        "stages of a pipeline are peers",
        "readings_of",
        ".stage = k->coords ? k->coords->pp : 0",
        ".stage = 0",
        [unit("dcore", "test_straggler")],
    ),
    (
        "failures of before a node was given back cordon it again",
        "named",
        "&& inc->time > n->drain.forgiven_at)",
        ")",
        [unit("dcore", "test_device")],
    ),
    (
        "any drain forgives what failures said of a GPU",
        "update_drain",
        "if (!on && cordon_by_failures(n))",
        "if (!on)",
        [unit("dcore", "test_device")],
    ),
    (
        "who became slower is named where others did too",
        "standout_of_past",
        "if (n < 2 || s.n_odd > MO_MAX(n / MANY, (size_t)1))",
        "if (n < 1)",
        [unit("dcore", "test_straggler")],
    ),
    (
        "a rank's past names it where the job is as fast as ever",
        "search",
        "if (pace_slow(j)) {",
        "if (j->progress.pace) {",
        [unit("dcore", "test_straggler")],
    ),
    (
        "a rank's own past moves the job",
        "found_by",
        "r.straggler->alone = sign == SIGN_OWN;",
        "r.straggler->alone = false;",
        [unit("dcore", "test_straggler")],
    ),
    (
        "a rank is late whose GPU is as busy as the others'",
        "is_late",
        "busy > 0 && busy <= BUSY_AGREES &&",
        "busy > 0 &&",
        [unit("dcore", "test_activity")],
    ),
    (
        "a busy neighbour names a rank whose GPU is fed",
        "processor",
        "ret->odd.rank != MO_NONE && times(s, ACT_BUSY, ret->odd.rank) == 0",
        "ret->odd.rank != MO_NONE",
        [unit("dcore", "test_straggler_activity")],
    ),
    (
        "what was so before the job became slower names a rank",
        "changed",
        "now.rank != MO_NONE && odd(s, kind, above, true).rank != now.rank",
        "false",
        [unit("dcore", "test_activity")],
    ),
    (
        "an idle GPU names a rank of a job as fast as ever",
        "idle",
        "if (!slow)",
        "if (slow && !slow)",
        [unit("dcore", "test_activity")],
    ),
    (
        "memory alone is more work",
        "work",
        "times(s, ACT_POWER, ret->odd.rank) < POWER_AGREES",
        "false",
        [unit("dcore", "test_activity")],
    ),
    (
        "a slow job teaches what is usual",
        "acts_take",
        "a->n_usual > ACT_WINDOWS && a->n",
        "a->n",
        [unit("dcore", "test_straggler_activity")],
    ),
    (
        "one window names a rank",
        "act_now",
        "median(a->newest[kind])",
        "a->newest[kind][(a->n - 1) % ACT_WINDOWS]",
        [unit("dcore", "test_activity")],
    ),
    (
        "what ranks do is told at first sight",
        "stays",
        "now - b->act_odd_at >= STAYS_US",
        "true",
        [unit("dcore", "test_straggler_activity")],
    ),
    (
        "what is only said keeps out what says more",
        "straggler_act",
        "return j->straggler.sign == SIGN_OWN && search_activity(t, id, b);",
        "return false;",
        [unit("dcore", "test_straggler_activity")],
    ),
    (
        "a rank is held against its newest window",
        "learn_usual",
        "(k->usual_ms != MO_NONE_F && median >= k->usual_ms)",
        "false",
        [unit("dcore", "test_straggler")],
    ),
    (
        "a low clock makes a straggler of a fast job",
        "search",
        "if (sign == SIGN_CLOCK && !pace_slow(j))",
        "if (sign == SIGN_CLOCK && !j->progress.pace)",
        [unit("dcore", "test_straggler")],
    ),
    (
        "one reading of a clock is enough",
        "stays",
        "now - b->odd_at >= CLOCK_STAYS_US",
        "now >= b->odd_at",
        [unit("dcore", "test_straggler")],
    ),
    (
        "the best of other GPUs stays",
        "pace_get",
        "if (p->gpus != job_gpus(j))",
        "if (p->gpus == MO_NONE)",
        [unit("dcore", "test_straggler")],
    ),
    (
        "an attempt's straggler outlives it",
        "job_clear_attempt",
        "straggler_clear(&j->straggler);",
        "",
        [unit("dcore", "test_straggler")],
    ),
    (
        "a node's score does not order places",
        "offer_order",
        "if (x->lemon != y->lemon)",
        "if (x->lemon < 0)",
        [unit("dcore", "test_straggler")],
    ),
    (
        "a straggler counts as often as it was found",
        "straggler_weight",
        "return 0;",
        "return STRAGGLER_WEIGHT;",
        [unit("dcore", "test_straggler")],
    ),
    (
        "a job leaves a straggler before that pays",
        "not_worth",
        "if (w->lost < w->restart)",
        "if (w->lost < 0)",
        [unit("dcore", "test_straggler_leave")],
    ),
    (
        "a job leaves a straggler for nowhere",
        "no_room",
        "found == 0 ? NULL",
        "found >= 0 ? NULL",
        [unit("dcore", "test_straggler_leave")],
    ),
    (
        "a rank that is slow everywhere drains one node after the other",
        "doubtful",
        "f->left && f->rank == j->straggler.rank",
        "f->left && f->rank < 0",
        [unit("dcore", "test_straggler_leave")],
    ),
    (
        "wrong verdicts about stragglers have no end",
        "doubtful",
        "return n < LEAVES_MAX ? NULL",
        "return n >= 0 ? NULL",
        [unit("dcore", "test_straggler_leave")],
    ),
    (
        "a step's waiting is a rank's own",
        "core_own",
        "busy ? p->busy_ms : p->step_ms",
        "p->step_ms",
        [unit("dcore", "test_straggler")],
    ),
    (
        "what another engine saved is taken for its own",
        "like",
        "!mo_streq(a->engine.kind, b->engine.kind)",
        "a == b",
        [unit("dcore", "test_forecast")],
    ),
    (
        "a planned size is told as if it were measured",
        "space_text",
        "if (s->planned)",
        "if (s->planned && s->size == 0)",
        [unit("dcore", "test_forecast")],
    ),
    (
        "a first scan is held against no plan",
        "planned_size",
        "gb > 0 && gb < 1e9 ?",
        "gb < 0 && gb > 1e9 ?",
        [unit("dcore", "test_forecast")],
    ),
    (
        "what is known of a directory is forgotten while a job saves there",
        "job_leaves",
        "!dir_in_use(p, k->dir) &&",
        "",
        [unit("dcore", "test_history")],
    ),
    (
        "what speaks against a drained node is forgotten",
        "job_leaves",
        "&& !is_evidence(p, j)",
        "",
        [unit("dcore", "test_history")],
    ),
    (
        "a clock that leaps empties history",
        "too_old",
        "MO_MAX(time, p->leapt)",
        "time",
        [unit("dcore", "test_history")],
    ),
    (
        "a stored word makes a job that runs forgotten",
        "may_leave",
        "job_state_final(j->state) &&",
        "",
        [unit("dcore", "test_history")],
    ),
    (
        "who is heard first died first",
        "blame_root",
        "before(&earliest_died, &first_died)",
        "false",
        [unit("dcore", "test_recovery")],
    ),
    (
        "deaths whose errors overlap have an order",
        "before",
        "a->at + a->error < b->at - b->error",
        "a->at < b->at",
        [unit("dcore", "test_recovery")],
    ),
    (
        "a word of the attempt's start ends a save of another rank of its node",
        "phase_word",
        "st->pause_rank == n->rank",
        "true",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "a word of another node ends a save",
        "phase_word",
        "pause != PHASE_NONE ? pause : n->phase",
        "n->phase",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "an earlier save that is told late ends the one under way",
        "phase_saved",
        "if (is_earlier_save(j, n))",
        "if (false)",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "a save that ends takes an evaluation with it",
        "pauses_end",
        "phase == PHASE_NONE || st->pause == phase",
        "true",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "a line leaves pauses of before it",
        "phase_trains",
        "if (is_pause(j->progress.phase))",
        "if (false)",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "a word beside a save forgets what that is of",
        "pause_begin",
        "if (pause_of(j) == PHASE_NONE)",
        "if (true)",
        [unit("dcore", "test_hang_pauses")],
    ),
    (
        "a message that comes again shows that its node lives",
        "is_newest",
        "if (mono_ns <= l->newest_ns)",
        "if (mono_ns < 0)",
        [unit("dcore", "test_node_clock")],
    ),
    (
        "the newest message tells a clock, however late",
        "node_clock_hear",
        "began <= c->began + passed",
        "true",
        [SIM_SOON],
    ),
    (
        "a clock that stood is wrong for hours",
        "node_clock_hear",
        "c->began = c->next;",
        "",
        [unit("dcore", "test_node_clock")],
    ),
    (
        "one message tells a clock",
        "node_clock_at",
        "c->n < FEWEST",
        "c->n < 1",
        [unit("dcore", "test_node_clock")],
    ),
    (
        "a death of long ago is known as well as one of now",
        "node_clock_at",
        "+ llabs(c->heard_at - at) / DRIFT",
        "",
        [unit("dcore", "test_node_clock")],
    ),
    (
        "a silence makes no clock worse known",
        "node_clock_at",
        "+ c->slack",
        "",
        [unit("dcore", "test_node_clock")],
    ),
    ("core time is exact to the microsecond", "node_clock_at", "+ WHOLE_US", "", [SIM_SOON]),
    (
        "another boot has the clock of the one before",
        "registered",
        "core_live(t->core, h->node)->clock = (struct node_clock){ 0 };",
        "",
        [unit("dcore", "test_node_clock")],
    ),
    (
        "clocks of nodes stay when core time is set",
        "core_live_shift",
        "l->clock = (struct node_clock){ 0 };",
        "",
        [unit("dcore", "test_node_clock")],
    ),
    (
        "the error file of a rank is any file",
        "error_file_read",
        "O_RDONLY | O_NOFOLLOW | O_NONBLOCK",
        "O_RDONLY | O_NONBLOCK",
        [e2e("test_agent_output.py", "the_exception_of_an_error_file")],
    ),
    (
        "why forgets a failure when the next attempt runs",
        "why_follows_failure",
        "j->incidents[j->n_incidents - 1].attempt + 1 == j->attempt",
        "false",
        [unit("dcore", "test_verdict")],
    ),
    (
        "a curve does not tell what was in vain",
        "curve_begin",
        "end = MO_MIN(end, a->first - 1);",
        "",
        [unit("dcore", "test_curve")],
    ),
    (
        "a bucket swallows a loss that is no number",
        "sample_range_join",
        "if (!isfinite(next->most) || (isfinite(r->most) && (r->most == MO_NONE_F || "
        "next->most > r->most)))",
        "if (r->most == MO_NONE_F || next->most > r->most)",
        [unit("dcore", "test_curve")],
    ),
    (
        "a file takes samples that may still change",
        "sample_files_take",
        "p->n_samples - MO_MIN(p->n_samples, SAMPLES_LATE_MAX)",
        "p->n_samples",
        [e2e("test_iterations.py", "every_iteration_is_there")],
    ),
    (
        "a block is drawn over the border of what counts",
        "curve_needs",
        "(a->counted >= b->first && a->counted < b->last)",
        "false",
        [unit("dcore", "test_curve")],
    ),
    (
        "what was cut off a file is not looked for",
        "read_heads",
        "while (f->n_blocks && !read_body(fd, &f->blocks[f->n_blocks - 1], read))",
        "while (f->n_blocks && read_body(fd, &f->blocks[f->n_blocks - 1], read) && false)",
        [e2e("test_iterations.py", "what_was_cut_is_written_again")],
    ),
    (
        "the file that is written to makes room too",
        "find_oldest",
        "f->n && j && !job_state_final(j->state)",
        "false",
        [e2e("test_iterations.py", "the_oldest_make_room")],
    ),
    (
        "ranks are held against all stages",
        "judge",
        "end < to && stage_of(j, end) == stage_of(j, at)",
        "end < to",
        [unit("dcore", "test_matrix")],
    ),
    (
        "a page of ranks ends within a stage",
        "page_end",
        "return at > from ? at : end;",
        "return end;",
        [unit("dcore", "test_matrix")],
    ),
    (
        "who has another document gets 304",
        "represent_tag",
        "strstr(known, ret + 2)",
        "strchr(known, 34)",
        [unit("http", "test_represent")],
    ),
    (
        "progress is told when nothing moved",
        "feed_progress",
        "if (f->progress.len == text.len && memcmp(f->progress.data, text.data, text.len) == 0)",
        "if (false)",
        [e2e("test_seen.py", "of_a_job_that_does_not_move_it_comes_once")],
    ),
    (
        "who comes makes progress later for all",
        "look_again",
        "if (!s->looked)",
        "",
        [e2e("test_seen.py", "who_comes_and_goes_takes_nobodys_progress")],
    ),
    (
        "what anybody sees is packed each time",
        "represent_packed",
        "if (strcmp(k->of, tag) != 0) {",
        "{",
        [unit("http", "test_represent")],
    ),
    (
        "what anybody sees is packed for good",
        "represent_packed",
        "if (strcmp(k->of, tag) != 0) {",
        "if (!*k->of) {",
        [unit("http", "test_represent")],
    ),
    (
        "a range costs a step for each member",
        "mo_idset_parse",
        "add_range(&set, first, last);",
        "for (size_t id = first; id <= last; id++) mo_idset_add(&set, id);",
        [unit("base", "test_values")],
    ),
    (
        "any Retry-After is believed",
        "finish",
        "MO_MIN(MO_MAX(after, (curl_off_t)0), (curl_off_t)MO_RETRY_AFTER_MAX_S)",
        "after",
        [unit("loop", "test_loop")],
    ),
    (
        "a file is read as fast as it grows",
        "crc_of",
        "at <= f->bytes && ",
        "",
        [e2e("test_checkpoints.py", "what_is_read_whole_ends")],
    ),
    (
        "a directory may name any number of records",
        "file_records_find",
        "ret->n > RECORDS_MAX || ",
        "",
        [e2e("test_checkpoints.py", "what_is_read_whole_ends")],
    ),
    (
        "what the store refused is done all the same",
        "steps",
        "if (store_records(m, &out) == 0) {",
        "if (store_records(m, &out) <= 0) {",
        [unit("seams", "test_turn")],
    ),
    (
        "a store that fails ends nothing",
        "store_records",
        "fatal_stop(m, mo_error_text(&err, r));",
        "",
        [unit("seams", "test_turn")],
    ),
    (
        "of a turn one record is stored",
        "store_records",
        "append(m, texts, out->n_records, &err)",
        "append(m, texts, 1, &err)",
        [unit("seams", "test_turn")],
    ),
    (
        "effects are done for the first input",
        "carry_out",
        "at < n - 1 && i >= inputs[at]->effects_end",
        "at > n && i >= inputs[at]->effects_end",
        [SIM_SOON],
    ),
    (
        "a standstill is not told",
        "tell_lateness",
        "if (late > LATE_US) {",
        "if (late > 1000 * LATE_US) {",
        [SIM_SOON],
    ),
    (
        "tokens are read anew at the next start only",
        "steps",
        "if (tokens_changed(inputs, n)) {",
        "if (tokens_changed(inputs, n) && m->fatal) {",
        [unit("seams", "test_turn")],
    ),
    (
        "a revoked token is let in",
        "tokens_changed",
        "inputs[i]->core.type == IN_TOKEN_REVOKE ||",
        "",
        [SIM_SOON],
    ),
    (
        "of a crowd one waits for ever",
        "put_back",
        "for (size_t i = 0; i < n; i++)",
        "for (size_t i = 1; i < n; i++)",
        [SIM_SOON],
    ),
    (
        "what comes later is decided first",
        "put_first",
        "memmove(inputs + 1, inputs, i * sizeof(*inputs));",
        "memmove(inputs + 1, inputs, sizeof(*inputs));",
        [SIM_SOON],
    ),
    (
        "a message is of the time before the clock was set",
        "steps",
        "put_first(inputs, n_inputs, IN_CLOCK);",
        "",
        [unit("seams", "test_turn")],
    ),
    (
        "who stood still is asked last",
        "steps",
        "put_first(inputs, n_inputs, IN_LATE);",
        "",
        [unit("seams", "test_turn")],
    ),
    (
        "an urgent message is not acknowledged",
        "effect_do",
        "case FX_ACK: link_ack(m, fx->request, fx->node); break;",
        "case FX_ACK: break;",
        [unit("seams", "test_turn")],
    ),
    (
        "no deadline ends",
        "turn_run",
        "if (now >= core_deadline(m->core))",
        "if (core_deadline(m->core) < 0)",
        [unit("seams", "test_turn")],
    ),
    (
        "ballast stays when the disk is full",
        "append",
        "r != -ENOSPC ||",
        "r == -ENOSPC ||",
        [unit("seams", "test_turn")],
    ),
    (
        "no sync is held",
        "effect_do",
        "case FX_HOLD: link_hold(m, fx->request, fx->node, "
        "in->core.sync->message->instance); break;",
        "case FX_HOLD: break;",
        [unit("seams", "test_turn")],
    ),
    (
        "a due command waits for the beat",
        "effect_do",
        "case FX_WAKE: link_wake(m, fx->node); break;",
        "case FX_WAKE: break;",
        [unit("seams", "test_turn")],
    ),
    (
        "a welcome is not sent",
        "effect_do",
        "case FX_WELCOME: link_welcome(m, fx->request, fx->node, fx->welcome); break;",
        "case FX_WELCOME: break;",
        [unit("seams", "test_turn")],
    ),
    (
        "a held sync is answered twice",
        "answer_held",
        "unhold(l, k);",
        "",
        [unit("seams", "test_turn")],
    ),
    (
        "no beat ends a held sync",
        "on_beat",
        "l->holding->held_until <= until",
        "l->holding->held_until < 0",
        [unit("seams", "test_turn")],
    ),
    (
        "a held sync lasts ten beats",
        "link_hold",
        "mo_clock_boot_us() + m->options->beat_ms * 1000",
        "mo_clock_boot_us() + m->options->beat_ms * 10000",
        [unit("seams", "test_turn")],
    ),
    (
        "a wake finds nobody",
        "link_wake",
        "if (k)",
        "if (k && !k->held)",
        [unit("seams", "test_turn")],
    ),
    (
        "a reply has no commands",
        "answer_held",
        "core_sync_reply(m->core, k->node, &reply);",
        "reply.epoch = manager_state(m)->epoch;",
        [unit("seams", "test_turn")],
    ),
    (
        "the unknown number is a number",
        "integer",
        "if (v == MO_NONE || (v ==",
        "if ((v ==",
        [unit("wire", "test_json")],
    ),
    (
        "a real number may be infinite",
        "real",
        "if (!isfinite(v))",
        "if (isnan(v))",
        [unit("wire", "test_json")],
    ),
    (
        "a text is as long as it wants",
        "string",
        "if (dec->strict && n > (max ? max : WIRE_STRING_MAX))",
        "if (dec->strict && n > WIRE_STRING_MAX)",
        [unit("wire", "test_json")],
    ),
    (
        "a text read directly is as long as it wants",
        "string",
        "(r->strict && n > (max ? max : WIRE_STRING_MAX))",
        "(r->strict && n > WIRE_STRING_MAX)",
        [unit("wire", "test_json")],
    ),
    (
        "elements of all lists are not added up",
        "list",
        "dec->elements > WIRE_ELEMENTS_MAX",
        "n > WIRE_ELEMENTS_MAX",
        [unit("wire", "test_json")],
    ),
    (
        "elements read directly are not added up",
        "list",
        "++r->elements > WIRE_ELEMENTS_MAX",
        "r->elements > WIRE_ELEMENTS_MAX",
        [unit("wire", "test_json")],
    ),
    (
        "a list read directly has no end",
        "list",
        "COUNT(obj, f) >= max ||",
        "",
        [unit("wire", "test_json")],
    ),
    (
        "an unknown key is taken",
        "object",
        "if (dec->strict && found < n)",
        "if (dec->strict && found > n)",
        [unit("wire", "test_json")],
    ),
    (
        "what stands behind an object is not looked at",
        "wire_direct",
        "&& r.at == r.end",
        "",
        [unit("wire", "test_direct")],
    ),
    (
        "rubbish behind a large object is taken",
        "in_pieces",
        "at + 1 != n ||",
        "",
        [unit("wire", "test_json")],
    ),
    (
        "a time loses its microseconds",
        "timestamp",
        "if (rest)",
        "if (rest < 0)",
        [unit("wire", "test_json")],
    ),
    (
        "a real number loses its last digit",
        "real",
        "digits <= 17",
        "digits <= 16",
        [unit("wire", "test_json")],
    ),
    (
        "true may be a number",
        "boolean",
        "if (!json_object_is_type(json, json_type_boolean))",
        "if (!json)",
        [unit("wire", "test_json")],
    ),
    (
        "a word that is none of the list is the first",
        "enumeration",
        "if (v < 0) {",
        "if (v < -1) {",
        [unit("wire", "test_json")],
    ),
    (
        "a list of integers from outside may have holes",
        "element",
        "!dec->strict && absent(json) ? 0",
        "absent(json) ? 0",
        [unit("wire", "test_json")],
    ),
    (
        "a verification has the number of another",
        "number_of",
        "return VERIFY_BELOW - 1 - id;",
        "return LAST_SCAN_BELOW - 1 - id;",
        [unit("wire", "test_orders")],
    ),
    (
        "an order that nobody can have given is one",
        "settle",
        "*id < 0 || *id >= ID_END",
        "*id < 0",
        [unit("wire", "test_orders")],
    ),
    (
        "the attempt of a prune is one",
        "settle",
        "*order == ORDER_SCAN || *order == ORDER_LAST_SCAN",
        "*order >= 0",
        [unit("wire", "test_orders")],
    ),
    (
        "old controllers are told names of orders",
        "answers_to_wire",
        "if (!named) {",
        "if (named) {",
        [unit("wire", "test_orders")],
    ),
    (
        "old controllers are told free space",
        "answers_to_wire",
        "if (!space)",
        "if (space)",
        [unit("wire", "test_orders")],
    ),
    (
        "records behind a snapshot refer before it",
        "journal_snapshot_taken",
        "parts_table_done(&j->parts);",
        "",
        [unit("daemon", "test_journal")],
    ),
    (
        "two sets of parts have one number",
        "parts_refer",
        "++t->last_id",
        "t->last_id + 1",
        [unit("daemon", "test_journal")],
    ),
    (
        "a cluster is large enough for any job",
        "place_suits",
        "return all >= r->gpus;",
        "return all > 0;",
        [unit("dcore", "test_place")],
    ),
    (
        "parts of its own are those of whom it shares with",
        "same_shared",
        "&& k->like_own == submit_is_own(s)",
        "",
        [unit("daemon", "test_journal")],
    ),
    (
        "a job does not say which parts are its own",
        "parts_stripped",
        "bare.parts = parts;",
        "",
        [unit("daemon", "test_journal")],
    ),
    (
        "the last variable is lost",
        "parts_fill",
        "for (size_t i = 0; i < parts->n_env; i++)",
        "for (size_t i = 1; i < parts->n_env; i++)",
        [unit("daemon", "test_journal")],
    ),
    (
        "records of before are read as of now",
        "journal_show_record",
        "version_of(text, n) == 1",
        "version_of(text, n) == 0",
        [unit("daemon", "test_store_v1")],
    ),
    (
        "a submit is not made whole",
        "journal_read_record",
        "if (r >= 0 && ret->submit)",
        "if (r < 0 && ret->submit)",
        [unit("daemon", "test_journal")],
    ),
    (
        "an order of before keeps its number",
        "journal_show_record",
        "if (r >= 0 && ret->scan)",
        "if (r < 0 && ret->scan)",
        [unit("daemon", "test_store_v1")],
    ),
    (
        "a snapshot has no head",
        "journal_snapshot_text",
        "mo_buf_str(ret, SNAPSHOT_HEAD);",
        "",
        [unit("daemon", "test_journal")],
    ),
    (
        "a note is heard twice",
        "take_lines",
        "n->n <= j->last",
        "n->n < 0",
        [unit("agent", "test_journal")],
    ),
    (
        "whole steps are held against parts of them",
        "readings_of",
        "own->own_busy == busy",
        "own",
        [unit("dcore", "test_straggler")],
    ),
    (
        "steps told by another agent are more of the same",
        "core_own",
        "busy != k->own_busy",
        "false",
        [unit("dcore", "test_straggler")],
    ),
    (
        "notes are deleted before they are acknowledged",
        "journal_trim",
        "j->segments[n + 1] <= through + 1",
        "j->segments[n + 1] <= through + 2",
        [unit("agent", "test_journal")],
    ),
    (
        "what is acknowledged stays",
        "journal_trim",
        "j->segments[n + 1] <= through + 1",
        "j->segments[n + 1] <= through",
        [unit("agent", "test_journal")],
    ),
    (
        "a torn piece goes before the agent's note",
        "journal_append",
        "if (j->offset > end) {",
        "if (j->offset < end) {",
        [unit("agent", "test_journal")],
    ),
    (
        "the agent's note stands anywhere",
        "journal_append",
        "off_t end = j->n_segments ? j->offset - (int64_t)j->partial.len : 0;",
        "off_t end = j->n_segments ? j->offset : 0;",
        [unit("agent", "test_journal")],
    ),
    (
        "a segment is read again",
        "next_segment",
        "first > after",
        "first >= after",
        [unit("agent", "test_journal")],
    ),
    (
        "a step is run twice",
        "segment_open",
        "return st.st_size > 0 ? -EEXIST :",
        "return st.st_size < 0 ? -EEXIST :",
        [unit("seams/stepd", "test_step")],
    ),
    (
        "a torn line stays within the journal",
        "write_pending",
        "if (n > 0 && mo_truncate(j->fd, j->size) < 0) {",
        "if (n > 0 && j->fd < 0) {",
        [unit("seams/stepd", "test_step")],
    ),
    (
        "a torn line that stayed is not cut later",
        "write_pending",
        "if (j->torn && mo_truncate(j->fd, j->size) < 0)",
        "if (j->torn && j->fd < 0)",
        [unit("seams/stepd", "test_step")],
    ),
    (
        "what was written is not told",
        "write_pending",
        "j->written = j->last;",
        "",
        [unit("seams/stepd", "test_step")],
    ),
    (
        "written notes are written again",
        "write_pending",
        "mo_buf_reset(&j->pending);",
        "",
        [unit("seams/stepd", "test_step")],
    ),
    (
        "a new epoch need not be synced",
        "fence_book_raise",
        "b->unsynced |= epoch > b->file.epoch;",
        "",
        [unit("acore", "test_fence_book")],
    ),
    (
        "the epoch falls",
        "fence_book_raise",
        "b->file.epoch = MO_MAX(b->file.epoch, epoch);",
        "b->file.epoch = epoch;",
        [unit("acore", "test_fence_book")],
    ),
    (
        "an attempt falls",
        "raise_job",
        "f->jobs[i].attempt >= attempt",
        "f->jobs[i].attempt == attempt",
        [unit("acore", "test_fence_book")],
    ),
    (
        "the newest attempt is forgotten first",
        "raise_job",
        "mo_vec_remove(&fence_entry_desc, f->jobs, &f->n_jobs, 0);",
        "mo_vec_remove(&fence_entry_desc, f->jobs, &f->n_jobs, f->n_jobs - 1);",
        [unit("acore", "test_fence_book")],
    ),
    (
        "a damaged fence begins anew on its boot",
        "fence_book_anew",
        "mo_streq(b->boot.boot_id, boot_id)",
        "!boot_id",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "a fence that begins anew has no epoch",
        "fence_book_anew",
        "b->file.epoch = MO_MAX(b->file.epoch, b->boot.epoch);",
        "",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "the boot's file keeps an old epoch",
        "fence_book_boot_due",
        "|| b->boot.epoch < b->file.epoch",
        "",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "a damaged line of the fence is passed over",
        "read_log",
        "if (!take_line(f, line))",
        "if (!take_line(f, line) && !*path)",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "the boot's file is not written",
        "write_json",
        "int r = write_boot(f);",
        "int r = write_boot ? 0 : -1;",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "the core is not told of the epoch",
        "fence_open",
        "queue_event(m, &epoch);",
        "(void)epoch;",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "the fence is not written",
        "fence_save",
        "return write_json(f);",
        "return write_json ? 0 : -1;",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "the fence's log is not read",
        "read_all",
        "r = read_log(f, log, &e);",
        "r = log ? 0 : read_log(f, log, &e);",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "a log that was folded is counted on",
        "fence_book_wrote",
        "b->log_bytes = log_bytes;",
        "",
        [unit("acore", "test_fence_book")],
    ),
    (
        "what a newer moed wrote is taken",
        "take",
        "if (record.version > RECORD_VERSION)",
        "if (record.version < 0)",
        [unit("daemon", "test_journal")],
    ),
    (
        "a missing record is not missed",
        "store_read",
        "sqlite3_column_int64(q, 0) != seq + 1 ||",
        "",
        [unit("store", "test_store")],
    ),
    (
        "a damaged record is replayed",
        "store_read",
        "|| store_checksum(text, n) != sqlite3_column_int64(q, 1)",
        "",
        [unit("store", "test_store")],
    ),
    (
        "records within the snapshot are replayed",
        "store_read",
        "rc = sqlite3_bind_int64(q, 1, s->folded);",
        "rc = sqlite3_bind_int64(q, 1, 0);",
        [unit("store", "test_store")],
    ),
    (
        "a snapshot has the number of the next record",
        "snapshots_check",
        "s->seq = store_seq(m->store);",
        "s->seq = store_seq(m->store) + 1;",
        [unit("daemon", "test_snapshot")],
    ),
    (
        "a snapshot has the number of the record before",
        "snapshots_check",
        "s->seq = store_seq(m->store);",
        "s->seq = store_seq(m->store) - 1;",
        [unit("daemon", "test_snapshot")],
    ),
    (
        "records are deleted before they are in a snapshot",
        "store_append",
        "MO_MIN(s->folded,",
        "MO_MIN(s->last_seq,",
        [unit("store", "test_store")],
    ),
    (
        "records are never deleted",
        "store_append",
        "if (rc == SQLITE_OK && trimmed >= s->oldest) {",
        "if (rc == SQLITE_OK && trimmed < 0) {",
        [unit("store", "test_store")],
    ),
    (
        "a damaged snapshot is loaded",
        "snapshot_file_read",
        "|| store_checksum(b->data + sizeof(head), b->len - sizeof(head)) != want->sum",
        "",
        [unit("store", "test_store")],
    ),
    (
        "a file is synced after its rename",
        "mo_write_file",
        "r = write_tmp(fd, data, n, mode, sync); if (r == 0 && mo_rename(tmp, "
        "path) < 0) r = -errno;",
        "r = mo_rename(tmp, path) < 0 ? -errno : write_tmp(fd, data, n, mode, sync);",
        [unit("seams/agent", "test_agent")],
    ),
    (
        "a token that its node lost stays good when it speaks with another",
        "used",
        "if (s->tokens[i - 1].from && token_bound_to(&s->tokens[i - 1], node))",
        "if (false)",
        [unit("dcore", "test_tokens")],
    ),
]


def sources(root):
    """Every C file of the product under root, and its text."""
    ret = {}
    for room in ROOMS:
        for dir, _, files in os.walk(os.path.join(root, room)):
            for name in files:
                if name.endswith((".c", ".h")):
                    path = os.path.join(dir, name)
                    with open(path, encoding="utf-8") as f:
                        ret[os.path.relpath(path, root)] = f.read()
    return ret


def definitions(texts, name):
    """Where name is defined, as (file, begin, end): a function begins in the first column and ends
    at the next brace there; an object ends at the first line that ends with a semicolon."""
    function, value = r"\([^;{}]*\)\s*\{\n.*?^\}", r"(?:\[[^\]\n]*\])*\s*=.*?;"
    form = re.compile(
        r"^[A-Za-z_][^\n;{}()]*\b%s(?:%s|%s)$" % (re.escape(name), function, value), re.M | re.S
    )
    return [
        (file, found.start(), found.end())
        for file, text in sorted(texts.items())
        if name in text
        for found in form.finditer(text)
    ]


def pattern_of(old):
    """What finds these words however they are set. White space inside of a literal counts."""
    ret, before = "", " "
    for space, token in re.findall(r'(\s*)("(?:\\.|[^"\\])*"|\w+|\S)', old):
        if before != " ":
            apart = space and re.match(r"\w", token) and re.match(r"\w", before)
            ret += r"\s+" if apart else r"\s*"
        ret += re.escape(token)
        before = token[-1]
    return re.compile((r"\b" if re.match(r"\s*\w", old) else "") + ret)


def find(texts, mutant):
    """(file, begin, end) of what the mutant replaces, or why not."""
    _, function, old, _, _ = mutant
    pattern = pattern_of(old)
    defined = definitions(texts, function)
    found = [
        (file, m.start(), m.end())
        for file, begin, end in defined
        for m in pattern.finditer(texts[file], begin, end)
    ]
    if not defined:
        why = "nothing defines %s" % function
    elif len(found) != 1:
        places = ", ".join("%s in %s" % (function, file) for file, _, _ in found or defined)
        why = "its pattern is there %d times (%s)" % (len(found), places)
    else:
        return found[0], None
    return None, why + ": put its place right in tests/mutants/mutants.py"


def areas(found):
    """How many of these mutants, with their places, each area has; one counts once."""
    ret = dict.fromkeys(list(AREAS) + ["sync calls"], 0)
    for m, (place, _) in found:
        of = [name for name, where in AREAS.items() if place and place[0].startswith(where)]
        for name in ["sync calls"] if SYNC_CALLS.search(m[0]) else of:
            ret[name] += 1
    return ret


def absent_killer(root, mutant):
    """None when each killer's test is there; else which is not."""
    for targets, command in mutant[4]:
        words = command.split()
        if targets == SIM[0]:
            continue
        path = targets.replace("build/", "", 1) + ".c" if words[0] == targets else words[1]
        if not os.path.exists(os.path.join(root, path)):
            return "its killer %s is not there" % path
        for word in words[2:]:
            with open(os.path.join(root, path), encoding="utf-8") as f:
                text = f.read()
            # the kinds of one test share the beginning of their names
            if "def %s(" % word not in text and '"%s_"' % word.split("_")[0] not in text:
                return "no test of its killer %s is called %s" % (path, word)
    return None


def copy_tree():
    shutil.rmtree(TREE, ignore_errors=True)
    os.makedirs(TREE)
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout.split("\n")
    for f in filter(None, files):
        if os.path.exists(os.path.join(ROOT, f)):
            os.makedirs(os.path.dirname(os.path.join(TREE, f)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, f), os.path.join(TREE, f), follow_symlinks=False)


def run(command, timeout=300):
    """True when it succeeds, None when it was not finished in time. Its output goes to the log."""
    with open(os.path.join(TREE, "../log.txt"), "a") as log:
        log.write("$ %s\n" % command)
        log.flush()
        env = {k: v for k, v in os.environ.items() if k not in ("BUILD", "MAKEFLAGS", "MFLAGS")}
        shell = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=TREE,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
            start_new_session=True,
        )
        try:
            return shell.wait(timeout) == 0
        except subprocess.TimeoutExpired:
            log.write("not finished in %d s\n" % timeout)
            return None
        finally:
            # what a mutant leaves behind would run for ever
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            shell.wait()


def make(targets):
    return run("make --no-print-directory -j2 %s" % targets, 900)


def killers_pass(wanted):
    """On the code as it is every killer must pass, or its failing says nothing."""
    ok = True
    for targets, command in sorted(
        {k for m in MUTANTS for k in m[4] if not wanted or m[0] in wanted}
    ):
        begin = time.monotonic()
        if not make(targets) or not run(command):
            print("FAIL %s: fails without any mutant" % command, flush=True)
            ok = False
        else:
            print("     %s passes (%.0f s)" % (command, time.monotonic() - begin), flush=True)
    return ok


def caught(mutant):
    """What is wrong, if anything, and what noticed the mutant. One that turns in circles is noticed
    by the time, which is said: a machine that is too busy looks the same."""
    _, _, _, new, killers = mutant
    texts = sources(TREE)
    place, why = find(texts, mutant)
    if why:
        return why, None
    file, begin, end = place
    path, text = os.path.join(TREE, file), texts[file]
    with open(path, "w") as f:
        f.write(text[:begin] + new + text[end:])
    try:
        for targets, command in killers:
            if not make(targets):
                return "does not compile", None
            passed = run(command)
            if not passed:
                return None, ("the simulator" if targets == SIM[0] else command) + (
                    ", not finished in time" if passed is None else ""
                )
        return "survived " + ", ".join(command for _, command in killers), None
    finally:
        with open(path, "w") as f:
            f.write(text)


def main():
    wanted = sys.argv[1:]
    if wanted == ["--places"]:
        texts = sources(ROOT)
        found = [(m, find(texts, m)) for m in MUTANTS]
        wrong = [(m[0], why or absent_killer(ROOT, m)) for m, (_, why) in found]
        wrong = [w for w in wrong if w[1]]
        for w in wrong:
            print("mutant '%s': %s" % w)
        return 1 if wrong else 0
    if wanted == ["--areas"]:
        texts = sources(ROOT)
        counts = areas([(m, find(texts, m)) for m in MUTANTS])
        print(
            "%d mutants, %d of them of: %s"
            % (len(MUTANTS), sum(counts.values()), ", ".join("%s %d" % c for c in counts.items()))
        )
        return 0
    unknown = [name for name in wanted if name not in [m[0] for m in MUTANTS]]
    if unknown:
        print("no mutant is called '%s'" % unknown[0])
        return 2
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
