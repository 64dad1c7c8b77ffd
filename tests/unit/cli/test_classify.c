/* The shipped failure signatures (config/failures/signatures.yaml) through their loader and the
 * classifier: what decides, what does not, and who was first. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/rules/classify.h"
#include "lib/recipe/failures_file.h"

static struct classifier *classifier;

static int setup(void **state)
{
	struct failure_rules rules;
	struct mo_error err = { 0 };
	mo_desc_init(&failure_rules_desc, &rules);
	if (failures_load(false, &rules, &err) < 0 || classifier_new(&rules, &classifier, &err) < 0)
		fprintf(stderr, "%s\n", mo_error_text(&err, -1));
	mo_desc_done(&failure_rules_desc, &rules);
	mo_error_done(&err);
	return classifier ? 0 : -1;
}

static int teardown(void **state)
{
	classifier = classifier_free(classifier);
	return 0;
}

struct outcome {
	int class;
	int64_t rank, line;
	size_t n;
};

static struct outcome run(const char *log, const char *kernel, int64_t code, int64_t sig)
{
	const struct classify_input in = {
		log, kernel, log ? strlen(log) : 0, kernel ? strlen(kernel) : 0, code, sig
	};
	struct failure_verdict v;
	mo_desc_init(&failure_verdict_desc, &v);
	classify(classifier, &in, &v);
	const struct outcome o = { v.class, v.first_rank,
				   v.n_evidence ? v.evidence[0].line : MO_NONE, v.n_evidence };
	for (size_t i = 0; i < v.n_evidence; i++)
		assert_true(v.evidence[i].source && v.evidence[i].text &&
			    strlen(v.evidence[i].text) <= 400);
	mo_desc_done(&failure_verdict_desc, &v);
	return o;
}

#define IS(log, wanted) \
	assert_string_equal(failure_class_names[run((log), NULL, MO_NONE, MO_NONE).class], \
			    failure_class_names[wanted])

static void single_lines(void **state)
{
	static const struct {
		const char *line;
		int class;
	} cases[] = {
		{ "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 9.50 GiB. GPU 0 "
		  "has a total capacity of 191.98 GiB of which 3.12 GiB is free.",
		  FAIL_USER_ERROR },
		{ "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 7 "
		  "has a total capacity of 287.98 GiB of which 203.49 GiB is free.",
		  FAIL_TRANSIENT },
		{ "[rank5]: RuntimeError: HIP error: an illegal memory access was encountered",
		  FAIL_SUSPECT },
		{ "amdgpu 0000:c1:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted "
		  "seq=3",
		  FAIL_NODE_FAULT },
		{ "hipErrorNoDevice: no ROCm-capable device is detected", FAIL_NODE_FAULT },
		{ "ValueError: num_layers (27) must be divisible by pipeline_model_parallel_size "
		  "(4)",
		  FAIL_USER_ERROR },
		{ "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for "
		  "clients. 15/16 clients joined.",
		  FAIL_TRANSIENT },
		{ "[rank1]: _pickle.UnpicklingError: Weights only load failed. This file can still "
		  "be loaded, to do so you have two options",
		  FAIL_USER_ERROR },
		{ "OSError: [Errno 122] Disk quota exceeded: '/ckpt/iter_0000500'", FAIL_STORAGE },
		{ "exiting program after receiving SIGTERM.", FAIL_PREEMPTED },
		{ "slurmstepd: error: *** JOB 991 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO "
		  "TIME LIMIT ***",
		  FAIL_PREEMPTED },
		{ "Fatal Python error: Segmentation fault", FAIL_SUSPECT },
		{ "[rank0]: torch.distributed.DistBackendError: NCCL error in: "
		  "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2006, remote process exited "
		  "or there was a network error",
		  FAIL_COLLATERAL },
		{ " iteration 30/ 100 | lm loss: 2.1E+00 | number of skipped iterations: 0 | "
		  "number of nan iterations: 0 |",
		  FAIL_OK },
		{ "UserWarning: The given NumPy array is not writable", FAIL_OK },
		{ "INFO: loss scale: 1.0 | grad norm: 0.31", FAIL_OK },
		{ "n1:525:525 [0] NCCL INFO NET/Plugin : Plugin load (librccl-net.so) returned 2 : "
		  "librccl-net.so: cannot open shared object file: No such file or directory",
		  FAIL_OK },
		{ "[W1128 10:00:00.1 socket.cpp:601] [c10d] The client socket has failed to "
		  "connect to [n0]:29500 (errno: 111 - Connection refused).",
		  FAIL_OK },
		{ "amdgpu 0000:c1:00.0: amdgpu: PSP firmware loaded, VBIOS fetched", FAIL_OK },
		{ "amdgpu: socket: 0, die: 0, 0 uncorrectable hardware errors detected in total in "
		  "gfx block",
		  FAIL_OK },
		{ "  check_for_nan_in_loss_and_grad .................. True", FAIL_OK },
		{ "WARNING: could not find the metadata file "
		  "/ckpt/latest_checkpointed_iteration.txt, will not load any checkpoints and will "
		  "start from random",
		  FAIL_OK },
		{ "UserWarning: for best performance the vocabulary should be divisible by 64",
		  FAIL_OK },
		{ "completed step: 7, seconds: 0.159, TFLOP/s/device: 43.430, loss: nan",
		  FAIL_NUMERICAL },
		{ "RuntimeError: CUDA error: device-side assert triggered", FAIL_USER_ERROR },
		{ "[rank1]: torch.distributed.DistBackendError: NCCL error in: "
		  "ProcessGroupNCCL.cpp:3384, unhandled cuda error (run with NCCL_DEBUG=INFO for "
		  "details)",
		  FAIL_SUSPECT },
		{ "[127037.563935] amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to "
		  "msg=REMOVE_QUEUE",
		  FAIL_NODE_FAULT },
		{ "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
		  FAIL_NODE_FAULT },
		{ "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] "
		  "Timed out waiting 1800000ms for recv operation to complete",
		  FAIL_HANG },
	};
	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		if (run(cases[i].line, NULL, MO_NONE, MO_NONE).class != cases[i].class)
			fail_msg("%s is %s, not %s", cases[i].line,
				 failure_class_names[run(cases[i].line, NULL, MO_NONE, MO_NONE)
							     .class],
				 failure_class_names[cases[i].class]);
}

static void what_came_first_decides(void **state)
{
	static const char hang[] =
		"[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3) ran for "
		"600000 milliseconds before timing out\n";
	static const char error[] = "[rank3]: KeyError: 'tokens'\n";
	char text[1024];
	snprintf(text, sizeof(text), "%s%s", error, hang);
	struct outcome o = run(text, NULL, MO_NONE, MO_NONE);
	assert_int_equal(o.class, FAIL_USER_ERROR);
	assert_int_equal(o.rank, 3);
	snprintf(text, sizeof(text), "%s%s", hang, error);
	assert_int_equal(run(text, NULL, MO_NONE, MO_NONE).class, FAIL_HANG);
}

static void hardware_beats_the_program(void **state)
{
	const char *log = "[rank2]: RuntimeError: HIP error: unspecified launch failure\n[rank0]: "
			  "RuntimeError: Connection closed by peer\n";
	assert_int_equal(run(log, NULL, 1, MO_NONE).class, FAIL_SUSPECT);
	assert_int_equal(run(log,
			     "[1.0] amdgpu 0000:c1:00.0: {1}[Hardware Error]: Accelerator Check "
			     "Architecture events logged\n",
			     1, MO_NONE)
				 .class,
			 FAIL_NODE_FAULT);
	assert_int_equal(run(log,
			     "[1.0] amdgpu: 3 correctable hardware errors detected in total in gfx "
			     "block, no user action is needed.\n",
			     1, MO_NONE)
				 .class,
			 FAIL_SUSPECT);
}

static void the_lagging_rank_is_named(void **state)
{
	const char *log = "[rank0]:[E ProcessGroupNCCL.cpp:1664] [PG 1 Rank 0] Exception (either "
			  "an error or timeout) detected by watchdog at work: 80, last enqueued "
			  "NCCL work: 82, last completed NCCL work: 79.\n"
			  "[rank3]:[E ProcessGroupNCCL.cpp:1664] [PG 1 Rank 3] Exception (either "
			  "an error or timeout) detected by watchdog at work: 79, last enqueued "
			  "NCCL work: 79, last completed NCCL work: 78.\n"
			  "[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught "
			  "collective operation timeout: WorkNCCL(SeqNum=80) ran for 600067 "
			  "milliseconds before timing out.\n";
	struct outcome o = run(log, NULL, MO_NONE, MO_NONE);
	assert_int_equal(o.class, FAIL_HANG);
	assert_int_equal(o.rank, 3);
	/* all waiting at the same place: nobody is named */
	assert_int_equal(run("[Rank 0] Watchdog caught collective operation timeout: ran for "
			     "600060 milliseconds before timing out\n",
			     NULL, MO_NONE, MO_NONE)
				 .rank,
			 MO_NONE);
}

static void late_out_of_memory_is_worth_a_restart(void **state)
{
	IS("step: 3 loss: 2.0\nCUDA out of memory. Tried to allocate 2.00 GiB.\n", FAIL_USER_ERROR);
	IS("step: 300 loss: 2.0\nCUDA out of memory. Tried to allocate 2.00 GiB.\n",
	   FAIL_TRANSIENT);
}

static void exits(void **state)
{
	assert_int_equal(run(NULL, NULL, 0, MO_NONE).class, FAIL_OK);
	assert_int_equal(run(NULL, NULL, 1, MO_NONE).class, FAIL_USER_ERROR);
	assert_int_equal(run(NULL, NULL, 127, MO_NONE).class, FAIL_USER_ERROR);
	assert_int_equal(run(NULL, NULL, 16, MO_NONE).class, FAIL_NUMERICAL);
	assert_int_equal(run(NULL, NULL, 139, MO_NONE).class, FAIL_SUSPECT);
	assert_int_equal(run(NULL, NULL, MO_NONE, 9).class, FAIL_TRANSIENT);
	assert_int_equal(run(NULL, NULL, MO_NONE, 15).class, FAIL_PREEMPTED);
	assert_int_equal(run("Exception: caught and reported\n", NULL, 0, MO_NONE).class, FAIL_OK);
	assert_int_equal(run("Exception: not caught\n", NULL, 1, MO_NONE).class, FAIL_USER_ERROR);
}

static void evidence_is_bounded_and_placed(void **state)
{
	char text[40000] = "";
	size_t n = 0;
	for (int i = 0; i < 50; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "fine\n\033[31mOSError: [Errno 28] No space left on device: "
				      "%0500d\033[0m\r\n",
				      i);
	struct outcome o = run(text, NULL, MO_NONE, MO_NONE);
	assert_int_equal(o.class, FAIL_STORAGE);
	assert_int_equal(o.n, 5);
	assert_int_equal(o.line, 2);
	assert_int_equal(run("\xff\xfe\x00 broken \xc3", "\x80\x81", MO_NONE, MO_NONE).class,
			 FAIL_OK);
}

static void bad_rules_are_refused_with_their_place(void **state)
{
	const char *text = "progress: 'a(?<iteration>1)'\nlate_iteration: 10\nrank: "
			   "'r(?<rank>1)'\ncollective: 'x'\nrules:\n  - {id: a, class: user_eror, "
			   "order: 1, match: ['('], why: x}\n";
	struct failure_rules rules;
	struct recipe_errors errors = { 0 };
	mo_desc_init(&failure_rules_desc, &rules);
	assert_int_equal(failures_parse(text, strlen(text), &rules, &errors), -EINVAL);
	assert_int_equal(errors.n, 2);
	assert_int_equal(errors.items[0].line, 6);
	assert_non_null(strstr(errors.items[0].text, "class"));
	assert_non_null(strstr(errors.items[1].text, "pattern '('"));
	recipe_errors_done(&errors);
	mo_desc_done(&failure_rules_desc, &rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_lines),
		cmocka_unit_test(what_came_first_decides),
		cmocka_unit_test(hardware_beats_the_program),
		cmocka_unit_test(the_lagging_rank_is_named),
		cmocka_unit_test(late_out_of_memory_is_worth_a_restart),
		cmocka_unit_test(exits),
		cmocka_unit_test(evidence_is_bounded_and_placed),
		cmocka_unit_test(bad_rules_are_refused_with_their_place),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
