#!/usr/bin/env python3
"""Seeds for the fuzz targets that read traces, out of real ones: of each trace its head, its end and
one event of each kind, in the bytes of the file; and compressed files as they are.

Usage: tests/fuzz/seeds.py OUT [FOLDER]. FOLDER is $GTRACE_CORPUS/data (../shared); without it
nothing is made. Seeds go to OUT/text and OUT/gz; those that are there already are kept.
"""

import glob
import gzip
import json
import os
import sys
import zlib

END_MAX = 8192   # bytes of what stands before and behind the events
SEED_MAX = 65536


def plain(data):
    """The text of a file, as far as it can be had."""
    if not data.startswith(b'\x1f\x8b'):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        stream = zlib.decompressobj(31)
        try:
            return stream.decompress(data, 1 << 24)
        except zlib.error:
            return b''


def kind(event):
    """Events with equal kinds take the same ways through the reader."""
    if not isinstance(event, dict):
        return type(event).__name__
    args = event.get('args')
    types = tuple(sorted((key, type(value).__name__) for key, value in event.items()))
    return (event.get('cat'), event.get('ph'), types,
            tuple(sorted(args)) if isinstance(args, dict) else None)


def pick(text):
    """The trace with one event of each kind; its first bytes where it is not sane."""
    at = text.find('"traceEvents"')
    at = text.find('[', max(at, 0)) + 1
    head, chosen, decoder = text[:at], {}, json.JSONDecoder()
    try:
        while True:
            while text[at] in ' \t\r\n,':
                at += 1
            if text[at] == ']':
                break
            event, end = decoder.raw_decode(text, at)
            chosen.setdefault(kind(event), text[at:end])
            at = end
    except (ValueError, IndexError, RecursionError, TypeError):
        return text[:SEED_MAX]
    if not chosen or len(head) > END_MAX:
        return text[:SEED_MAX]
    return (head + ',\n'.join(chosen.values()) + text[at:at + END_MAX])[:SEED_MAX]


def main():
    out = sys.argv[1]
    folder = (sys.argv[2] if len(sys.argv) > 2 else
              os.path.join(os.environ.get('GTRACE_CORPUS', '../shared'), 'data'))
    for path in sorted(glob.glob(f'{folder}/*/*')):
        name = f'{os.path.basename(os.path.dirname(path))}-{os.path.basename(path)}'[:200]
        if os.path.exists(f'{out}/text/{name}') or not os.path.isfile(path):
            continue
        os.makedirs(f'{out}/text', exist_ok=True)
        os.makedirs(f'{out}/gz', exist_ok=True)
        with open(path, 'rb') as file:
            data = file.read()
        if data.startswith(b'\x1f\x8b') and len(data) <= SEED_MAX:
            with open(f'{out}/gz/{name}', 'wb') as file:
                file.write(data)
        # Bytes that are no UTF-8 stay what they are.
        seed = pick(plain(data).decode('utf-8', 'surrogateescape'))
        with open(f'{out}/text/{name}', 'wb') as file:
            file.write(seed.encode('utf-8', 'surrogateescape'))


if __name__ == '__main__':
    main()
