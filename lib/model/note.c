/* Description of a note. Most fields belong to some kinds only and are left out while unknown,
 * since a journal holds very many notes. */
#include "lib/model/note.h"

#include "lib/model/limits.h"

const char *const note_kind_names[_NOTE_KIND_N] = {
	"started", "refused", "running", "phase", "sample",     "checkpoint", "saving",
	"resumed", "exit",    "lost",    "gone",  "unkillable", "binding",    "stopping",
};

static const struct mo_field note_fields[] = {
	MO_D(note, n, MO_INT, "number in the journal, from 1 without gaps", .least = 1,
	     .most = MO_FIT_INT),
	MO_D_ENUM(note, kind, note_kind_names, "what happened"),
	MO_D(note, time, MO_TIME, "the node's clock: information only", .omit = true),
	MO_D(note, mono_ns, MO_INT, "CLOCK_BOOTTIME of the node, nanoseconds", .omit = true,
	     .most = MO_FIT_INT),
	MO_D(note, rank, MO_INT, "number of the rank; none: the whole step", .omit = true,
	     .most = MO_RANKS_MAX),
	MO_D(note, pid, MO_INT, "process id", .omit = true, .least = 1, .most = INT32_MAX),
	MO_D(note, start_time, MO_INT, "when the process started, as the kernel counts it",
	     .omit = true, .most = MO_FIT_INT),
	MO_D(note, cpus, MO_STR, "CPUs that it is bound to", .omit = true, .most = MO_TEXT_MAX),
	MO_D(note, numa_node, MO_INT, "NUMA node that it is bound to", .omit = true),
	MO_D(note, bind_verified, MO_TRI, "the binding was read back and is as wanted",
	     .omit = true),
	MO_D(note, bind_note, MO_STR, "what is not as wanted", .omit = true, .most = MO_TEXT_MAX),
	MO_D(note, code, MO_INT, "exit status, or error number", .omit = true, .least = INT32_MIN,
	     .most = INT32_MAX),
	MO_D(note, signal, MO_INT, "signal that ended it", .omit = true, .most = 255),
	MO_D(note, cause, MO_STR, "what that means: exited, signalled, oom, bind, exec and so on",
	     .omit = true, .most = 256),
	MO_D_ENUM(note, phase, phase_names, "what the engine does", .omit = true),
	MO_D(note, iteration, MO_INT, "iteration that it is about", .omit = true,
	     .most = MO_FIT_ITERATION),
	MO_D(note, path, MO_STR, "where the checkpoint lies", .omit = true, .most = MO_TEXT_MAX),
	MO_D(note, text, MO_STR, "more, in words", .omit = true, .most = MO_LINE_MAX),
	MO_D_LIST(note, tail, MO_STRS, "last lines of output", .omit = true, .max = MO_TAIL_LINES,
		  .most = MO_LINE_MAX),
	MO_D_SUB(note, sample, MO_OPT, &sample_desc, "metrics of an iteration", .omit = true),
	/* Three times as much is read as is kept: journals may hold what was no text, each byte
	 * of it written as U+FFFD. */
	MO_D(note, config, MO_STR,
	     "of the first rank: the engine's configuration as its node read it, JSON",
	     .omit = true, .max = 3 * MO_CONFIG_BYTES_MAX, .most = MO_CONFIG_BYTES_MAX),
	MO_D(note, prepare_ms, MO_INT, "milliseconds that engine.prepare took", .omit = true,
	     .most = 1000000000),
	MO_D(note, left_out, MO_INT, "iterations before it that came too fast to be reported each",
	     .omit = true, .most = MO_FIT_ITERATION),
};
const struct mo_desc note_desc = MO_DESC(note, note_fields);
