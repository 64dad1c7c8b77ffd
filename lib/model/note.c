/* Description of a note. Most fields belong to some kinds only and are left out while unknown,
 * since a journal holds very many notes. */
#include "lib/model/note.h"

#include "lib/model/limits.h"

const char *const note_kind_names[_NOTE_KIND_N] = {
	"started", "refused", "running", "phase", "sample",     "checkpoint", "saving",
	"resumed", "exit",    "lost",    "gone",  "unkillable", "binding",    "stopping",
};

static const struct mo_field note_fields[] = {
	MO_F(note, n, MO_INT, .least = 1, .most = MO_FIT_INT),
	MO_F_ENUM(note, kind, note_kind_names),
	MO_F(note, time, MO_TIME, .omit = true),
	MO_F(note, mono_ns, MO_INT, .omit = true, .most = MO_FIT_INT),
	MO_F(note, rank, MO_INT, .omit = true, .most = MO_RANKS_MAX),
	MO_F(note, pid, MO_INT, .omit = true, .least = 1, .most = INT32_MAX),
	MO_F(note, start_time, MO_INT, .omit = true, .most = MO_FIT_INT),
	MO_F(note, cpus, MO_STR, .omit = true, .most = MO_TEXT_MAX),
	MO_F(note, numa_node, MO_INT, .omit = true),
	MO_F(note, bind_verified, MO_TRI, .omit = true),
	MO_F(note, bind_note, MO_STR, .omit = true, .most = MO_TEXT_MAX),
	MO_F(note, code, MO_INT, .omit = true, .least = INT32_MIN, .most = INT32_MAX),
	MO_F(note, signal, MO_INT, .omit = true, .most = 255),
	MO_F(note, cause, MO_STR, .omit = true, .most = 256),
	MO_F_ENUM(note, phase, phase_names, .omit = true),
	MO_F(note, iteration, MO_INT, .omit = true, .most = MO_FIT_ITERATION),
	MO_F(note, path, MO_STR, .omit = true, .most = MO_TEXT_MAX),
	MO_F(note, text, MO_STR, .omit = true, .most = MO_LINE_MAX),
	MO_F_LIST(note, tail, MO_STRS, .omit = true, .max = MO_TAIL_LINES, .most = MO_LINE_MAX),
	MO_F_SUB(note, sample, MO_OPT, &sample_desc, .omit = true),
	/* Three times as much is read as is kept: journals may hold what was no text, each byte
	 * of it written as U+FFFD. */
	MO_F(note, config, MO_STR, .omit = true, .max = 3 * MO_CONFIG_BYTES_MAX,
	     .most = MO_CONFIG_BYTES_MAX),
	MO_F(note, prepare_ms, MO_INT, .omit = true, .most = 1000000000),
	MO_F(note, left_out, MO_INT, .omit = true, .most = MO_FIT_ITERATION),
};
const struct mo_desc note_desc = MO_DESC(note, note_fields);
