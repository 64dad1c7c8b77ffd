/* Scripts as people have them: what of a shell is followed, and that the rest is said. */
#include "tests/unit/recipe/read.h"

#include <errno.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/launch_line.h"
#include "lib/recipe/launch_script.h"

struct file {
	const char *path, *text;
};
static const struct file files[] = {
	{ "/w/inner.sh",
	  "torchrun --nproc_per_node ${N:-1} t.py --seed $1 \"${@:2}\" --in $PWD\n" },
	{ "/w/lib.sh", "launch() {\n  local s=$1; shift\n  torchrun \"$s\" \"$@\" 1\n}\n" },
	{ "/w/opts.sh", "while getopts ':g:vc:' o; do\n  case $o in\n    g) G=$OPTARG ;;\n"
			"    c) C=$OPTARG;;\n    v) V=1 ;;\n    *) exit 1;;\n  esac\ndone\n"
			"shift $((OPTIND - 1))\ntorchrun t.py $G $C $V \"$@\"\n" },
	{ "/w/env.sh", "export FROM_ENV=yes\nN=4\n" },
	{ "/w/words.sh",
	  "LR=1\nwhile [[ $# -gt 0 ]]; do\n  case $1 in\n    --lr) LR=\"$2\"; shift 2 ;;\n"
	  "    -q|--quiet) Q=1; shift;;\n    *) echo unknown; exit 1;;\n  esac\ndone\n"
	  "[ -n \"$Q\" ] && ARGS=(--quiet 1)\ntorchrun t.py --lr $LR \"${ARGS[@]}\"\n" },
};

static char *read_file(void *arg, const char *path)
{
	(void)arg;
	for (size_t i = 0; i < ELEMENTSOF(files); i++)
		if (mo_streq(path, files[i].path))
			return mo_strdup(files[i].text);
	return NULL;
}

static const struct kv home = { (char *)"HOME", (char *)"/home/u" };
static const struct launch_world world = {
	.read = read_file, .dir = "/w", .script = "/w/bin/run.sh", .known = &home, .n_known = 1
};

static char *piped(char *const *words, size_t n)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		mo_buf_printf(&b, "%s%s", i ? "|" : "", words[i]);
	return mo_buf_take(&b);
}

/* The program that comes of it; each part of `lost`, between ';;', is said, and nothing is where
 * it is empty. */
static void is(const char *text, const char *program, const char *lost)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(launch_line_done) struct launch_line l = { 0 };

	if (launch_line_script(text, &world, &l, &err) < 0)
		fail_msg("%s: %s", text, mo_error_text(&err, -1));
	_cleanup_(mo_freep) char *words = piped(l.program, l.n_program),
				 *said = piped(l.lost, l.n_lost);

	assert_string_equal(words, program);
	if (!*lost && *said)
		fail_msg("%s: lost: %s", text, said);
	for (const char *p = lost; *p;) {
		size_t n = strstr(p, ";;") ? (size_t)(strstr(p, ";;") - p) : strlen(p);
		_cleanup_(mo_freep) char *part = mo_strndup(p, n);

		if (!strstr(said, part))
			fail_msg("%s: '%s' is not in: %s", text, part, said);
		p += n + (p[n] ? 2 : 0);
	}
}

static void redirections(void **state)
{
	is("torchrun t.py --x 2>&1 | tee a.log\n", "t.py|--x", "| tee a.log: moectl keeps");
	is("nohup torchrun t.py --x > a.log 2>&1 &\n", "t.py|--x", "> a.log: moectl keeps");
	is("torchrun t.py 3 2> err\n", "t.py|3", "> err: moectl keeps");
	is("torchrun t.py &> a.log\necho done", "t.py", "> a.log: moectl keeps");
	is("torchrun t.py < in.txt\n", "t.py", "< < in.txt: a rank reads nothing");
	is("cat <<EOF > x\ntorchrun no.py\nEOF\ntorchrun t.py\n", "t.py", "cat: not run before it");
	is("sbatch <<EOF\n#SBATCH -N 2\nsrun torchrun t.py\nEOF\n", "t.py", "");
}

static void chains(void **state)
{
	is("cd sub && source env.sh && torchrun t.py && python eval.py\n", "t.py",
	   "source env.sh: not run before it;;python eval.py: not run");
	is("cd sub; cd ../two\npip install x\npython prepare.py\ntorchrun t.py\n", "t.py",
	   "pip install x; python prepare.py: not run before it");
	is("python prepare.py\npython train.py\n", "train.py", "python prepare.py: another launch");
	is("torchrun a.py\ntorchrun b.py\n", "a.py", "torchrun b.py: another launch");
	is("[ -z \"$A\" ] && A=1 || A=2\ntorchrun t.py $A\n", "t.py|1", "");
	is("mkdir x || exit 1\ntorchrun t.py\n", "t.py", "mkdir x: not run before it");
	is("python -c 'import torch'\npython -m pip install y\npython t.py\n", "t.py",
	   "python -m pip install y");
}

static void conditions(void **state)
{
	is("D=fp8\nif [[ \"$D\" == \"fp8\" ]]; then A=(--fp8 1); else A=(--bf16); fi\n"
	   "torchrun t.py ${A[@]}\n",
	   "t.py|--fp8|1", "");
	is("if [ \"${N:-2}\" -gt 4 ]; then A=big\nelif [ -n \"$X\" ]; then A=x\nelse A=small\nfi\n"
	   "torchrun t.py $A\n",
	   "t.py|small", "");
	is("O=$1\nif [ \"$O\" == \"\" ]; then\n O=./out\nfi\ntorchrun t.py $O\n", "t.py|./out", "");
	is("if [ -n \"$DEBUG\" ]; then\n python t.py --debug\nelse\n torchrun t.py \"$@\"\nfi\n",
	   "t.py", "\"$@\": words that the script is called with");
	is("A=1\nif [ -f x ]; then A=2; B=3; fi\ntorchrun t.py $A $B\n", "t.py|1|3",
	   "A; B: set where only a running shell knows");
	is("if nvidia-smi; then torchrun t.py; fi\n", "t.py",
	   "torchrun t.py: only a running shell");
	is("M=zbv\ncase $M in\n 1f1b|x) V=1 ;;\n zb*)\n  V=2\n  ;;\n *) V=3;;\nesac\n"
	   "torchrun t.py $V\n",
	   "t.py|2", "");
	is("if (( 8 > 1 )); then :; fi\ntorchrun t.py\n", "t.py", "");
}

static void loops_and_functions(void **state)
{
	is("F=(1 3)\nfor f in \"${F[@]}\"; do\n case \"$f\" in\n 1) A+=(--one) ;;\n"
	   " 3)\n  A+=(--three \"a b\")\n  ;;\n esac\ndone\ntorchrun t.py \"${A[@]}\"\n",
	   "t.py|--one|--three|a b", "");
	is("for s in 1 2; do torchrun t.py --seed $s; done\n", "t.py|--seed|1",
	   "torchrun t.py --seed 2: another launch");
	is("run() {\n  local m=$1\n  shift\n  torchrun t.py --m $m \"$@\"\n}\nrun big --lr 1\n",
	   "t.py|--m|big|--lr|1", "");
	is("function go { torchrun t.py $1; }\ngo 7\n", "t.py|7", "");
	is("N=0\nwhile [ $N -lt 3 ]; do N=$((N + 1)); done\ntorchrun t.py $N\n", "t.py|3", "");
	is("while true; do torchrun t.py; sleep 1; done\n", "t.py", "");
	is("f() { f; }\nf\ntorchrun t.py\n", "t.py", "");
}

static void expansions(void **state)
{
	is("torchrun t.py ${A:-${B:-$HOME/x}} ${C:=5} $C \"${D[@]}\" \"$@\" ''\n",
	   "t.py|/home/u/x|5|5|", "\"$@\": words");
	is("P=/a/b.tar.gz\ntorchrun t.py ${P##*/} ${P%.gz} ${#P} ${P:+yes} $((2*(3+4)))\n",
	   "t.py|b.tar.gz|/a/b.tar|11|yes|14", "");
	is("cd \"$(dirname \"$0\")/..\"\ntorchrun t.py $(pwd) `basename /x/y` $(date +%Y) ~/d\n",
	   "t.py|/w|y|$(date +%Y)|/home/u/d", "$(date +%Y): only the shell");
	is("A=$B\" c\"\nV=\"x y\"\nexport E=$V\ntorchrun t.py $V \"$V\"\n", "t.py|x|y|x y", "");
	is("export L=/a:$L\ntorchrun t.py\n", "t.py", "L $L: only the shell");
	is("$PRE torchrun t.py\n", "t.py", "$PRE: only the shell");
}

static void loops_over_words(void **state)
{
	static const char *const words[] = {
		"bash", "opts.sh", "-g", "4", "-vcx.yaml", "--", "-q"
	};
	struct launch_line l;

	is("for i in $(seq 0 2); do A+=($i); done\ntorchrun t.py ${A[@]} $(seq 2)\n",
	   "t.py|0|1|2|1|2", "");
	is("G=1\nwhile getopts \"g:\" o; do G=$OPTARG; done\ntorchrun t.py $G\n", "t.py|1", "");
	assert_int_equal(launch_line_words((char *const *)words, ELEMENTSOF(words), &world, &l,
					   NULL),
			 0);
	_cleanup_(mo_freep) char *program = piped(l.program, l.n_program);
	assert_string_equal(program, "t.py|4|x.yaml|1|-q");
	launch_line_done(&l);
}

static void here_documents_and_comments(void **state)
{
	is("read -r -d '' A <<'EOF' || true\n--lr 1\n--bs 2\nEOF\ntorchrun t.py $A\n",
	   "t.py|--lr|1|--bs|2", "");
	is("A=$(cat <<EOF\n  --lr 1\nEOF\n)\ntorchrun t.py $A\n", "t.py|--lr|1", "");
	is("A=$(cat <<EOF\n--lr $X\nEOF\n)\ntorchrun t.py $A\n",
	   "t.py|$(cat <<EOF\n--lr $X\nEOF\n)", "$(cat <<EOF --lr $X EOF ): only the shell");
	is("torchrun t.py --lr 1 `# the rate` 2\n", "t.py|--lr|1|2", "");
	/* a function of another text, which is gone into */
	is("source lib.sh\nlaunch t.py --x\n", "t.py|--x|1", "");
	is("bash -c 'f() { torchrun t.py; }; f'\n", "t.py", "");
	/* what hangs on a condition goes to the ranks, too */
	is("case $(hostname) in a*) export N=1;; *) export N=2;; esac\ntorchrun t.py\n", "t.py",
	   "N: set where only a running shell");
	is("screen -dmS a bash -c 'torchrun t.py'\n", "t.py", "");
	is("screen -L -dmS a bash -c 'torchrun t.py'\n", "t.py", "");
	is("screen -L -Logfile x.log -S a torchrun t.py\n", "t.py", "");
}

/* What changes the environment of a script: conda, modules, set -a. */
static void environments(void **state)
{
	_cleanup_(launch_line_done) struct launch_line l = { 0 };
	static const char text[] = "module load x\nA=1\nset -eao pipefail\nB=2\nset +a\nC=3\n"
				   "source /opt/conda/etc/profile.d/conda.sh\nconda activate e\n"
				   "torchrun t.py\n";

	assert_int_equal(launch_line_script(text, &world, &l, NULL), 0);
	assert_string_equal(l.python, "/opt/conda/envs/e/bin/python3");
	assert_int_equal(l.n_env, 1);
	assert_string_equal(l.env[0].key, "B");
	is(text, "t.py", "module load x: it sets variables of its shell");
	is("conda activate e\ntorchrun t.py\n", "t.py", "conda activate e: engine.python names");
	is("#PBS -N x\ncd $PBS_O_WORKDIR\nmpiexec -n 2 python t.py\n", "t.py",
	   "#PBS -N x: a line for another batch system");
	is("torchrun t.py $1 --d $D\n", "t.py|$1|--d|$D",
	   "$1: words that the script is called with;;$D: only the shell");
}

/* The words of `conda activate`; one that is not known leaves the interpreter open. */
static void conda_environments(void **state)
{
	static const struct {
		const char *words, *python;
	} cases[] = {
		{ "conda activate", "/opt/conda/bin/python3" },
		{ "conda activate base", "/opt/conda/bin/python3" },
		{ "conda activate --no-stack foo", "/opt/conda/envs/foo/bin/python3" },
		{ "conda activate foo --stack", "/opt/conda/envs/foo/bin/python3" },
		{ "mamba activate -n foo", "/opt/conda/envs/foo/bin/python3" },
		{ "mamba activate -p /envs/a", "/envs/a/bin/python3" },
		{ "conda activate --prefix env", "/w/env/bin/python3" },
		{ "conda activate /envs/a", "/envs/a/bin/python3" },
		{ "conda activate ./env", "/w/env/bin/python3" },
		{ "cd sub; conda activate ../env", "/w/env/bin/python3" },
		{ "conda activate --brand-new foo", NULL },
		{ "conda activate -q", NULL },
		{ "conda activate -n", NULL },
		{ "conda activate a b", NULL },
		{ "conda activate base; conda activate $ENV", NULL },
		{ "cd $X; conda activate ./env", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(launch_line_done) struct launch_line l = { 0 };
		_cleanup_(mo_freep) char *text =
			mo_printf("source /opt/conda/etc/profile.d/conda.sh\n%s\ntorchrun t.py\n",
				  cases[i].words);

		assert_int_equal(launch_line_script(text, &world, &l, NULL), 0);
		_cleanup_(mo_freep) char *said = piped(l.lost, l.n_lost);
		bool open = said && strstr(said, ": engine.python names the interpreter");

		if (!mo_streq(l.python, cases[i].python) || open != !cases[i].python)
			fail_msg("%s: %s, lost: %s", cases[i].words, l.python, said);
	}
}

/* Where a batch system starts a script is where it was submitted. */
static void where_it_was_submitted(void **state)
{
	static const struct {
		const char *text, *dir, *unknown;
	} cases[] = {
		{ "#SBATCH -N 2\ncd $SLURM_SUBMIT_DIR\nsrun torchrun t.py\n", "/w", NULL },
		{ "#SBATCH -N 2\ncd \"${SLURM_SUBMIT_DIR}/a\" || exit 1\ntorchrun t.py\n", "/w/a",
		  NULL },
		{ "sbatch <<'EOF'\ncd $SLURM_SUBMIT_DIR/b\nsrun torchrun t.py\nEOF\n", "/w/b",
		  NULL },
		/* without Slurm it is not set */
		{ "cd ${SLURM_SUBMIT_DIR:-/x}\ntorchrun t.py\n", "/x", NULL },
		{ "cd $WORK/x\ntorchrun t.py\n", NULL, "$WORK/x" },
		{ "cd $WORK\ncd /y\ntorchrun t.py\n", "/y", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(launch_line_done) struct launch_line l = { 0 };

		assert_int_equal(launch_line_script(cases[i].text, &world, &l, NULL), 0);
		if (!mo_streq(l.dir, cases[i].dir) || !mo_streq(l.dir_unknown, cases[i].unknown))
			fail_msg("%s: %s, unknown %s", cases[i].text, l.dir ? l.dir : "none",
				 l.dir_unknown ? l.dir_unknown : "none");
	}
}

/* A rank is better off without a variable than with `$(..)` in it. */
static void what_only_a_shell_knows(void **state)
{
	_cleanup_(launch_line_done) struct launch_line l = { 0 };

	assert_int_equal(launch_line_script("export A=$(ip route) B=1 L=/a:$L C=/x/$D "
					    "P=${P}:/opt/x:$Q\n"
					    "$VENV/bin/torchrun t.py\n",
					    &world, &l, NULL),
			 0);
	assert_int_equal(l.n_env, 2);
	assert_string_equal(l.env[0].key, "B");
	assert_string_equal(l.env[1].value, "/a");
	assert_null(l.python);
	_cleanup_(mo_freep) char *said = piped(l.lost, l.n_lost);
	assert_non_null(strstr(said, "A $(ip route): only"));
	assert_non_null(strstr(said, "C /x/$D: only"));
	assert_non_null(strstr(said, "P ${P}:/opt/x:$Q: only"));
	assert_non_null(strstr(said, "engine.python $VENV/bin/python3: only"));
}

static void scripts_of_scripts(void **state)
{
	is("N=2 bash inner.sh 7 --x 'a b'\n", "t.py|--seed|7|--x|a b|--in|/w", "");
	is("source env.sh\n./inner.sh 1\n", "t.py|--seed|1|--in|/w", "");
	is("srun -N 2 bash -c \"cd x && torchrun t.py --in \\$PWD\"\n", "t.py|--in|/w/x", "");
	is("CMD=\"torchrun t.py --a 1\"\neval $CMD\n", "t.py|--a|1", "");
	is("bash words.sh --lr 3 -q\n", "t.py|--lr|3|--quiet|1", "");
	is("sbatch -N 3 words.sh\n", "t.py|--lr|1", "");
	is("source venv/bin/activate\ntorchrun t.py\n", "t.py", "");

	static const char *const words[] = { "N=2", "bash", "inner.sh", "7" };
	struct launch_line l;

	assert_int_equal(launch_line_words((char *const *)words, 4, &world, &l, NULL), 0);
	assert_int_equal(l.per_node, 2);
	assert_string_equal(l.dir, "/w");
	launch_line_done(&l);
	assert_int_equal(launch_line_script("source v/bin/activate; torchrun t.py", &world, &l,
					    NULL),
			 0);
	assert_string_equal(l.python, "/w/v/bin/python3");
	launch_line_done(&l);
}

static void what_is_not_there(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	static const char *const words[] = { "bash", "none.sh" };
	struct launch_line l;

	assert_int_equal(launch_line_words((char *const *)words, 2, &world, &l, &err), -ENOENT);
	assert_string_equal(mo_error_text(&err, -1), "none.sh: there is no such script in /w");
	assert_int_equal(launch_line_script("cd x\nbash a/none.sh 3\n", &world, &l, NULL), -ENOENT);
	mo_error_done(&err);
	err = (struct mo_error){ 0 };
	assert_int_equal(launch_line_script("exec torchrun \"$@\"\n", &world, &l, &err), -EINVAL);
	assert_non_null(strstr(mo_error_text(&err, -1), "moectl init -- bash SCRIPT WORDS"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redirections),
		cmocka_unit_test(chains),
		cmocka_unit_test(conditions),
		cmocka_unit_test(loops_and_functions),
		cmocka_unit_test(expansions),
		cmocka_unit_test(scripts_of_scripts),
		cmocka_unit_test(what_is_not_there),
		cmocka_unit_test(where_it_was_submitted),
		cmocka_unit_test(what_only_a_shell_knows),
		cmocka_unit_test(loops_over_words),
		cmocka_unit_test(environments),
		cmocka_unit_test(conda_environments),
		cmocka_unit_test(here_documents_and_comments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
