#!/usr/bin/env python3
"""`gtrace summary`, `check --repair` and `cut` of files that are odd, cut, damaged or no traces: the
exit status and the words that each deserves, within seconds and a bounded memory, whatever the file
holds. What is written loads in Python's json, with all that the summary counted.

Usage: tests/clients/hostile.py BUILD. Generates its inputs; those of $GTRACE_CORPUS/data/hostile
(../shared) are tried as well where they are. Prints TAP.
"""

import glob
import gzip
import io
import json
import os
import re
import resource
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

TIMEOUT_S = 20  # a hang; the CPU seconds of the slowest are printed
CPU_LIMIT_S = 20
MEMORY_BYTES = 256 << 20

OK, REFUSED, LOSSY = 0, 1, 3

CUT = 'is cut'
# What the corpus holds: name, exit status, words.
CORPUS = {
    'array_unterminated.json': (OK, ''),
    'array_unterminated_comma.json': (OK, ''),
    'bad_isize.json.gz': (LOSSY, 'checksum'),
    'bad_utf8.json': (OK, ''),
    'be_deep_3000.json': (OK, ''),
    'be_unbalanced.json': (OK, ''),
    'bgzf_like_empty_tail.json.gz': (OK, ''),
    'bitflip_mid.json.gz': (LOSSY, 'compressed data is damaged'),
    'bluepill_437_nan_counter.json': (OK, ''),
    'bom.json': (OK, ''),
    'crlf.json': (OK, ''),
    'cut_0.5.json': (LOSSY, CUT),
    'cut_0.9.json': (LOSSY, CUT),
    'cut_0.999.json': (LOSSY, CUT),
    'deep_100k.json': (LOSSY, 'could not be read'),
    'dup_keys.json': (OK, ''),
    'dur_missing.json': (LOSSY, 'no time or duration'),
    'dur_negative.json': (OK, 'negative duration'),
    'empty.json.gz': (REFUSED, 'empty file'),
    'escapes.json': (OK, ''),
    'fullflush_no_trailer.json.gz': (LOSSY, CUT),
    'gz_bomb.json.gz': (OK, ''),
    'gz_named_json.json': (OK, ''),
    'html.json': (REFUSED, 'HTML'),
    'multimember_64.json.gz': (OK, ''),
    'nul_hole.json': (LOSSY, 'could not be read'),
    'pytorch_113001_unescaped_quotes_newline.json': (OK, 'repaired'),
    'pytorch_136180_invalid_utf8_name.json': (OK, ''),
    'random.bin': (REFUSED, 'binary data'),
    'same_ts_nesting.json': (OK, ''),
    'single.json.gz': (OK, ''),
    'single_quotes.json': (REFUSED, 'Python'),
    'traceEvents_first.json': (OK, ''),
    'traceEvents_obj.json': (REFUSED, 'traceEvents is an object'),
    'trailing_junk.json.gz': (OK, 'after the end'),
    'trailing_newlines_junk.json': (OK, 'after the end'),
    'trailing_zeros.json.gz': (OK, ''),
    'trunc_half.json.gz': (LOSSY, CUT),
    'trunc_header.json.gz': (REFUSED, 'cut'),
    'ts_epoch_us.json': (OK, ''),
    'ts_string.json': (OK, ''),
    'two_docs.json': (LOSSY, 'second JSON document'),
    'unpadded_ns.json': (OK, ''),
    'utf16be.json': (REFUSED, 'UTF-16'),
}

# What the summary makes good without a loss, but strict readers refuse; and a duration below 0.
UNSOUND = {
    'bad_utf8.json', 'bluepill_437_nan_counter.json', 'bom.json', 'dur_negative.json',
    'pytorch_113001_unescaped_quotes_newline.json', 'pytorch_136180_invalid_utf8_name.json',
    'trailing_junk.json.gz', 'trailing_newlines_junk.json',
    'bad escapes', 'bad UTF-8', 'broken strings', 'commas too many', 'deep args', 'deep member',
    'escapes in names', 'integer of 5,000 digits', 'invalid long args', 'nesting of 500', 'gzip and junk', 'junk between members', 'missing quote before a key',
    'negative time of old Kineto', 'numbers', 'raw control characters', 'traceEvents twice',
}

KERNEL = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":1.5,"args":{"device":0,"stream":7}}'


def kernels(count, start=0):
    return ','.join(KERNEL % (10 * i) for i in range(start, start + count))


def trace(events, head='', tail=''):
    return ('{"schemaVersion":1,%s"traceEvents":[%s]%s}' % (head, events, tail)).encode()


def bomb():
    """512 MiB of spaces in an otherwise sound trace."""
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    out = [pack.compress(trace(kernels(3))[:-2])]
    spaces = b' ' * (1 << 20)
    out += [pack.compress(spaces) for _ in range(512)]
    return b''.join(out) + pack.compress(b']}') + pack.flush()


def packed_trace(pieces):
    pack = zlib.compressobj(1, zlib.DEFLATED, 31)
    out = [pack.compress(piece) for piece in (b'{"traceEvents":[', *pieces, KERNEL.encode() % 0, b']}')]
    return b''.join(out) + pack.flush()


def event_bomb(count):
    event = b'{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1},'
    return packed_trace([event * 1024] * (count // 1024 - 1) + [event * 1023])


def name_bomb(count):
    """Each event with a name of its own."""
    return packed_trace(b'{"ph":"X","cat":"kernel","name":"kernel %d","ts":1,"dur":1},' % i
                        for i in range(count - 1))


def track_bomb(count):
    """Each with a track and a correlation of its own."""
    return packed_trace(b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":%d,"ts":1,"dur":1,'
                        b'"args":{"correlation":%d}},' % (i, i + 1) for i in range(count - 1))


def deep(count):
    return trace('{"ph":"X","name":"n","ts":1,"dur":1,"args":{"a":%s%s}},%s' % (
        '[' * count, ']' * count, kernels(3)))


def unclosed(count):
    """Each event opens an object that never ends: no reader may look for its end each time."""
    return b'{"traceEvents":[' + b'{"ph":"X","args":{"a":{"b":{' * count


def endless_repairs(count):
    """Each event has a string that no repair can end."""
    return b'{"traceEvents":[' + b'{"ph":"X","name":"a "b", "c" \n d" e},' * count + b']}'


def broken_strings(count):
    return trace(','.join('{"ph":"X","cat":"kernel","name":"a "b" \n c","ts":1,"dur":1}'
                          for _ in range(count)))


def tar(name, content):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode='w') as file:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        file.addfile(info, io.BytesIO(content))
    return archive.getvalue()


# Name: content, exit status, words, kernels counted (None: whatever).
def generated():
    good = trace(kernels(100))
    packed = gzip.compress(good)
    yield 'bomb', bomb(), OK, '', 3
    yield 'bomb of events', event_bomb(2 << 20), OK, '', 2 << 20
    yield 'bomb of names', name_bomb(1 << 18), OK, '', 1 << 18
    yield 'bomb of tracks', track_bomb(1 << 19), OK, '', 1 << 19
    yield 'long name', trace('{"ph":"X","cat":"kernel","name":"%s","ts":1,"dur":1},%s' % (
        'n' * (16 << 20), kernels(3))), OK, '', 4
    yield 'long string in args', trace('{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"s":"%s"}},%s' % (
        's' * (16 << 20), kernels(3))), OK, '', 4
    yield 'event beyond all bounds', trace('{"ph":"X","name":"n","args":{"s":"%s"}},%s' % (
        's' * (100 << 20), kernels(3))), LOSSY, 'could not be read', 3
    yield 'long member', trace(kernels(3), '"x":[%s],' % ','.join(['"abc"'] * (8 << 20))), OK, '', 3
    yield 'deep args', deep(100000), OK, '', 3
    yield 'deep member', trace(kernels(3), '"x":%s%s,' % ('{"a":' * 100000, '1' + '}' * 100000)), OK, '', 3
    yield 'unclosed objects', unclosed(500000), LOSSY, CUT, None
    yield 'broken strings', broken_strings(100000), OK, 'repaired', 100000
    yield 'endless repairs', endless_repairs(500000), LOSSY, 'could not be read', None
    yield 'quotes alone', b'{"traceEvents":[' + b'"' * (8 << 20), LOSSY, CUT, None
    yield 'backslashes', b'{"traceEvents":["' + b'\\' * (8 << 20), LOSSY, CUT, None
    yield 'numbers', trace(','.join('{"ph":"X","cat":"kernel","name":"k","pid":0,"ts":%s,"dur":1}' % number
                                    for number in ('1e400', '-1e400', '1e-400', '007', '1.5e3', '-0',
                                                   '123456789012345678901234567890'))), OK, '', 7
    yield 'numbers that are none', trace(','.join(
        '{"ph":"X","cat":"kernel","name":"k","pid":0,"ts":1,"dur":%s}' % word
        for word in ('NaN', 'Infinity', '-Infinity', 'inf', 'N/A', '"100a"', 'null', '[]', '{}')) +
        ',' + kernels(2)), LOSSY, '9 events have no time', 2
    yield 'negative time of old Kineto', trace(
        '{"ph":"X","cat":"kernel","name":"k","pid":0,"ts":-1.-23,"dur":1}'), OK, '', 1
    yield 'elements that are no events', trace('1,"a",null,[],[[{}]],{},true,' + kernels(3)), LOSSY, \
        'could not be read', 3
    yield 'missing quote before a key', trace(
        '{"ph":"X","cat":"kernel",name":"k","pid":0,"ts":1,"dur":1},' + kernels(2)), OK, 'repaired', 3
    yield 'raw control characters', trace(KERNEL.replace('"k"', '"a\x01\tb"') % 1), OK, 'repaired', 1
    yield 'bad UTF-8', trace(KERNEL.replace('"k"', '"\xff\xc3("') % 1).replace('\xff\xc3'.encode(), b'\xff\xc3'), \
        OK, '', 1
    yield 'commas too many', trace(',,' + KERNEL.replace('"args":{', '"args":{,') % 1 + ',,'), OK, '', 1
    yield 'times in quotes', trace(KERNEL.replace('%d', '"%d"').replace('1.5', '"1.5"') % 1), OK, '', 1
    yield 'large integers', trace(KERNEL.replace('"stream":7', '"Comms Id":18446744073709551616,"x":-9223372036854775809')
                                  % 1), OK, '', 1
    yield 'integer of 5,000 digits', trace(KERNEL.replace('"stream":7', '"x":' + '9' * 5000) % 1), OK, '', 1
    yield 'a week and more', trace(KERNEL.replace('1.5', '7e11') % 1), OK, '', 1
    yield 'every phase', trace(','.join('{"ph":"%s","name":"n","cat":"c","id":1,"pid":1,"tid":1,"ts":1}' % phase
                                        for phase in 'BEbneiICMstfPNOD') + ',' + kernels(2)), OK, '', 2
    yield 'pids and tids of all kinds', trace(','.join(
        '{"ph":"X","cat":"kernel","name":"k","pid":%s,"tid":%s,"ts":1,"dur":1}' % pair for pair in (
            ('"Spans"', '"PyTorch Profiler"'), ('""', '"stream 7"'), ('-1', '0'), ('0', '-5'),
            ('1e3', '99999999999999999999'), ('null', '[]')))), OK, '', 6
    yield 'nesting of 500', deep(500), OK, '', 3
    yield 'invalid long args', trace('{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"s":"%s"}},%s' % (
        '\xff' * (8 << 20), kernels(3))).replace('\xff'.encode(), b'\xff'), OK, '', 4
    yield 'bad escapes', trace(KERNEL.replace('"k"', r'"C:\User\x \u12 \ud800 k"') % 1), OK, '', 1
    yield 'hole', good[:2000] + bytes(4096) + good[2050:], LOSSY, 'could not be read', None
    yield 'JAX', b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[' \
        b'{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},' \
        b'{"ph":"X","pid":1,"tid":1,"ts":1.5,"dur":1e-06,"name":"fusion","args":{"x":"1"}},{}]}', OK, '', 0
    yield 'events with parts missing', trace(','.join((
        '{"ph":"X","ts":1,"dur":1}', '{"ph":"X","cat":"kernel","ts":1,"dur":1}',
        '{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":null}',
        '{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":"x"}', '{"name":"k","ts":1}'))), OK, '', 3
    yield 'ends of flows alone', trace('{"ph":"f","id":1,"pid":1,"tid":1,"ts":1,"cat":"ac2g","name":"ac2g","bp":"e"},' +
                                       kernels(2)), OK, '', 2
    yield 'backwards and overlapping', trace(','.join(
        KERNEL.replace('1.5', '100') % i for i in range(50, 0, -1))), OK, '', 50
    yield 'strings in args', trace(KERNEL.replace('"stream":7', '"stream":"7","bytes":"x","grid":"[1,2"') % 1), OK, '', 1
    yield 'Python parent null', trace(
        '{"ph":"X","cat":"python_function","name":"f","pid":0,"tid":0,"ts":1,"dur":1,'
        '"args":{"Python id":1,"Python parent id":null}},' + kernels(1)), OK, '', 1
    yield 'another order of keys', b'{"traceEvents":[{"args":{"stream":7,"device":0},"dur":1.5,"tid":7,"pid":0,' \
        b'"name":"k","cat":"kernel","ts":1,"ph":"X"}],"schemaVersion":1}', OK, '', 1
    yield 'traceEvents null', b'{"schemaVersion":1,"traceEvents":null}', REFUSED, 'traceEvents is no array', None
    yield 'traceEvents twice', b'{"traceEvents":[%s],"traceEvents":[%s]}' % (
        kernels(2).encode(), kernels(3).encode()), OK, 'more than once', 5
    yield 'no events', b'{"traceEvents":[]}', OK, '', 0
    yield 'JSON without events', b'{"nodes":[]}', REFUSED, 'without traceEvents', None
    yield 'array of numbers', b'[1,2,3]', REFUSED, 'array without events', None
    yield 'empty', b'', REFUSED, 'empty file', None
    yield 'blanks', b' \r\n\t' * 1000, REFUSED, 'empty file', None
    yield 'zip', b'PK\x03\x04' + bytes(100), REFUSED, 'zip archive', None
    yield 'tar', tar('trace.json', good), REFUSED, 'tar archive', None
    yield 'tar.gz', gzip.compress(tar('trace.json', good)), REFUSED, 'tar archive', None
    yield 'zeros', bytes(1 << 20), REFUSED, 'binary data', None
    yield 'zlib stream', zlib.compress(good), REFUSED, 'zlib stream', None
    yield 'gzip twice', gzip.compress(packed), REFUSED, 'gzip inside gzip', None
    yield 'LFS pointer', b'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n', REFUSED, \
        'LFS pointer', None
    yield 'protobuf', b'\x0a\x12\x0a\x05/host\x12\x09\x08\x01\x12\x05Steps' * 9, REFUSED, 'binary data', None
    yield 'pickle', b'\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94.', REFUSED, 'pickle', None
    yield 'UTF-16 with BOM', '\ufeff{"traceEvents":[]}'.encode('utf-16-le'), REFUSED, 'UTF-16', None
    yield 'wrong checksum', packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:], LOSSY, 'checksum', 100
    yield 'wrong length', packed[:-4] + struct.pack('<I', 1), LOSSY, 'checksum', 100
    yield 'cut gzip', packed[:-20], LOSSY, CUT, None
    yield 'gzip and junk', packed + b'junk', OK, 'ignored', 100
    yield 'junk between members', packed + b'junk' + packed, OK, 'ignored', 100
    yield 'escapes in names', trace(KERNEL.replace('"k"', '"\x1b[31mred\x9b2J\\u001b]0;x\\u0007"') % 1), OK, '', 1


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))


seconds = []  # of CPU, with what used them


def timed(argv, what):
    """What ran; None when it did not end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S,
                              preexec_fn=limits)
    except subprocess.TimeoutExpired:
        return None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds.append((used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime, what))
    return done


def no_constant(word):
    raise ValueError(f'the constant {word}')


def repair_problem(gtrace, name, path, status, count=None):
    """gtrace check --repair of the same file."""
    out = path + '.repaired.json'
    done = timed([gtrace, 'check', '--repair', out, path], f'check --repair, {name}')
    if not done:
        return f'check: no end after {TIMEOUT_S} s'
    said = done.stderr.decode()
    if done.returncode != status:
        return f'check: exit status {done.returncode}, not {status}: {said!r} {done.stdout[-300:]!r}'
    if status == REFUSED:
        if done.stdout or said.count('\n') != 1 or os.path.exists(out):
            return f'check: refused with {said!r}'
        return None
    with open(out, 'rb') as file:
        content = file.read()
    os.unlink(out)
    try:
        loaded = json.loads(content, parse_constant=no_constant)['traceEvents']
    except (ValueError, KeyError, RecursionError) as error:
        return f'repaired, but {error}'
    got = sum(event.get('ph') == 'X' and event.get('cat') == 'kernel' and
              isinstance(event.get('dur'), (int, float, str)) and event['dur'] != '100a' for event in loaded)
    if count is not None and got != count:
        return f'repaired: {got} kernels, not {count}'
    if re.search('[\x00-\x09\x0b-\x1f\x7f-\x9f]', said + done.stdout.decode()):
        return 'check: control characters in the output'
    return None


def cut_problem(gtrace, name, path, status, count=None):
    """gtrace cut of the same file: its kernels, or the refusal of a trace without any."""
    out = path + '.cut.json'
    done = timed([gtrace, 'cut', '--category', 'kernel', '-o', out, path], f'cut, {name}')
    if not done:
        return f'cut: no end after {TIMEOUT_S} s'
    if status != REFUSED and b"it has no event of category 'kernel'" in done.stderr:
        summary = timed([gtrace, 'summary', '--format', 'json', path], f'summary, {name}')
        if not summary:
            return f'summary: no end after {TIMEOUT_S} s'
        if count or json.loads(summary.stdout)['files'][0]['kernels']:
            return 'cut: it says that there are no kernels'
        return None if done.returncode == REFUSED else f'cut: exit status {done.returncode}'
    if done.returncode not in ((REFUSED,) if status == REFUSED else (OK, LOSSY)):
        return f'cut: exit status {done.returncode}: {done.stderr.decode()!r}'
    if status == REFUSED:
        return 'cut: refused, but written' if os.path.exists(out) else None
    with open(out, 'rb') as file:
        content = file.read()
    os.unlink(out)
    try:
        kept = json.loads(content, parse_constant=no_constant)['traceEvents']
    except (ValueError, KeyError, RecursionError) as error:
        return f'cut, but {error}'
    if count is not None and sum(event.get('cat') == 'kernel' for event in kept) < count:
        return f'cut: {len(kept)} events, not {count}'
    return None


def problem(gtrace, name, path, status, words, count=None):
    done = timed([gtrace, 'summary', '--format=json', path], f'summary, {name}')
    if not done:
        return f'no end after {TIMEOUT_S} s'
    said = done.stderr.decode()
    if done.returncode != status:
        return f'exit status {done.returncode}, not {status}: {said!r}'
    if words not in said:
        return f'said {said!r}, not {words!r}'
    if status == REFUSED and (done.stdout or said.count('\n') != 1):
        return f'refused with {said!r}'
    if re.search('[\x00-\x09\x0b-\x1f\x7f-\x9f]', said + done.stdout.decode()):
        return 'control characters in the output'
    if count is not None:
        kernels = json.loads(done.stdout)['files'][0]['kernels']
        if sum(row['calls'] for row in kernels) != count:
            return f'{sum(row["calls"] for row in kernels)} kernels, not {count}'
    return None


def main():
    gtrace = f'{sys.argv[1]}/gtrace'
    folder = os.path.join(os.environ.get('GTRACE_CORPUS', '../shared'), 'data', 'hostile')
    failed = 0

    def report(name, why):
        nonlocal failed
        failed += bool(why)
        print(f'{"not ok" if why else "ok"} - hostile: {name}')
        if why:
            print(f'# {why}')

    with tempfile.TemporaryDirectory() as scratch:
        for name, content, status, words, count in generated():
            path = os.path.join(scratch, 'input')
            with open(path, 'wb') as file:
                file.write(content)
            sound = LOSSY if status == OK and name in UNSOUND else status
            report(name, problem(gtrace, name, path, status, words, count) or
                   repair_problem(gtrace, name, path, sound, count) or
                   cut_problem(gtrace, name, path, status, count))
    if not glob.glob(f'{folder}/*'):
        print(f'ok - hostile: files of the corpus # SKIP no files in {folder} (GTRACE_CORPUS)')
    for path in sorted(glob.glob(f'{folder}/*')):
        name = os.path.basename(path)
        if name in CORPUS:
            with tempfile.TemporaryDirectory() as scratch:
                link = os.path.join(scratch, 'input')
                os.symlink(os.path.abspath(path), link)
                status = CORPUS[name][0]
                sound = LOSSY if status == OK and name in UNSOUND else status
                report(name, problem(gtrace, name, path, *CORPUS[name]) or
                       repair_problem(gtrace, name, link, sound) or
                       cut_problem(gtrace, name, link, status))
    print('# slowest: ' + '; '.join(f'{what} {cpu:.2f} s' for cpu, what in sorted(seconds)[:-6:-1]))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
