#!/usr/bin/env python3
"""Another build of Koine as the peer of bench/compare.py: shows what a change made faster or slower.

    python3 bench/compare.py --peer koine --peer-bench OTHER/build/bin/koine-bench

It has the protocol of peer_torch.py and forwards each request to the other koine-bench. Both draw their values from
the same seed; results are compared bit by bit, and differences are reported relative to the largest magnitude.
"""
import argparse
import array
import json
import os
import subprocess
import sys
import tempfile

TOLERANCE = 1e-3
FORMATS = {'F32': 'f', 'F64': 'd', 'I64': 'q', 'I32': 'i', 'U8': 'B', 'BOOL': 'B', 'F16': 'H'}


class Bench:
    """koine-bench --serve."""

    def __init__(self, path, device):
        self.path = path
        command = [path, '--serve'] + (['--device', device] if device else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        listed = subprocess.run([path, '--list', '--only', ''], capture_output=True, text=True, check=True).stdout
        self.names = set(listed.split())

    def ask(self, line):
        self.process.stdin.write(line + '\n')
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith('error'):
            raise RuntimeError(f'{line}: {answer or "no answer"}')
        return answer


def read_tensors(path):
    with open(path, 'rb') as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), 'little')))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != '__metadata__':
            begin, end = entry['data_offsets']
            tensors[name] = array.array(FORMATS[entry['dtype']], data[begin:end])
    return tensors


def difference(ours, theirs):
    """The largest difference, relative to the tensor's largest magnitude, and the tensor's name."""
    worst, what = 0.0, 'nothing'
    for name, a in ours.items():
        b = theirs.get(name)
        if b is None or len(a) != len(b):
            return float('inf'), name
        if a.tobytes() == b.tobytes():
            continue
        scale = max((abs(x) for x in a if x == x), default=0) or 1
        apart = max(abs(x - y) if x == x and y == y else float(x == x or y == y) for x, y in zip(a, b)) / scale
        if apart > worst:
            worst, what = apart, name
    return worst, what


def answer_to(bench, request):
    do = request['do']
    if do == 'setup':
        if request['case']['name'] not in bench.names:
            return {'supported': False, 'seconds': 0}
        seconds = float(bench.ask('setup ' + request['case']['name']))
        if request['inputs']:  # it has the same inputs; the request makes it keep the results of the first run
            with tempfile.TemporaryDirectory(prefix='koine-peer-') as folder:
                bench.ask('inputs ' + os.path.join(folder, 'inputs.safetensors'))
        return {'supported': True, 'seconds': seconds}
    if do == 'run':
        return {'seconds': float(bench.ask(f"run {request['count']}"))}
    if do == 'check':
        with tempfile.TemporaryDirectory(prefix='koine-peer-') as folder:
            path = os.path.join(folder, 'results.safetensors')
            bench.ask('results ' + path)
            apart, what = difference(read_tensors(request['results']), read_tensors(path))
        return {'difference': apart, 'tolerance': TOLERANCE, 'what': what}
    bench.ask('teardown')
    return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bench', required=True, metavar='PATH', help="the other build's koine-bench")
    parser.add_argument('--device')
    parser.add_argument('--mode')
    parser.add_argument('--threads')
    arguments = parser.parse_args()
    try:
        bench = Bench(arguments.bench, arguments.device)
        about = json.loads(bench.ask('about'))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        print(json.dumps({'error': f'{arguments.bench}: {error}'}), flush=True)
        return
    print(json.dumps({'peer': 'koine', 'version': about.get('version', arguments.bench), 'mode': 'other build',
                      'start_s': 0, 'spins': False}), flush=True)
    for line in sys.stdin:
        try:
            answer = answer_to(bench, json.loads(line))
        except Exception as error:
            answer = {'error': f'{type(error).__name__}: {error}'}
        print(json.dumps(answer), flush=True)


if __name__ == '__main__':
    main()
