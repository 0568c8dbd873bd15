#include "base.h"
#include "command_name.h"
#include "session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* line: the words of a command line, with bars between them */
static void assert_name(const char *want, const char *line)
{
	char name[GT_SESSION_NAME_MAX + 1], copy[256], *argv[16], *rest = copy;
	size_t count = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	while (rest && count + 1 < ARRAY_SIZE(argv))
		argv[count++] = strsep(&rest, "|");
	argv[count] = NULL;
	gt_command_name(argv, name, sizeof(name));
	assert_string_equal(name, want);
	assert_int_equal(gt_session_check_name(name, NULL), 0);
}

static void programs(void **state)
{
	(void)state;
	assert_name("train", "./build/train|--steps|10");
	assert_name("a.out", "a.out");
	assert_name("vllm", "/opt/venv/bin/vllm|serve|model");
	assert_name("train", "./train.py");
	assert_name("trace", "");
	assert_name("_", "/");
	assert_name("_hidden", "./.hidden");
	assert_name("a b", "./a b");
	assert_name("a_b", "a\nb");
}

static void python(void **state)
{
	(void)state;
	assert_name("train", "python|train.py|--lr|1");
	assert_name("train", "/usr/bin/python3.11|-u|-X|dev|src/train.py");
	assert_name("train", "python3|-Xdev|-W|ignore|-OO|train.py");
	assert_name("train", "python3|--check-hash-based-pycs|never|train.py");
	assert_name("mod", "python|-m|pkg.mod|train.py");
	assert_name("mod", "python|-mpkg.mod");
	assert_name("mod", "python|-um|mod");
	assert_name("python", "python|-c|import x");
	assert_name("python", "python3|-Sc|import x");
	assert_name("python", "python3.12");
	assert_name("python", "python3|-");
	assert_name("python", "python3|-m");
	assert_name("train.v2", "python3|-E|train.v2.py|x");
}

static void launchers(void **state)
{
	(void)state;
	assert_name("train", "torchrun|--nproc_per_node|8|train.py|--a|b.py");
	assert_name("mod", "torchrun|--nproc-per-node=8|-m|pkg.mod");
	assert_name("train", "python|-m|torch.distributed.run|--nnodes|2|train.py");
	assert_name("train", "accelerate|launch|--config_file|x.yaml|train.py");
	assert_name("train", "deepspeed|--num_gpus|4|train.py|--deepspeed");
	assert_name("train", "mpirun|-np|8|python3|-u|train.py");
	assert_name("app", "mpirun|-np|8|--bind-to|none|./app|-x");
	assert_name("app", "mpirun|--mca|btl|tcp,self|-np|8|./app");
	assert_name("app", "mpiexec|-n|2|-mca|btl_vader_single_copy_mechanism|none|app");
	assert_name("app", "mpiexec|-genv|A|b|-n|2|./app");
	assert_name("mpirun", "mpirun|--mca");
	assert_name("mpirun", "mpirun|--mca|btl");
	assert_name("app", "srun|-n4|--gpus|4|app");
	assert_name("app", "srun|--mpi=pmix|--|app|--np|4");
	assert_name("mod", "srun|-n|8|python|-m|pkg.mod");
	assert_name("train", "env|A=B|python|train.py");
	assert_name("app", "env|-i|A=B|C=/d|app");
	assert_name("app", "taskset|0xff|app");
	assert_name("app", "taskset|-c|0-3|app");
	assert_name("app", "taskset|-ac|0|./app");
	assert_name("app", "env|-C|/tmp|./app|x");
	assert_name("app", "env|--chdir|/tmp|-u|HOME|A=/b|app");
	assert_name("app", "env|-i|app");
	assert_name("app", "env|-a|foo|app");
	assert_name("app", "timeout|--foreground|10|app");
	assert_name("app", "timeout|-k|5|-s|INT|10|app");
	assert_name("app", "nice|-n|5|app");
	assert_name("app", "nohup|app");
	assert_name("app", "setsid|-w|app");
	assert_name("app", "stdbuf|-o|L|-eL|app");
	assert_name("app", "timeout|-k|5|10|app");
	assert_name("train", "uv|run|train.py");
	assert_name("run", "bash|scripts/run.sh");
	assert_name("run", "bash|-o|pipefail|run.sh");
	assert_name("run", "bash|-euo|pipefail|+O|extglob|--norc|run.sh");
	assert_name("run", "bash|--rcfile|x|-e|run.sh");
	assert_name("run", "bash|--init-file|x|--noprofile|run.sh|arg");
	assert_name("bash", "bash|-eo");
	assert_name("bash", "bash|-c|python train.py");
	assert_name("torchrun", "torchrun");
	assert_name("torchrun", "torchrun|--help");
	assert_name("train", "mpirun|-np|2|torchrun|train.py");
}

static void length(void **state)
{
	char *argv[] = { NULL, NULL }, word[400], name[GT_SESSION_NAME_MAX + 1];

	(void)state;
	/* 199 bytes, then two-byte characters: none is cut in two */
	memset(word, 'x', 199);
	memcpy(word + 199, "\xc3\xa4\xc3\xa4", 5);
	argv[0] = word;
	gt_command_name(argv, name, sizeof(name));
	assert_int_equal(strlen(name), 199);
	gt_command_name(argv, name, 8);
	assert_string_equal(name, "xxxxxxx");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs),
		cmocka_unit_test(python),
		cmocka_unit_test(launchers),
		cmocka_unit_test(length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
