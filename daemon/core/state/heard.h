/* What beats tell beyond the records, for who has the state alone: rules, views and the shell. A
 * copy of a state, and a dry run, have heard nothing. live.c keeps it. */
#pragma once
#include "daemon/core/state/state.h"

struct rank_acts;
struct rank_beat;
struct step_wait;

/* Core time of the node's last message, or of the start before it is heard; 0 = nothing is
 * known. */
int64_t node_heard_at(const struct state *s, const struct node *n);
/* Core time when the clock of the node's boot said this (node_clock_at()); MO_NONE: not known. */
int64_t node_clock_time(const struct state *s, const char *node, int64_t mono_ns,
			int64_t *ret_error);
/* That a step does not start yet; NULL: its node does not say so. */
const struct step_wait *step_wait_of(const struct state *s, const char *node, int64_t job,
				     int64_t attempt);
/* Core time of the job's newest iteration, by records or beats. */
int64_t job_progress_at(const struct state *s, const struct job *j);
/* Of the last word of its attempt's engine that is no iteration; MO_NONE: none was heard. */
int64_t job_word_at(const struct state *s, const struct job *j);
/* Of the rank at this place in job.ranks: the newest of records and beats. */
void rank_progress_of(const struct state *s, const struct job *j, size_t rank,
		      int64_t *ret_iteration, double *ret_step_ms);
/* enum phase, as its own program said; PHASE_NONE: it did not. */
int rank_phase_of(const struct state *s, const struct job *j, size_t rank);
/* enum rank_doing, as it was judged; -1: it is not judged now. */
int rank_judged_of(const struct state *s, const struct job *j, size_t rank, int64_t now);
/* What was seen when it was judged last whether the job hangs, in words, and lines that show it;
 * NULL: it is not judged now, or is not only suspected. Borrowed. */
const char *job_hang_seen(const struct state *s, const struct job *j, int64_t now,
			  char *const **ret_evidence, size_t *ret_n);
/* What its node said last that moves of it, and when; NULL: nothing. */
const struct rank_motion *rank_motion_of(const struct state *s, const struct job *j, size_t rank,
					 int64_t *ret_at);
/* What its flight recorder said, and when that was heard; NULL: nothing. */
const struct rank_recorder *rank_recorder_of(const struct state *s, const struct job *j,
					     size_t rank, int64_t *ret_at);
/* When that was heard of any rank of the attempt; MO_NONE: never. */
int64_t job_recorder_at(const struct state *s, const struct job *j);
/* What it did with processors and GPUs; NULL: nothing is known of it. */
const struct rank_acts *rank_acts_of(const struct state *s, const struct job *j, size_t rank);
/* Its own time of a step, the median of its newest; MO_NONE_F: it told of too few. */
double rank_own_ms(const struct rank_beat *k);
/* So many times as long as the best that it kept up in this attempt; MO_NONE_F: that is not
 * known. */
double rank_own_times(const struct rank_beat *k);
/* The same of the rank at this place in job.ranks. */
double rank_own_times_of(const struct state *s, const struct job *j, size_t rank);
/* How many ranks told of enough. */
size_t ranks_own_known(const struct state *s, const struct job *j);
/* How many ranks told what they do with processors, and with GPUs. */
void ranks_acts_known(const struct state *s, const struct job *j, int64_t now,
		      size_t *ret_processors, size_t *ret_gpus);
/* First of these whose job is not below. */
size_t beats_place(const struct job_beats *beats, size_t n, int64_t job);
