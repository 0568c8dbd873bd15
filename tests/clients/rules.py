#!/usr/bin/env python3
"""`gtrace check` against the strict validator of the corpus, tools/tracecheck.py: each of its rules
is one of gtrace's or left out for a reason, and both find the same, as often, in real and hostile
traces and in those made here, which break one rule each.

Usage: tests/clients/rules.py BUILD. The corpus is $GTRACE_CORPUS (../shared); skipped where there is
none. Prints TAP.
"""

import concurrent.futures
import copy
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.environ.get('GTRACE_CORPUS', '../shared')
VALIDATOR = f'{CORPUS}/tools/tracecheck.py'

# Rules of a writer that no reader fails without, or that the format does not have.
LEFT_OUT = {
    'C-EMPTY': 'refused: not a trace',
    'C-ISIZE': 'C-CRC, which also says the length',
    'T-SCHEMA': 'no reader looks at it',
    'T-BASE': 'no reader needs it',
    'E-CATNEW': 'other programs have categories of their own',
    'E-DECIMAL': 'readers take any number of decimals',
    'E-EXP': 'readers take any JSON number',
    'G-ARGS': 'no reader fails without them',
    'G-EXTRA': 'no reader fails without them',
}

# Found once a file here, for each place there.
PRESENCE = {'C-UTF8', 'J-CTRL', 'J-CONST', 'J-HUGE', 'J-SURR', 'J-SYNTAX', 'J-TAIL', 'C-TAIL', 'C-GZIP'}

# Judged by less here: what is missing or of another type is no finding where readers do without.
NARROWER = {
    'C-TAIL',    # zeros are padding
    'T-DIST', 'T-RANK', 'T-UNIT', 'T-DEVICE',  # not there at all: one process, or not Kineto's
    'E-NAME',    # slices
    'E-TS',      # not of metadata
    'E-INST',    # counters; an instant is its thread's without a scope
    'E-PID', 'E-TID',  # may be strings
    'G-TID',     # on which track it stands is the writer's choice
    'J-DUP',     # not below args
}

# And by more: not only beside C-NAME; any number, not only times.
WIDER = {'C-PTNAME', 'J-HUGE'}

# What the validator cannot read at all.
UNREADABLE = {'C-GZIP', 'C-TRUNC', 'J-SYNTAX', 'J-DEPTH', 'J-CTRL'}


def own_rules():
    """The table in lib/check.h: {code: is it of PyTorch's traces only}."""
    with open(os.path.join(HERE, '../../lib/check.h')) as file:
        found = re.findall(r'X\(\w+, "([A-Z]-\w+)", (?:true|false), (true|false),', file.read())
    return {code: pytorch == 'true' for code, pytorch in found}


def found_by_gtrace(gtrace, path):
    done = subprocess.run([gtrace, 'check', '--format', 'json', path], stdin=subprocess.DEVNULL,
                          capture_output=True)
    if done.returncode == 1:
        return None, {}
    file = json.loads(done.stdout)['files'][0]
    return file, {finding['rule']: finding['count'] for finding in file['findings']}


def found_by_validator(path):
    done = subprocess.run([sys.executable, VALIDATOR, '--json', path], stdin=subprocess.DEVNULL,
                          capture_output=True)
    file = json.loads(done.stdout)['files'][0]
    return file, {finding['rule']: finding['count'] for finding in file['findings']}


def not_comparable(theirs, ours, gpu_ops):
    """Rules that follow from another one which the two read differently."""
    skip = set()
    if 'C-ISIZE' in theirs:
        skip.add('C-CRC')
    if 'E-STR' in ours:  # times in quotes are read here
        skip |= {rule for rule in ours | theirs if rule[0] in 'FLSPX'} | {'E-TS', 'E-DUR', 'E-RANGE'}
    if 'E-CATOLD' in ours:  # so are the categories of old versions
        skip |= {rule for rule in ours | theirs if rule[0] in 'FGLPX'}
    if 'E-DUR' in ours or not gpu_ops:  # nothing to stand on; Meta's accelerator has no correlations
        skip.add('F-CORR')
    if 'E-RANGE' in ours:  # the validator's double loses the ns
        skip.add('S-NEST')
    return skip


def compare(gtrace, path, rules):
    """What is wrong, or None."""
    their_file, theirs = found_by_validator(path)
    our_file, ours = found_by_gtrace(gtrace, path)
    if their_file['unreadable']:
        return f'the validator: {their_file["unreadable"]}'
    if our_file is None:
        return None if UNREADABLE & theirs.keys() or {'C-EMPTY', 'T-EVENTS', 'C-UTF8'} & theirs.keys() \
            else 'refused'
    if UNREADABLE & theirs.keys():
        return 'sound' if our_file['sound'] and 'J-OPEN' not in ours else None
    producer = our_file['producer']
    skip = not_comparable(theirs.keys(), ours.keys(), our_file['health']['gpu_ops'])
    wrong = []
    for rule in sorted((theirs.keys() | ours.keys()) & rules.keys() & ALL_THEIRS - skip):
        want, got = theirs.get(rule, 0), ours.get(rule, 0)
        if rules[rule] and producer.startswith('Trace Event Format'):
            continue
        if rule in PRESENCE:
            want, got = min(want, 1), min(got, 1)
        if got > want and rule not in WIDER or got < want and rule not in NARROWER:
            wrong.append(f'{rule} x{got}, not x{want}')
    return ', '.join(wrong) or None


# ---- traces made here ------------------------------------------------------------------------------

def x(cat, name, pid, tid, ts, dur, **args):
    args = {key.replace('_', ' '): value for key, value in args.items()}
    return {'ph': 'X', 'cat': cat, 'name': name, 'pid': pid, 'tid': tid, 'ts': ts, 'dur': dur, 'args': args}


def flow(phase, number, pid, tid, ts, cat='ac2g'):
    event = {'ph': phase, 'cat': cat, 'name': cat, 'id': number, 'pid': pid, 'tid': tid, 'ts': ts}
    return {**event, 'bp': 'e'} if phase == 'f' else event


def gpu(ts, correlation, **args):
    return x('kernel', 'k', 0, 7, ts, 5.0, **{'External_id': 3, 'queued': 0, 'device': 0, 'context': 1,
             'stream': 7, 'correlation': correlation, 'registers_per_thread': 8, 'shared_memory': 0,
             'blocks_per_SM': 1.5, 'warps_per_SM': 2, 'grid': [1, 1, 1], 'block': [1, 1, 1],
             'est._achieved_occupancy_%': 3, **args})


def launch(ts, correlation, name='cudaLaunchKernel', **args):
    return x('cuda_runtime', name, 99, 99, ts, 1.0, External_id=3, correlation=correlation, **args)


STEPS, OP, LAUNCH, KERNEL, START, END = [0, 1], 2, 3, 4, 5, 6


def sound():
    return {'schemaVersion': 1, 'deviceProperties': [{'id': 0, 'name': 'GPU'}], 'displayTimeUnit': 'ms',
            'baseTimeNanoseconds': 0, 'distributedInfo': {'rank': 3, 'world_size': 8},
            'traceEvents': [
                x('user_annotation', 'ProfilerStep#1', 99, 99, 0.0, 500.0),
                x('user_annotation', 'ProfilerStep#2', 99, 99, 500.0, 500.0),
                x('cpu_op', 'aten::mm', 99, 99, 5.0, 60.0, External_id=3),
                launch(10.0, 5), gpu(20.0, 5), flow('s', 5, 99, 99, 10.0), flow('f', 5, 0, 7, 20.0)]}


def event(index, **fields):
    """Change fields of an event; None: take one away."""
    def change(trace):
        for key, value in fields.items():
            if value is None:
                del trace['traceEvents'][index][key]
            else:
                trace['traceEvents'][index][key] = value
    return change


def args(index, **fields):
    def change(trace):
        for key, value in fields.items():
            key = key.replace('_', ' ')
            if value is None:
                del trace['traceEvents'][index]['args'][key]
            else:
                trace['traceEvents'][index]['args'][key] = value
    return change


def more(*events):
    return lambda trace: trace['traceEvents'].extend(events)


def less(*indexes):
    def change(trace):
        trace['traceEvents'] = [e for i, e in enumerate(trace['traceEvents']) if i not in indexes]
    return change


def top(**fields):
    return lambda trace: trace.update(fields)


def pair(number, launch_name='cudaLaunchKernel', launch_args={}, **gpu_args):
    return [launch(30.0, number, launch_name, **launch_args), gpu(40.0, number, **gpu_args),
            flow('s', number, 99, 99, 30.0), flow('f', number, 0, 7, 40.0)]


CHANGES = [
    ('none', None, lambda trace: None),
    ('T-EVENTS', 1, top(traceEvents=[])),
    ('T-UNIT', 1, top(displayTimeUnit='s')),
    ('T-DIST', 1, top(distributedInfo={'rank': 8, 'world_size': 8})),
    ('T-DIST', 1, top(distributedInfo={'rank': 3, 'world_size': '8'})),
    ('T-DEVICE', 1, top(deviceProperties=[{'id': 1, 'name': 'GPU'}])),
    ('T-DEVICE', 2, top(deviceProperties=[{'id': 0, 'name': 'GPU'}] * 2 + [{'id': 1}])),
    ('T-GTRACE', 1, top(gtrace=[])),
    ('E-OBJECT', 1, more({})),
    ('E-PH', 1, more({'ph': 'B', 'name': 'a', 'cat': 'cpu_op', 'pid': 99, 'tid': 99, 'ts': 7.0})),
    ('E-NAME', 1, event(OP, name=None)),
    ('E-CAT', 1, event(OP, cat=None)),
    ('E-CATOLD', 1, event(OP, cat='Operator')),
    ('E-TS', 1, more({'ph': 'i', 'name': 'a', 's': 't', 'pid': 99, 'tid': 99})),
    ('E-DUR', 1, event(1, dur=None)),
    ('E-DUR', 1, event(1, dur=-1.0)),
    ('E-RANGE', 1, more(x('cpu_op', 'a', 99, 98, 2.0 ** 43 - 2, 3.0))),
    ('E-PID', 1, event(1, pid=-1)),
    ('E-TID', 1, event(1, tid=-1)),
    ('E-ARGS', 1, event(1, args='x')),
    ('E-NOARGS', 1, event(1, args=None)),
    ('E-INST', 1, more({'ph': 'C', 'name': 'c', 'pid': 99, 'ts': 1.0, 'args': {}})),
    ('E-ESC', 1, event(OP, name='a\x1b[1m')),
    ('E-TID0', 1, more(x('cpu_op', 'a', 99, 0, 1.0, 1.0))),
    ('M-NAME', 1, more({'ph': 'M', 'name': 'x', 'pid': 1, 'tid': 0, 'args': {}})),
    ('M-ARGS', 1, more({'ph': 'M', 'name': 'process_name', 'pid': 1, 'tid': 0, 'args': {}})),
    ('M-ARGS', 1, more({'ph': 'M', 'name': 'thread_name', 'pid': 1, 'args': {'name': 'a'}})),
    ('G-NONE', 1, less(KERNEL, START, END)),
    ('G-PID', 1, args(KERNEL, device=1)),
    ('G-PID', 1, args(KERNEL, device=None)),
    ('G-TID', 1, args(KERNEL, stream=None)),
    ('G-CORR', 1, args(KERNEL, correlation=None)),
    ('G-NUM', 2, args(KERNEL, queued='0', blocks_per_SM='inf')),
    ('G-PIDMIX', 1, more(x('cpu_op', 'a', 0, 1, 1.0, 1.0))),
    ('L-NONE', 1, less(LAUNCH, START, END)),
    ('L-MULTI', 1, more(launch(12.0, 5))),
    ('L-CORR', 1, more(x('cuda_runtime', 'cudaLaunchKernel', 99, 99, 30.0, 1.0))),
    ('L-FAN', 1, more(gpu(60.0, 5))),
    ('L-KERNEL', 1, more(gpu(60.0, 6))),
    ('L-LAUNCH', 1, more(launch(30.0, 6))),
    ('L-TIME', 1, more(*pair(6))),
    ('L-NAME', 1, more(*pair(6, 'cudaLaunchCooperativeKernel'))),
    ('F-FORM', 1, event(START, id='5')),
    ('F-FORM', 1, event(END, name='x')),
    ('F-BP', 1, event(END, bp=None)),
    ('F-DANGLE', 1, less(END)),
    ('F-DANGLE', 1, less(START)),
    ('F-DANGLE', 1, more(flow('s', 1, 99, 99, 6.0, 'fwdbwd'))),
    ('F-DUP', 1, more(flow('s', 5, 99, 99, 10.0))),
    ('F-DUP', 1, more(flow('f', 5, 0, 7, 20.0))),
    ('F-DUP', 1, more(flow('s', 1, 99, 99, 6.0, 'fwdbwd'), flow('f', 1, 99, 99, 7.0, 'fwdbwd'),
                      flow('f', 1, 99, 99, 8.0, 'fwdbwd'))),
    ('F-END', 1, event(END, ts=90.0)),
    ('F-END', 1, event(START, tid=98)),
    ('F-CORR', 1, event(START, ts=12.5)),
    ('F-CORR', 1, event(END, pid=99, tid=99)),
    ('F-MISS', 1, less(START, END)),
    ('S-NEST', 1, more(x('cpu_op', 'a', 99, 99, 60.0, 60.0))),
    ('S-GPU', 1, more(*pair(6)[:3], gpu(22.0, 7), launch(12.0, 7), flow('s', 7, 99, 99, 12.0),
                      flow('f', 7, 0, 7, 22.0), flow('f', 6, 0, 7, 40.0))),
    ('P-NONE', 1, less(*STEPS)),
    ('P-NAME', 1, more(x('user_annotation', 'ProfilerStep#x', 99, 99, 6.0, 1.0))),
    ('P-CAT', 1, event(1, cat='cpu_op')),
    ('P-ORDER', 1, event(1, name='ProfilerStep#1')),
    ('P-OVERLAP', 1, event(1, ts=499.0, dur=1.0)),
    ('X-ZERO', 1, more(x('cpu_op', 'a', 99, 99, 6.0, 1.0, External_id=0))),
    ('X-SIDES', 1, args(KERNEL, External_id=None)),
    ('X-DIFF', 1, args(KERNEL, External_id=4)),
    ('X-CORR', 1, lambda trace: [args(i, External_id=5)(trace) for i in (LAUNCH, KERNEL)]),
    ('X-REF', 1, lambda trace: [args(i, External_id=9)(trace) for i in (LAUNCH, KERNEL)]),
    ('X-REF', 1, event(OP, ts=300.0)),
]

TEXTS = [
    ('C-NAME', 'a.json', lambda text: gzip.compress(text)),
    ('C-NAME', 'a.pt.trace.json.gz', lambda text: text),
    ('C-PTNAME', 'a.json', lambda text: text),
    ('C-MEMBER', 'a.pt.trace.json.gz', lambda text: gzip.compress(text[:50]) + gzip.compress(text[50:])),
    ('C-TAIL', 'a.pt.trace.json.gz', lambda text: gzip.compress(text) + b'junk'),
    ('C-CRC', 'a.pt.trace.json.gz', lambda text: (lambda z: z[:-8] + bytes([z[-8] ^ 1]) + z[-7:])(gzip.compress(text))),
    ('C-BOM', 'a.pt.trace.json', lambda text: b'\xef\xbb\xbf' + text),
    ('C-UTF8', 'a.pt.trace.json', lambda text: text.replace(b'mm', b'm\xff')),
    ('J-TAIL', 'a.pt.trace.json', lambda text: text + b'{}'),
    ('J-CONST', 'a.pt.trace.json', lambda text: text.replace(b'1.5', b'NaN')),
    ('J-DUP', 'a.pt.trace.json', lambda text: text.replace(b'"queued"', b'"queued": 1, "queued"')),
    ('J-DUP', 'a.pt.trace.json', lambda text: text.replace(b'"ph": "s"', b'"ph": "s", "ph": "s"')),
    ('J-SURR', 'a.pt.trace.json', lambda text: text.replace(b'mm', b'\\ud83d\\ude00')),
    ('T-OBJECT', 'a.pt.trace.json', lambda text: json.dumps(json.loads(text)['traceEvents']).encode()),
    ('T-RANK', 'a.pt.trace.json', lambda text: text.replace(b'"rank": 3', b'"rank":3')),
]


def made(folder):
    """Write the traces; [(rule, how often, path)]."""
    for i, (rule, count, change) in enumerate(CHANGES):
        trace = copy.deepcopy(sound())
        change(trace)
        if rule == 'L-TIME':
            trace['traceEvents'][-3]['ts'] = trace['traceEvents'][-1]['ts'] = 28.0
        path = f'{folder}/{i}.pt.trace.json'
        with open(path, 'w') as file:
            json.dump(trace, file)
        yield rule, count, path
    text = json.dumps(sound()).encode()
    for i, (rule, name, change) in enumerate(TEXTS):
        os.mkdir(f'{folder}/t{i}')
        path = f'{folder}/t{i}/{name}'
        with open(path, 'wb') as file:
            file.write(change(text))
        yield rule, None, path


def compare_made(gtrace, rule, count, path, rules):
    why = compare(gtrace, path, rules)
    theirs, ours = found_by_validator(path)[1], found_by_gtrace(gtrace, path)[1]
    if why or rule == 'none':
        return why or (f'not sound: {ours} {theirs}' if ours or theirs else None)
    for who, found in ('gtrace', ours), ('the validator', theirs):
        if rule not in found or count and found[rule] != count:
            return f'{rule} x{found.get(rule, 0)} by {who}: {found}'
    return None


# ---- all of it -------------------------------------------------------------------------------------

def validator_rules():
    done = subprocess.run([sys.executable, VALIDATOR, '--rules'], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in done.stdout.splitlines()}


ALL_THEIRS = validator_rules() if os.path.exists(VALIDATOR) else set()


def main():
    gtrace = f'{sys.argv[1]}/gtrace'
    if not ALL_THEIRS:
        print(f'ok - rules of the check # SKIP no {VALIDATOR} (GTRACE_CORPUS)')
        return 0
    rules = own_rules()
    open_rules = ALL_THEIRS - rules.keys() - LEFT_OUT.keys()
    tested = {rule for rule, *_ in CHANGES + TEXTS} | UNREADABLE | {'J-HUGE'}
    untested = (ALL_THEIRS & rules.keys()) - tested
    results = [('each rule is here or left out', f'not: {sorted(open_rules)}' if open_rules else None),
               ('each rule is broken by a trace', f'not: {sorted(untested)}' if untested else None)]
    files = sorted(path for folder in ('traces', 'hostile') for path in glob.glob(f'{CORPUS}/data/{folder}/*')
                   if not path.endswith(('.tsv', '.jsonl')))
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [(f'{rule}: {os.path.basename(path)}', pool.submit(compare_made, gtrace, rule, count, path, rules))
                for rule, count, path in made(folder)]
        jobs += [(os.path.relpath(path, CORPUS), pool.submit(compare, gtrace, path, rules)) for path in files]
        results += [(what, job.result()) for what, job in jobs]
    for what, why in results:
        print(f'{"not ok" if why else "ok"} - rules of the check: {what}')
        if why:
            print(f'# {why}')
    return 1 if any(why for _, why in results) else 0


if __name__ == '__main__':
    sys.exit(main())
