"""Several processes, and the names of their files."""

import os

from harness import check, check_equal, compare, each

BOTH = 'RANK=0 WORLD_SIZE=2 {0} --truth {1}/t0 & RANK=1 WORLD_SIZE=2 {0} --truth {1}/t1 & wait'


def two_ranks(case, template, command=None):
    command = command or ' '.join(case.train())
    return ['sh', '-c', template.format(command, case.directory)]


def test_two_ranks(case):
    result = case.gtrace(['-n', 'train'], two_ranks(case, BOTH))
    check_equal(result.names(), ['train-rank0.trace.json.gz', 'train-rank1.trace.json.gz'], 'files')
    for rank in 0, 1:
        trace = result.trace(f'train-rank{rank}.trace.json.gz').expect_checked().expect_complete()
        info = trace.json['distributedInfo']
        check_equal((info['rank'], info.get('world_size')), (rank, 2), 'distributedInfo')
        check_equal(trace.health['rank_source'], 'RANK', 'rank_source')
        compare(trace, case.truth(f'{case.directory}/t{rank}'), range(3, 6))


@each(OMPI=[{'OMPI_COMM_WORLD_RANK': '3', 'SLURM_PROCID': '5'}, 'OMPI_COMM_WORLD_RANK'],
      PMIX=[{'PMIX_RANK': '3', 'SLURM_PROCID': '0'}, 'PMIX_RANK'],
      PMI=[{'PMI_RANK': '3'}, 'PMI_RANK'],
      Slurm=[{'SLURM_PROCID': '3'}, 'SLURM_PROCID'],
      torchrun_in_Slurm=[{'RANK': '3', 'SLURM_PROCID': '0'}, 'RANK'])
def test_rank_of(case, env, source):
    trace = case.gtrace([], case.train(), env=env).trace('train-rank3.trace.json.gz')
    check_equal(trace.json['distributedInfo']['rank'], 3, 'rank')
    check_equal(trace.health['rank_source'], source, 'rank_source')


def test_same_rank_twice(case):
    """The second process of a rank has its pid in the name; nothing is overwritten."""
    both = '{0} --truth {1}/t0 & {0} --truth {1}/t1 & wait'
    result = case.gtrace(['-n', 'train'], two_ranks(case, both))
    names = result.names()
    check_equal(len(names), 2, 'files')
    check('train-rank0.trace.json.gz' in names, names)
    truths = {truth['pid']: truth for truth in (case.truth(f'{case.directory}/t{i}') for i in (0, 1))}
    for name in names:
        trace = result.trace(name).expect_checked().expect_complete()
        pid = trace.health['pid']
        check(name in ('train-rank0.trace.json.gz', f'train-rank0-pid{pid}.trace.json.gz'), name, pid)
        compare(trace, truths[pid], range(3, 6))


def test_one_after_the_other(case):
    """Processes may come and go."""
    result = case.gtrace(['-n', 'train'], two_ranks(case, '{0}; {0}; {0}'))
    check_equal(len(result.names()), 3, 'files')
    for name in result.names():
        result.trace(name).expect_checked().expect_complete()


def test_existing_files_are_kept(case):
    for number in 1, 2, 3:
        result = case.gtrace([], case.train())
    names = ['train-2-rank0.trace.json.gz', 'train-3-rank0.trace.json.gz', 'train-rank0.trace.json.gz']
    check_equal(result.names(), names, 'files')
    for name in names:
        result.trace(name).expect_complete()


def test_the_free_name_is_free_for_all_ranks(case):
    open(f'{case.out}/train-rank7.trace.json.gz', 'w').close()
    result = case.gtrace(['-n', 'train'], two_ranks(case, BOTH))
    check_equal(result.names(), ['train-2-rank0.trace.json.gz', 'train-2-rank1.trace.json.gz',
                                 'train-rank7.trace.json.gz'], 'files')


def test_force_overwrites(case):
    case.gtrace([], case.train())
    first = os.stat(f'{case.out}/train-rank0.trace.json.gz').st_mtime_ns
    result = case.gtrace(['--force'], case.train())
    result.trace('train-rank0.trace.json.gz').expect_checked().expect_complete()
    check_equal(len(result.names()), 1, 'files')
    check(os.stat(f'{case.out}/train-rank0.trace.json.gz').st_mtime_ns != first, 'not overwritten')


@each(given=[['-n', 'mine'], 'mine'], odd=[['--name', 'a b"c'], 'a b"c'])
def test_name(case, options, name):
    case.gtrace(options, case.train()).trace(f'{name}-rank0.trace.json.gz').expect_complete()


def test_name_of_a_python_script(case):
    case.gtrace([], case.train_py()).trace('train-rank0.trace.json.gz').expect_complete()


def test_directory_from_the_environment(case):
    other = f'{case.directory}/other'
    os.mkdir(other)
    argv = [case.gtrace_path, 'run', '--', *case.train()]
    import subprocess

    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=case.directory,
                          env=case.environment(env={'GTRACE_OUTPUT_DIR': other}))
    check_equal(done.returncode, 0, 'status')
    check_equal(os.listdir(other), ['train-rank0.trace.json.gz'], 'files')


def test_program_without_a_gpu(case):
    result = case.gtrace([], ['true'])
    check_equal(result.names(), [], 'files')
    check(result.stderr, 'nothing said')


def test_eight_ranks(case):
    ranks = ' '.join(f'RANK={r} WORLD_SIZE=8 {{0}} --truth {{1}}/t{r} &' for r in range(8)) + ' wait'
    result = case.gtrace(['-n', 'train'], two_ranks(case, ranks))
    check_equal(len(result.names()), 8, 'files')
    for rank in range(8):
        trace = result.trace(f'train-rank{rank}.trace.json.gz').expect_checked().expect_complete()
        compare(trace, case.truth(f'{case.directory}/t{rank}'), range(3, 6))
