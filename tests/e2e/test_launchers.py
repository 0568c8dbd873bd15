"""Ranks started by mpirun, srun and the like, with one gtrace for all or one for each."""

import os
import shlex
import shutil
import subprocess
import sys

from harness import TIMEOUT_S, Result, Skip, check, check_equal, each

MPI = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
RANKS = 4
# Processes of multiprocessing: an engine that starts two workers, and uses no GPU itself.
WORKERS = '''
import multiprocessing, subprocess, sys
def work(number):
    sys.exit(subprocess.run(sys.argv[2:] + ["--truth", "t%d" % number]).returncode)
def serve(method):
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=work, args=(number,)) for number in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.exit(any(worker.exitcode for worker in workers))
if __name__ == "__main__":
    engine = multiprocessing.get_context(sys.argv[1]).Process(target=serve, args=(sys.argv[1],))
    engine.start()
    engine.join()
    sys.exit(engine.exitcode)
'''


def mpirun():
    if not shutil.which('mpirun'):
        raise Skip('no mpirun (openmpi-bin)')
    # It starts nothing elsewhere, but ends where there is no ssh.
    return ['mpirun', '--oversubscribe', '--mca', 'plm_rsh_agent', 'sh', '-n', str(RANKS)]


def train_by_rank(case):
    """The program, each rank of it with a truth of its own."""
    return ['sh', '-c', f'exec "$@" --truth {case.directory}/t$OMPI_COMM_WORLD_RANK', 'sh', *case.train()]


def expect_ranks(result, name, source, count=RANKS):
    names = [f'{name}-rank{rank}.trace.json.gz' for rank in range(count)]
    check_equal([n for n in result.names() if n.startswith(f'{name}-rank')], names, 'files')
    for rank, file in enumerate(names):
        trace = result.trace(file).expect_complete()
        info = trace.json['distributedInfo']
        check_equal((info['rank'], info.get('world_size')), (rank, count), 'distributedInfo')
        check_equal(trace.health['rank_source'], source, 'rank_source')
        check_equal(trace.step_numbers(), [3, 4, 5], 'steps')


def launch(case, launcher, options, env=None):
    """One gtrace for each rank, started by launcher."""
    done = subprocess.run([*launcher, *case.argv(options, train_by_rank(case))], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=TIMEOUT_S, cwd=case.directory,
                          env=case.environment(env=env))
    return Result(done.returncode, done.stdout, done.stderr, case.out).expect()


def expect_one_voice(result):
    for line in 'gtrace: tracing', 'gtrace: window open', 'is complete':
        check_equal(result.stderr.count(line), 1, line)
    check('warning' not in result.stderr, result)
    check_equal([name for name in os.listdir(result.directory) if name.startswith('.')], [], 'claims left')


def test_gtrace_run_mpirun(case):
    result = case.gtrace(['-n', 'job'], [*mpirun(), *train_by_rank(case)], env=MPI)
    expect_ranks(result, 'job', 'OMPI_COMM_WORLD_RANK')
    expect_one_voice(result)


def test_mpirun_gtrace_run(case):
    """The second job finds the files of the first, and has one other name for all ranks."""
    for name in 'job', 'job-2':
        result = launch(case, mpirun(), ['-n', 'job'], env=MPI)
        expect_ranks(result, name, 'OMPI_COMM_WORLD_RANK')
        expect_one_voice(result)


def test_mpirun_in_a_Slurm_job(case):
    """The batch script has variables of a rank, too, and mpirun's ranks inherit them."""
    slurm = {'SLURM_JOB_ID': '77', 'SLURM_PROCID': '0', 'SLURM_NTASKS': '16', 'SLURM_LOCALID': '0'}
    result = case.gtrace(['-n', 'job'], [*mpirun(), *train_by_rank(case)], env={**MPI, **slurm})
    expect_ranks(result, 'job', 'OMPI_COMM_WORLD_RANK')
    expect_one_voice(result)
    expect_ranks(launch(case, mpirun(), ['-n', 'job'], env={**MPI, **slurm}), 'job-2', 'OMPI_COMM_WORLD_RANK')


def srun(rank, **more):
    return ' '.join(f'{name}={value}' for name, value in {
        'SLURM_JOB_ID': 77, 'SLURM_STEP_ID': 0, 'SLURM_PROCID': rank, 'SLURM_LOCALID': rank % 2,
        'SLURM_NODEID': rank // 2, 'SLURM_NTASKS': RANKS, 'SLURM_STEP_NUM_TASKS': RANKS, **more}.items())


@each(plain=['SLURM_PROCID', lambda rank: {}],
      with_PMIx=['PMIX_RANK', lambda rank: {'PMIX_RANK': rank, 'PMIX_NAMESPACE': 'slurm.pmix.77.0'}],
      with_PMI2=['PMI_RANK', lambda rank: {'PMI_RANK': rank, 'PMI_SIZE': RANKS}])
def test_srun_gtrace_run(case, source, more):
    """Its environment, as srun gives it to 4 tasks on 2 machines."""
    ranks = ' '.join(f'{srun(rank, **more(rank))} OMPI_COMM_WORLD_RANK= "$@" &' for rank in range(RANKS))
    result = launch(case, ['sh', '-c', f'{ranks} wait', 'sh'], ['-n', 'job'])
    expect_ranks(result, 'job', source)
    expect_one_voice(result)


def test_a_gtrace_on_each_machine(case):
    """srun starts one on each of two machines, and it a launcher of that machine's ranks."""
    def node(number):
        ranks = ' '.join(f'RANK={rank} WORLD_SIZE={RANKS} "$@" --truth t{rank} &'
                         for rank in (2 * number, 2 * number + 1))
        return shlex.join(['env', 'SLURM_JOB_ID=77', 'SLURM_STEP_ID=0', f'SLURM_PROCID={number}',
                           'SLURM_NTASKS=2', *case.argv(['-n', 'job'], ['sh', '-c', f'{ranks} wait', 'sh',
                                                                        *case.train()])])

    done = subprocess.run(['sh', '-c', f'{node(0)} & {node(1)} & wait'], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=TIMEOUT_S, cwd=case.directory,
                          env=case.environment())
    result = Result(done.returncode, done.stdout, done.stderr, case.out).expect()
    expect_ranks(result, 'job', 'RANK')
    expect_one_voice(result)


@each(spawn=['spawn'], forkserver=['forkserver'], fork=['fork'])
def test_multiprocessing(case, method):
    """Processes without a rank: the second one has its pid in the name."""
    script = f'{case.directory}/server.py'
    with open(script, 'w') as file:
        file.write(WORKERS)
    result = case.gtrace(['-n', 'job'], [sys.executable, script, method, *case.train()])
    pids = {case.truth(f'{case.directory}/t{number}')['pid'] for number in (0, 1)}
    check_equal(len(result.names()), 2, 'files')
    check('job-rank0.trace.json.gz' in result.names(), result)
    for name in result.names():
        trace = result.trace(name).expect_complete()
        check_equal(trace.health['rank_source'], 'none', 'rank_source')
        pids.remove(trace.health['pid'])


def test_environment_of_ray(case):
    """A worker is no child of the program: raylet starts it with what runtime_env has in env_vars,
    here all that gtrace set; see gtrace-run(1)."""
    raylet = 'import os, subprocess, sys; env = dict(eval(sys.stdin.read())); ' \
             'sys.exit(subprocess.run(sys.argv[1:], env=env).returncode)'
    driver = f'''
import os, subprocess, sys
carried = {{name: value for name, value in os.environ.items() if name.startswith(("GTRACE_", "PYTHONPATH"))
           or name.endswith(("_INJECTION64_PATH", "SAN_OPTIONS"))}}
carried["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
plain = {{"PATH": os.environ["PATH"]}}
workers = [subprocess.Popen([sys.executable, "-c", {raylet!r}, *sys.argv[1:], "--truth", "t%d" % rank],
                            env=plain, stdin=subprocess.PIPE) for rank in (0, 1)]
for rank, worker in enumerate(workers):
    worker.stdin.write(repr({{**plain, **carried, "RANK": str(rank), "WORLD_SIZE": "2"}}).encode())
    worker.stdin.close()
sys.exit(any([worker.wait() for worker in workers]))
'''
    result = case.gtrace(['-n', 'job'], [sys.executable, '-c', driver, *case.train()])
    expect_ranks(result, 'job', 'RANK', 2)


@each(negative=['-1'], a_word=['abc'], too_large=['99999999999'])
def test_what_is_no_rank(case, value):
    result = case.gtrace(['-n', 'job'], case.train(), env={'RANK': value})
    result.expect(stderr=f'warning: .*RANK={value} is no rank: this process counts as rank 0')
    result.trace('job-rank0.trace.json.gz')
    result = case.gtrace(['-n', 'other'], case.train(), env={'RANK': value, 'SLURM_PROCID': '3'})
    result.expect(stderr=f'rank 3: warning: .*RANK={value} is no rank: this process is rank 3, by SLURM_PROCID')
    check_equal(result.trace('other-rank3.trace.json.gz').health['rank_source'], 'SLURM_PROCID', 'source')
