#!/usr/bin/env python3
"""Runs Koine's benchmarks and a peer's alternately, and prints both times and their ratio.

    python3 bench/compare.py [--peer torch|koine] [--peer-bench PATH] [--python PATH]
                             [--peer-mode eager|compile|benchmark] [--peer-device cpu|cuda|xpu] [--only PREFIX]...
                             [--json] [--check] [--out FILE] [--device D] [--repetitions N] [--threads N]

Koine's side is `koine-bench --serve`, the peer's is `bench/peer_torch.py`, run by the Python that --python names (any
with torch; default: this one). Both are separate processes that wait for requests, on the same N cores with N threads
each. Each benchmark starts from the same values on both sides, which Koine draws and passes on in a file. The results
of the first repetition (outputs, gradients; for networks the output, the loss, and the loss after the step) are
compared: a benchmark whose results differ by more than the tolerance is not timed, and the exit status is 1. First
calls, which compile and plan, are reported separately (koine_first_s, peer_first_s: set-up of the operation and first
repetition). Then the two take turns, a turn being a burst of runs with one wait for the device at its end; the medians
of the time per run are compared. With --json: one JSON object per line; the first one, "machine", says what was
compared where. bench/report.py makes docs/performance.md from such lines. With --out FILE they are also appended to
that file, and benchmarks that it already has for this peer are skipped, so an interrupted run can be continued.

Benchmarks called gpu/... have GPU sizes and run against a peer on a GPU, or if --only names them. Those called
.../replayed are steps recorded once: as a graph in Koine, as a CUDA graph in PyTorch on CUDA; on a CPU, where PyTorch
has no equivalent, its eager step is used. On CUDA, f32 means f32: TF32 is allowed, on both sides, only in benchmarks
called .../tf32. --peer-mode benchmark lets cuDNN choose its algorithms by timing them.
"""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# For a peer on the CPU: OpenMP's and OpenBLAS's threads spin for a while after each of the peer's calls (OpenBLAS's for
# 2^28 ticks, 0.1 s); without a rest they would use the cores during Koine's next turn. A turn is a burst of runs, so
# that neither side is timed while its threads wake up.
class OnCpu:
    rest, rest_after_peer, burst = 0.05, 0.15, 0.25


# Another build of Koine does not spin.
class OnCpuAlike:
    rest, rest_after_peer, burst = 0.005, 0.005, 0.1


# With both sides on a GPU nothing spins; a burst makes the cost of the first launch and the wait at the end negligible.
class OnGpu:
    rest, rest_after_peer, burst = 0.005, 0.005, 0.1


class Failure(Exception):
    """A side answers with an error, or not at all."""


class Server:
    """A process that answers each line with a line."""

    def __init__(self, name, command, environment, cores):
        limit = (lambda: os.sched_setaffinity(0, cores)) if cores else None
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=environment, preexec_fn=limit)

    def ask_line(self, line):
        try:
            self.process.stdin.write(line + '\n')
        except BrokenPipeError:
            raise Failure(f'{self.name}: {line}: the process has ended') from None
        return self.answer(line)

    def answer(self, to):
        line = self.process.stdout.readline().strip()
        if not line:
            raise Failure(f'{self.name}: {to}: no answer')
        return line

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Koine(Server):
    """koine-bench --serve."""

    def __init__(self, path, device, environment, cores):
        self.path = path
        command = [path, '--serve'] + (['--device', device] if device else [])
        super().__init__('koine-bench', command, environment, cores)

    def cases(self, only, on_gpu):
        """Those whose names start with one of `only`, in its order; if it is empty, all sized for the device."""
        prefixes = [word for prefix in only or [] for word in ('--only', prefix)]
        command = [self.path, '--list', '--json'] + prefixes
        listed = subprocess.run(command, capture_output=True, text=True)
        if listed.returncode != 0:
            sys.exit(listed.stderr.strip() or f'{self.path} --list failed with exit code {listed.returncode}')
        cases = [json.loads(line) for line in listed.stdout.splitlines()]
        if not only:
            return [case for case in cases if on_gpu or not case['name'].startswith('gpu/')]
        named = {case['name']: case for prefix in only for case in cases if case['name'].startswith(prefix)}
        return list(named.values())

    def about(self):
        return json.loads(self.ask('about'))

    def ask(self, line):
        answer = self.ask_line(line)
        if answer.startswith('error'):
            raise Failure(f'koine-bench: {line}: {answer}')
        return answer

    def seconds(self, line):
        return float(self.ask(line))

    def run(self, count):
        return self.seconds(f'run {count}')

    def peak(self):
        f32, f64, copy = (float(word) for word in self.ask('peak').split())
        return {'gflops_f32': f32, 'gflops_f64': f64, 'gbytes_per_s': copy}


class Peer(Server):
    """peer_torch.py, or another program with the same protocol."""

    def __init__(self, python, program, mode, device, threads, environment, cores, bench=None):
        command = [python, program, '--mode', mode, '--threads', str(threads)]
        command += ['--device', device] if device else []
        command += ['--bench', bench] if bench else []
        super().__init__('the peer', command, environment, cores)
        self.about = self.read(self.answer('start'), 'start')
        self.on_gpu = self.about.get('device_type', 'cpu') != 'cpu'

    def read(self, line, to):
        answer = json.loads(line)
        if 'error' in answer:
            raise Failure(f"the peer: {to}: {answer['error']}")
        return answer

    def ask(self, do, **fields):
        return self.read(self.ask_line(json.dumps({'do': do, **fields})), do)

    def run(self, count):
        return self.ask('run', count=count)['seconds']


def burst_length(seconds, burst):
    """The number of runs in a burst: about `burst` seconds, at least one."""
    return max(1, min(1000, int(burst / max(seconds, 1e-6))))


def time_of_run(side):
    """The time of one run including the wait at its end, which benchmarks of host time do not count."""
    start = time.perf_counter()
    first = side.run(1)
    middle = time.perf_counter()
    return max(min(first, side.run(2)), min(middle - start, (time.perf_counter() - middle) / 2) / 2)


def check(koine, peer, folder):
    """Compares the first results of both sides. Returns the difference, or None if there is nothing to compare."""
    path = os.path.join(folder, 'results.safetensors')
    if koine.ask('results ' + path) == 'none':
        return None
    found = peer.ask('check', results=path)
    os.remove(path)
    if not found['difference'] <= found['tolerance']:
        raise Failure(f"results differ: {found['what']} by {found['difference']:.3g} of its largest magnitude, "
                      f"allowed {found['tolerance']:.3g}")
    return found['difference']


def take_turns(koine, peer, repetitions, limited):
    """The times per run of both sides, a list each. Limited benchmarks, which take seconds, run one at a time."""
    pace = OnGpu if peer.on_gpu else OnCpu if peer.about.get('spins', True) else OnCpuAlike
    ours_count = theirs_count = 1
    if not limited:
        ours_count, theirs_count = (burst_length(time_of_run(side), pace.burst) for side in (koine, peer))
    ours, theirs = [], []
    for _ in range(repetitions):
        time.sleep(pace.rest_after_peer)
        ours.append(koine.run(ours_count))
        time.sleep(pace.rest)
        theirs.append(peer.run(theirs_count))
    return ours, theirs


def compare(koine, peer, case, repetitions, folder, only_check=False):
    """The benchmark's row; None if the peer does not have this benchmark."""
    path = os.path.join(folder, 'inputs.safetensors')
    limited = case['most'] > 0
    ours_setup = koine.seconds('setup ' + case['name'])
    inputs = None if koine.ask('inputs ' + path) == 'none' else path
    setup = peer.ask('setup', case=case, inputs=inputs)
    if inputs:
        os.remove(inputs)
    if not setup['supported']:
        koine.ask('teardown')
        return None
    ours_first, theirs_first = koine.run(1), peer.run(1)
    apart = check(koine, peer, folder)
    if only_check:
        koine.ask('teardown')
        peer.ask('teardown')
        return {'name': case['name'], 'difference': apart}
    if case['most'] == 1:
        ours, theirs = [ours_first], [theirs_first]
    else:
        ours, theirs = take_turns(koine, peer, min(repetitions, case['most'] - 1) if limited else repetitions, limited)
    flops = float(koine.ask('flops'))
    memory = peer.ask('memory').get('bytes')
    memory = {} if memory is None else {'koine_bytes': int(koine.ask('memory')), 'peer_bytes': memory}
    koine.ask('teardown')
    peer.ask('teardown')
    a, b = statistics.median(ours), statistics.median(theirs)
    return {'name': case['name'], 'shape': case['shape'], 'dtype': case['dtype'], 'koine_s': a, 'peer_s': b,
            'ratio': a / b, 'koine_min_s': min(ours), 'peer_min_s': min(theirs),
            'koine_first_s': ours_setup + ours_first, 'peer_first_s': setup['seconds'] + theirs_first, 'flops': flops,
            'bytes': case['bytes'], 'difference': apart, 'repetitions': len(ours), **memory}


def processor():
    """The processor's name; one without a number, as hypervisors give, stands for many,
    so family and model are added."""
    try:
        with open('/proc/cpuinfo') as file:
            fields = dict((part.strip() for part in line.split(':', 1)) for line in file if ':' in line)
    except OSError:
        fields = {}
    name = fields.get('model name')
    if name and not re.search('[0-9]', name) and 'cpu family' in fields:
        name += f", family {fields['cpu family']}, model {fields.get('model')}"
    return name or platform.machine()


def print_row(row):
    if 'ratio' not in row:
        found = 'not comparable' if row['difference'] is None else f"differs by {row['difference']:.0e}"
        print(f"{row['name']:40s} {found}", flush=True)
        return
    apart = '' if row['difference'] is None else f"   results differ by {row['difference']:.0e}"
    memory = ''
    if 'koine_bytes' in row:
        memory = f"   memory {row['koine_bytes'] / 2**20:.0f} MiB, {row['peer_bytes'] / 2**20:.0f} MiB"
    print(f"{row['name']:40s} koine {row['koine_s'] * 1e3:10.3f} ms   peer {row['peer_s'] * 1e3:10.3f} ms"
          f"   ratio {row['ratio']:.2f}   first {row['koine_first_s']:.2f} s, {row['peer_first_s']:.2f} s"
          f"{memory}{apart}", flush=True)


def start(arguments):
    """Starts both sides, on the same cores with the same number of threads."""
    cores = sorted(os.sched_getaffinity(0))[:arguments.threads]
    count = str(len(cores))
    environment = dict(os.environ, POCL_MAX_PTHREAD_COUNT=count, POCL_CPU_MAX_CU_COUNT=count, OMP_NUM_THREADS=count,
                       MKL_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count)
    if not os.access(arguments.koine_bench, os.X_OK):
        raise Failure(f'{arguments.koine_bench} does not exist: build first (sh tests/run.sh)')
    program = arguments.peer_program or os.path.join(HERE, 'peer_%s.py' % arguments.peer)
    try:
        peer = Peer(arguments.python, program, arguments.peer_mode, arguments.peer_device, len(cores), environment,
                    cores, arguments.peer_bench)
    except (Failure, OSError) as error:
        raise Failure(f'{error}\n(the peer is run by {arguments.python}; it needs torch: apt-get install python3-torch '
                      'and --python /usr/bin/python3, or pip install torch in a virtual environment and --python '
                      'PATH/bin/python3)') from None
    return Koine(arguments.koine_bench, arguments.device, environment, cores), peer, len(cores)


def done_before(path, label):
    """The benchmarks that the file has for this peer. An incomplete last line of an interrupted run is removed."""
    names, whole = set(), 0
    if path and os.path.exists(path):
        with open(path, 'rb+') as file:
            for line in file:
                if not line.endswith(b'\n'):
                    break
                whole += len(line)
                row = json.loads(line)
                if row.get('peer') == label:
                    names.add(row['name'])
            file.truncate(whole)
    return names


def put_line(row, arguments):
    if arguments.json:
        print(json.dumps(row), flush=True)
    elif row['name'] != 'machine':
        print_row(row)
    if arguments.out:
        with open(arguments.out, 'a') as file:
            file.write(json.dumps(row) + '\n')


def folder_for_files():
    """GPU-sized inputs are files of up to a GB: keep them in memory if there is room."""
    try:
        space = os.statvfs('/dev/shm')
        return '/dev/shm' if space.f_bavail * space.f_frsize > 8 << 30 else None
    except OSError:
        return None


def run_all(arguments, koine, peer, threads):
    failures = 0
    label = ' '.join([peer.about['peer'], peer.about['version'], peer.about['mode']])
    before = done_before(arguments.out, label)
    cases = [case for case in koine.cases(arguments.only, peer.on_gpu)
             if case['name'] not in before and not (arguments.check and case['most'])]
    if not arguments.json:
        print(f'koine against {label}, {threads} threads each, medians of {arguments.repetitions}', flush=True)
    if 'machine' not in before:
        put_line({'name': 'machine', 'peer': label, 'threads': threads, 'processor': processor(), **koine.about(),
                  'peer_start_s': peer.about.get('start_s'), **koine.peak()}, arguments)
    with tempfile.TemporaryDirectory(prefix='koine-compare-', dir=folder_for_files()) as folder:
        for case in cases:
            try:
                row = compare(koine, peer, case, arguments.repetitions, folder, arguments.check)
            except Failure as failure:
                print(f"compare.py: {case['name']}: {failure}", file=sys.stderr, flush=True)
                failures += 1
                if koine.process.poll() is not None or peer.process.poll() is not None:
                    raise
                continue
            if row is not None:
                row['peer'] = label
                put_line(row, arguments)
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--peer', default='torch', choices=['torch', 'koine'],
                        help='koine: another build of this library, --peer-bench')
    parser.add_argument('--python', default=sys.executable, help='the Python that runs the peer')
    parser.add_argument('--peer-mode', default='eager', choices=['eager', 'compile', 'benchmark'],
                        help='compile: torch.compile, whole networks only; benchmark: torch.backends.cudnn.benchmark')
    parser.add_argument('--peer-device', help="the peer's: cpu (the default), cuda, ...")
    parser.add_argument('--peer-bench', metavar='PATH', help="the koine-bench of another build, for --peer koine")
    parser.add_argument('--peer-program', help="the peer's program; default: bench/peer_torch.py")
    parser.add_argument('--only', action='append', metavar='PREFIX',
                        help='benchmarks with this prefix; may be repeated')
    parser.add_argument('--json', action='store_true', help='one JSON object per line')
    parser.add_argument('--check', action='store_true', help='compare the results without timing')
    parser.add_argument('--out', metavar='FILE', help='also append the rows here, and skip those it already has')
    parser.add_argument('--device', help="Koine's device; default auto")
    parser.add_argument('--repetitions', type=int, default=15)
    parser.add_argument('--threads', type=int, default=os.cpu_count(), help='cores and threads of each side')
    parser.add_argument('--koine-bench', default=os.path.join(HERE, '..', 'build', 'bin', 'koine-bench'))
    arguments = parser.parse_args()
    if (arguments.peer == 'koine') != bool(arguments.peer_bench):
        parser.error('--peer koine and --peer-bench PATH go together')
    try:
        koine, peer, threads = start(arguments)
        status = run_all(arguments, koine, peer, threads)
    except Failure as failure:
        sys.exit(f'compare.py: {failure}')
    koine.close()
    peer.close()
    sys.exit(status)


if __name__ == '__main__':
    main()
