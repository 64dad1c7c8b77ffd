/* See plan.h. */
#include "tests/sim/sim.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "lib/base/parse.h"

#define FAULT_S 150
#define JOBS_AT_ONCE 60

static const char *const kind_names[] = {
	[KIND_NONE] = "none",
	[KIND_RANKS] = "ranks",
	[KIND_SUPERVISORS] = "supervisors",
	[KIND_AGENTS] = "agents",
	[KIND_NODES] = "nodes",
	[KIND_SHUTDOWNS] = "shutdowns",
	[KIND_NETWORK] = "network",
	[KIND_CONTROLLER] = "controller",
	[KIND_CLOCKS] = "clocks",
	[KIND_DISKS] = "disks",
	[KIND_BACKUPS] = "backups",
	[KIND_LAUNCHES] = "launches",
	[KIND_CHECKPOINTS] = "checkpoints",
	[KIND_LOSSES] = "losses",
	[KIND_HEALTH] = "health",
	[KIND_GPUS] = "gpus",
	[KIND_TOKENS] = "tokens",
};
static_assert(ELEMENTSOF(kind_names) == _KIND_N, "a name each");

static const int kinds[_FAULT_N] = {
	[F_RANK_SIGNAL] = KIND_RANKS,
	[F_RANK_EXIT_1] = KIND_RANKS,
	[F_RANK_EXIT_0] = KIND_RANKS,
	[F_RANKS_AT_ONCE] = KIND_RANKS,
	[F_RANK_STOPPED] = KIND_RANKS,
	[F_SLOW] = KIND_RANKS,
	[F_UNKILLABLE] = KIND_RANKS,
	[F_STEPD_KILL] = KIND_SUPERVISORS,
	[F_STEPD_HANG] = KIND_SUPERVISORS,
	[F_STOPPED_OUTSIDE] = KIND_SUPERVISORS,
	[F_STEPD_BETWEEN_EFFECTS] = KIND_SUPERVISORS,
	[F_STEPD_WITHIN] = KIND_SUPERVISORS,
	[F_AGENT_KILL] = KIND_AGENTS,
	[F_AGENT_BETWEEN_EFFECTS] = KIND_AGENTS,
	[F_AGENT_WITHIN] = KIND_AGENTS,
	[F_AGENT_UPGRADED] = KIND_AGENTS,
	[F_AGENT_WITH_POWER] = KIND_NODES,
	[F_REBOOT] = KIND_NODES,
	[F_POWER_OFF] = KIND_NODES,
	[F_OLD_SPOOL] = KIND_NODES,
	[F_SHUTDOWN] = KIND_SHUTDOWNS,
	[F_SHUTDOWN_GIVEN_UP] = KIND_SHUTDOWNS,
	[F_PARTITION] = KIND_NETWORK,
	[F_MUTE] = KIND_NETWORK,
	[F_DEAF] = KIND_NETWORK,
	[F_LOSE_REQUEST] = KIND_NETWORK,
	[F_LOSE_REPLY] = KIND_NETWORK,
	[F_RESET_REQUEST] = KIND_NETWORK,
	[F_RESET_ANSWER] = KIND_NETWORK,
	[F_CUT_REQUEST] = KIND_NETWORK,
	[F_CUT_ANSWER] = KIND_NETWORK,
	[F_DELAY] = KIND_NETWORK,
	[F_DELAY_MINUTES] = KIND_NETWORK,
	[F_DUPLICATE] = KIND_NETWORK,
	[F_OLD_REQUEST] = KIND_NETWORK,
	[F_OLD_REPLY] = KIND_NETWORK,
	[F_TOKEN_UNKEPT] = KIND_TOKENS,
	[F_TOKEN_WITHIN] = KIND_TOKENS,
	[F_TOKEN_REVOKED] = KIND_TOKENS,
	[F_TOKEN_GONE] = KIND_TOKENS,
	[F_TOKEN_FOREIGN] = KIND_TOKENS,
	[F_TOKEN_SHORT] = KIND_TOKENS,
	[F_CONTROLLER_KILL] = KIND_CONTROLLER,
	[F_CONTROLLER_PAUSE] = KIND_CONTROLLER,
	[F_CONTROLLER_HOST] = KIND_CONTROLLER,
	[F_UPGRADED] = KIND_CONTROLLER,
	[F_SUSPENDED] = KIND_CLOCKS,
	[F_FROZEN] = KIND_CLOCKS,
	[F_NODE_CLOCK_SET] = KIND_CLOCKS,
	[F_CLOCK_AHEAD] = KIND_CLOCKS,
	[F_CLOCK_SET] = KIND_CLOCKS,
	[F_JOURNAL_FAILS] = KIND_DISKS,
	[F_SPOOL_FAILS] = KIND_DISKS,
	[F_FENCE_FAILS] = KIND_DISKS,
	[F_BIT_FLIPPED] = KIND_DISKS,
	[F_BACKUP] = KIND_BACKUPS,
	[F_RESTORE] = KIND_BACKUPS,
	[F_PORT_BUSY] = KIND_LAUNCHES,
	[F_FILE_UNREAD] = KIND_LAUNCHES,
	[F_FILE_HANGS] = KIND_LAUNCHES,
	[F_EXEC_FAILS] = KIND_LAUNCHES,
	[F_BIND_FAILS] = KIND_LAUNCHES,
	[F_TORN] = KIND_CHECKPOINTS,
	[F_ALTERED] = KIND_CHECKPOINTS,
	[F_ROTTEN] = KIND_CHECKPOINTS,
	[F_SCAN_FAILS] = KIND_CHECKPOINTS,
	[F_LOSS_BROKEN] = KIND_LOSSES,
	[F_LOSS_BLIP] = KIND_LOSSES,
	[F_LOSS_HIGH] = KIND_LOSSES,
	[F_CHECK_CRIT] = KIND_HEALTH,
	[F_CHECK_OK] = KIND_HEALTH,
	[F_CHECK_MASS] = KIND_HEALTH,
	[F_CHECK_LATE] = KIND_HEALTH,
	[F_GPU_LATE] = KIND_GPUS,
	[F_GPU_HELD] = KIND_GPUS,
	[F_SLOW_GPU] = KIND_GPUS,
};

int plan_kind(int fault)
{
	return kinds[fault];
}

/* From 1/by to by, by their logarithm. */
static double times(struct sim *s, double by)
{
	return exp(((double)(sim_random(s) >> 11) / 9007199254740992.0 * 2 - 1) * log(by));
}

/* One of ten seeds is quiet, one hostile; of a kind there may be nothing. */
void plan_draw(uint64_t seed, const struct less *less, struct plan *ret)
{
	struct sim s = { .rng = seed ^ 0x706c616e };
	int64_t mood = sim_between(&s, 0, 9);

	*ret = (struct plan){ .pace = mood == 0   ? 0.2
				      : mood == 9 ? 2
						  : 1,
			      .jobs = less->jobs ? less->jobs : INT64_MAX,
			      .nodes = less->nodes ? less->nodes : NODES,
			      .fault_us = (less->fault_s ? less->fault_s : FAULT_S) * S };
	for (int k = 0; k < _KIND_N; k++) {
		bool never = sim_chance(&s, 0.1) || less->off >> k & 1;
		double rate = times(&s, 3);

		ret->rate[k] = k == KIND_NONE ? 1 : never ? 0 : rate;
	}
}

static bool kinds_off(uint64_t *off, const char *value)
{
	while (*value) {
		size_t n = strcspn(value, ",");
		int k = 1;

		while (k < _KIND_N &&
		       (strlen(kind_names[k]) != n || strncmp(kind_names[k], value, n) != 0))
			k++;
		if (k == _KIND_N)
			return false;
		*off |= UINT64_C(1) << k;
		value += n + (value[n] == ',');
	}
	return true;
}

bool less_option(struct less *l, const char *name, const char *value)
{
	if (!value)
		return false;
	if (mo_streq(name, "--off"))
		return kinds_off(&l->off, value);
	if (mo_streq(name, "--jobs"))
		return mo_parse_i64(value, 1, JOBS_MAX, &l->jobs) == 0;
	if (mo_streq(name, "--nodes"))
		return mo_parse_i64(value, 1, NODES, &l->nodes) == 0;
	return mo_streq(name, "--fault-time") && mo_parse_i64(value, 1, FAULT_S, &l->fault_s) == 0;
}

void less_print(const struct less *l)
{
	const char *between = " --off ";

	for (int k = 1; k < _KIND_N; k++)
		if (l->off >> k & 1) {
			printf("%s%s", between, kind_names[k]);
			between = ",";
		}
	if (l->jobs)
		printf(" --jobs %lld", (long long)l->jobs);
	if (l->nodes)
		printf(" --nodes %lld", (long long)l->nodes);
	if (l->fault_s)
		printf(" --fault-time %lld", (long long)l->fault_s);
}
