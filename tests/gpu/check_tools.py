"""Cases of check.py beside other tools of NVIDIA's, as far as they are on the machine."""
import glob
import os
import re
import shutil
import sqlite3
import subprocess

CASES = []
ROOTS = '/opt/nvidia', '/usr/local/cuda*', '/usr/lib/nvidia-cuda-toolkit', '/usr/lib/nsight-*'


def case(func):
    CASES.append(func)
    return func


def find(name):
    """On PATH, or below where the toolkit is: an nsys without its importer is in Nsight Compute's folder."""
    found = shutil.which(name)
    for root in [] if found else [place for pattern in ROOTS for place in sorted(glob.glob(pattern))]:
        for folder, _, names in os.walk(root):
            path = os.path.join(folder, name)
            if name in names and os.access(path, os.X_OK):
                return path
    return found


def ran(run, name, argv, **env):
    """What a command printed; its status is its own business."""
    path = os.path.join(run.out, name + '.log')
    with open(path, 'w') as log:
        done = subprocess.run(argv, timeout=300, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              cwd=run.out, env={**os.environ, **env})
    with open(path, errors='replace') as log:
        run.log = log.read()
    return done.returncode


def fresh(run, name):
    where = os.path.join(run.out, name)
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    return where


def kernels_in(nsys, report):
    """{step: kernels launched in it}, by an export of the report; None: this nsys cannot."""
    database = os.path.splitext(report)[0] + '.sqlite'
    subprocess.run([nsys, 'export', '--type', 'sqlite', '--force-overwrite', 'true', '-o', database, report],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not os.path.exists(database):
        return None
    with sqlite3.connect(database) as tables:
        text = 'coalesce(text, (SELECT value FROM StringIds WHERE id = textId))'
        steps = tables.execute(f'SELECT {text} AS name, start, end FROM NVTX_EVENTS '
                               "WHERE name LIKE 'ProfilerStep#%' AND end IS NOT NULL").fetchall()
        calls = [start for start, in tables.execute(
            'SELECT r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r '
            'ON r.correlationId = k.correlationId')]
    return {name: sum(start <= call <= end for call in calls) for name, start, end in steps}


def expect_told(run):
    """By what the injection says of the calls that it makes (GTRACE_DEBUG)."""
    told = re.findall(r'(cudaProfiler\w+): (-?\d+)', run.log)
    assert told == [('cudaProfilerStart', '0'), ('cudaProfilerStop', '0')], (told, run.log[-1500:])
    assert 'Nsight Systems records from step 3 on, for 3 steps' in run.log, run.log[-1500:]


def nsight(around):
    def check(run):
        nsys = find('nsys')
        if not nsys:
            run.lacks = 'no nsys here'
            return None
        where = fresh(run, check.__name__)
        gtrace = [run.gtrace, 'run', '-o', where, '--nsight']
        if around:
            argv = [nsys, 'profile', '-t', 'cuda,nvtx', '-o', where + '/gpt', '--capture-range=cudaProfilerApi',
                    '--capture-range-end=stop', *gtrace]
        else:
            argv = gtrace
        path = f'{os.path.dirname(nsys)}:{os.environ["PATH"]}'
        status = ran(run, check.__name__, [*argv, '--', *run.python('gpt.py')], PATH=path, GTRACE_DEBUG='1')
        expect_told(run)
        reports = [name for name in os.listdir(where) if name.endswith(('.nsys-rep', '.qdstrm'))]
        assert not glob.glob(where + '/*.json.gz'), os.listdir(where)
        seen = kernels_in(nsys, os.path.join(where, reports[0])) if reports else None
        if seen is not None:
            assert set(seen) >= {f'ProfilerStep#{step}' for step in (3, 4, 5)}, seen
            assert len({seen[f'ProfilerStep#{step}'] for step in (3, 4, 5)}) == 1, seen
        return '%s: status %d, told at both ends; reports %s, kernels by step %s' % (nsys, status, reports, seen)
    check.__name__ = 'nsight_' + ('around' if around else 'started')
    return case(check)


for around in True, False:
    nsight(around)


@case
def nsight_absent(run):
    where = fresh(run, 'nsight_absent')
    path = ':'.join(folder for folder in os.environ['PATH'].split(':')
                    if not os.path.exists(os.path.join(folder, 'nsys')))
    status = ran(run, 'nsight_absent', [run.gtrace, 'run', '-o', where, '--nsight', '--', run.train, '--exit-status',
                                        '5', '--steps', '4'], PATH=path)
    assert status == 5 and 'no nsys on PATH' in run.log, (status, run.log)
    assert not os.listdir(where), os.listdir(where)
    return [line for line in run.log.splitlines() if 'not tracing' in line][0]


def refused(name, before, command, who):
    """The tool has the program, gtrace says so and leaves it alone."""
    def check(run):
        tool = find(name)
        if not tool:
            run.lacks = f'no {name} here'
            return None
        where = fresh(run, check.__name__)
        target = [run.train, '--steps', '4'] if command == 'train' else [command]
        status = ran(run, check.__name__, [tool, *before, run.gtrace, 'run', '-o', where, '--', *target])
        assert 'not tracing: ' in run.log and who in run.log, run.log[-1500:]
        assert not os.listdir(where), os.listdir(where)
        return 'status %d; %s' % (status, [line for line in run.log.splitlines() if 'not tracing' in line][0])
    check.__name__ = 'refused_under_' + name.replace('-', '_')
    return case(check)


refused('compute-sanitizer', [], 'train', 'compute-sanitizer has set')
refused('ncu', [], 'true', 'Nsight Compute has set')
refused('cuda-gdb', ['-batch', '-ex', 'run', '--args'], 'true', 'runs under cuda-gdb')
