/* In place of lib/base/proc.c and lib/base/identity.c: processes are rows of a table, and everybody
 * is the same user. */
#include "tests/unit/seams/world.h"

#include <errno.h>
#include <signal.h>

#include "lib/base/file.h"
#include "lib/base/identity.h"
#include "lib/base/proc.h"

#define SELF 4242

static struct seam_process table[64];
static int n_processes, n_killed;

static int fails(int e)
{
	errno = e;
	return -e;
}

struct seam_process *seam_process_new(int ppid, const char *env)
{
	assert_true((size_t)n_processes < ELEMENTSOF(table));
	struct seam_process *p = &table[n_processes++];

	*p = (struct seam_process){ .pid = SELF + n_processes,
				    .ppid = ppid ? ppid : SELF,
				    .env = mo_strdup(env),
				    .fds = { -1, -1, -1, -1 },
				    .pidfd = -1,
				    .pidfd_kept = -1 };
	return p;
}

struct seam_process *seam_process(int pid)
{
	for (int i = 0; i < n_processes; i++)
		if (table[i].pid == pid && !table[i].taken)
			return &table[i];
	return NULL;
}

void seam_process_ends(int pid, int status)
{
	struct seam_process *p = seam_process(pid);

	if (!p || p->dead)
		return;
	p->dead = true;
	p->status = status;
	for (size_t i = 0; i < ELEMENTSOF(p->fds); i++)
		p->fds[i] = mo_close(p->fds[i]);
	p->pidfd_kept = mo_close(p->pidfd_kept);
}

size_t seam_processes(void)
{
	size_t n = 0;

	for (int i = 0; i < n_processes; i++)
		n += !table[i].dead;
	return n;
}

int seam_killed(void)
{
	return n_killed;
}

void seam_people_done(void)
{
	for (int i = 0; i < n_processes; i++) {
		seam_process_ends(table[i].pid, 0);
		free(table[i].env);
	}
	n_processes = n_killed = 0;
}

static void kill_it(struct seam_process *p)
{
	n_killed++;
	seam_process_ends(p->pid, SIGKILL);
}

/* ---- lib/base/proc.h ---- */

pid_t mo_proc_self(void)
{
	return SELF;
}

int mo_proc_read(pid_t pid, struct mo_proc *ret)
{
	const struct seam_process *p = seam_process(pid);

	if (!p)
		return -ESRCH;
	*ret = (struct mo_proc){
		.pid = pid, .ppid = p->ppid, .state = p->dead ? 'Z' : 'S', .start_time = pid
	};
	return 0;
}

int mo_proc_sched(pid_t pid, int64_t *ret_cpu_us, int64_t *ret_delay_us)
{
	return -ESRCH; /* a kernel that does not count it */
}

bool mo_proc_sigkill_pending(pid_t pid)
{
	return false;
}

char *mo_proc_status(pid_t pid, const char *key)
{
	return NULL;
}

int mo_proc_each(int (*fn)(void *arg, pid_t pid), void *arg)
{
	int r = 0;

	for (int i = 0; r == 0 && i < n_processes; i++)
		if (!table[i].taken)
			r = fn(arg, table[i].pid);
	return r;
}

int mo_proc_kill(pid_t pid, int64_t start_time)
{
	struct seam_process *p = seam_process(pid);

	if (!p || p->dead || start_time != pid)
		return 0;
	if (seam_acts())
		kill_it(p);
	return 1;
}

/* Memory is never short here. */
void mo_proc_go_first(void) {}

/* Nobody here has a namespace of a step, and who is killed is dead at once. */
size_t (*seam_on_hunt)(const struct mo_hunt *h);

size_t mo_hunt_pass(struct mo_hunt *h)
{
	size_t n = 0;

	if (seam_on_hunt)
		return seam_on_hunt(h);

	for (int i = 0; i < n_processes; i++)
		if (!table[i].dead && mo_streq(table[i].env, h->assignment)) {
			n++;
			if (seam_acts())
				kill_it(&table[i]);
		}
	return n;
}

void mo_hunt_done(struct mo_hunt *h) {}

static bool is_waited_for(const struct seam_process *p, idtype_t type, int64_t id)
{
	if (p->taken || p->ppid != SELF)
		return false;
	return type == P_ALL || (type == P_PID && p->pid == id) ||
	       (type == (idtype_t)3 && p->pidfd == id); /* P_PIDFD */
}

int mo_proc_wait(idtype_t type, int64_t id, siginfo_t *ret, int options)
{
	bool any = false;

	for (int i = 0; i < n_processes; i++) {
		struct seam_process *p = &table[i];

		if (!is_waited_for(p, type, id))
			continue;
		any = true;
		if (!p->dead)
			continue;
		bool exited = (p->status & 0x7f) == 0;
		ret->si_pid = p->pid;
		ret->si_code = exited ? CLD_EXITED : CLD_KILLED;
		ret->si_status = exited ? p->status >> 8 : p->status & 0x7f;
		p->taken = !(options & WNOWAIT);
		return 0;
	}
	return any || type != P_ALL ? 0 : fails(ECHILD);
}

int mo_proc_raise_limit(int which, int64_t wanted, uint64_t *ret_now)
{
	return 0;
}

int mo_proc_cpus(pid_t tid, cpu_set_t *ret, size_t size)
{
	return -ESRCH;
}

int mo_proc_open(pid_t pid)
{
	return -ESRCH;
}

bool mo_proc_has_env(pid_t pid, const char *assignment)
{
	const struct seam_process *p = seam_process(pid);

	return p && mo_streq(p->env, assignment);
}

int mo_proc_exit_status(int pidfd, pid_t pid, int *ret_status)
{
	return -ENODATA;
}

/* ---- lib/base/identity.h ---- */

uid_t mo_uid(void)
{
	return 1000;
}

void mo_identity_done(struct mo_identity *who)
{
	free(who->user);
	free(who->home);
	free(who->shell);
	*who = (struct mo_identity){ 0 };
}

int mo_identity_resolve(const char *user, const struct mo_identity_rule *rule,
			struct mo_identity *ret, struct mo_error *err)
{
	*ret = (struct mo_identity){ .uid = 1000,
				     .gid = 1000,
				     .user = mo_strdup("ann"),
				     .home = mo_strdup("/home/ann"),
				     .shell = mo_strdup("/bin/sh") };
	return 0;
}

int mo_identity_become(const struct mo_identity *who)
{
	fail_msg("nobody becomes another here");
	return -1;
}

int mo_identity_system(const struct mo_identity *who, const struct mo_identity_rule *rule,
		       struct mo_error *err)
{
	return 0;
}

int mo_identity_name(uid_t uid, char **ret_user, char **ret_shell)
{
	return -ENOENT;
}
