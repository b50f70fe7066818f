#!/usr/bin/env python3
"""Makes docs/performance.md, its tables and its plot, from the measurements of bench/compare.py.

    python3 bench/report.py [--plot FILE.svg] [--notes bench/notes.md] RESULTS.jsonl... > docs/performance.md

RESULTS.jsonl: the output of compare.py --json or --out, any number of files, of each peer (Debian's torch, the newest,
compiled) and of each machine. Each machine (a GPU, or a processor with its number of threads) has a section of the
page; of several results for a row the one with the fastest peer is used. Notes are paragraphs for single sections: a
Markdown file with headings "## HEADING", or "## HEADING, DEVICE" for a machine with a GPU. The plot needs gnuplot;
additional machines have their own plots next to it.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import textwrap

# Heading, prefixes of names, what bounds the work: "flops", "bytes", or neither.
SECTIONS = (
    ('Programs', ('matmul', 'linear_regression', 'cnn_step', 'mnist_epoch'), None),
    ('Networks', ('mlp', 'lenet', 'resnet18', 'resnet50', 'mobilenetv2', 'gpt', 'vit', 'lstm', 'gru'), 'flops'),
    ('Matrix products', ('gemm/',), 'flops'),
    ('Bfloat16', ('bf16/',), 'flops'),
    ('Convolution', ('conv/', 'conv1d/', 'conv3d/', 'conv_transpose1d/', 'conv_transpose3d/'), 'flops'),
    ('Pooling', ('pool/',), 'bytes'),
    ('Elementwise', ('elementwise/', 'dropout'), 'bytes'),
    ('Fusion', ('fusion/',), 'bytes'),
    ('Reductions', ('reduce/',), 'bytes'),
    ('Float16', ('half/',), 'bytes'),
    ('Indices', ('gather/', 'embedding/'), 'bytes'),
    ('Sorting and scans', ('sort/',), 'bytes'),
    ('Random numbers', ('random/',), None),
    ('Attention', ('attention/',), 'flops'),
    ('Softmax', ('softmax/', 'log_softmax/'), 'bytes'),
    ('Normalisation', ('batch_norm/', 'layer_norm/', 'group_norm/', 'rms_norm/'), 'bytes'),
    ('Images', ('vision/',), 'bytes'),
    ('Transposition, other orders', ('transpose/', 'move/'), 'bytes'),
    ('Start', ('startup/',), None),
)
COLUMNS = {'flops': 'Koine, GFLOP/s (of the peak)', 'bytes': 'Koine, GB/s (of a copy)'}
DESCRIPTIONS = {
    'Programs': 'The example programs: 10000×200 @ 200×10000; a step of linear regression (10⁶ samples, Adam); a '
                'training step of the CNN (batch 128); an epoch of Fashion-MNIST with its loader. replayed: the '
                'recorded step.',
    'Networks': 'One training step: forward, cross entropy, backward, optimizer; replayed: the recorded step; '
                'autocast: forward pass and loss under autocast in bfloat16; inference: the forward pass alone, in '
                'evaluation mode without gradients; gpu: GPU batch sizes. The '
                'operation counts are those of the products, three per layer and step.',
    'Matrix products': 'rows×columns×inner; f32 unless marked; nt, tn, tt: the second, the first or both operands are '
                       'transposed views; batched: count×rows×columns×inner.',
    'Bfloat16': 'Matrix products and convolutions of bfloat16, as under autocast; results in bfloat16, sums in '
                'float32. The peak is that of float32.',
    'Convolution': 'images,channels,height,width-outputs,kernel; s: stride, p: padding unless it is half the kernel, '
                   'g: groups. f32 unless marked.',
    'Pooling': 'images×channels×height×width; max_3s2: 3×3 windows with stride 2, max_2: 2×2, mean: over each image.',
    'Elementwise': 'small: 2¹⁸ elements, large: 2²⁴, gpu: 2²⁶. Each operation of a chain is counted separately in '
                   'bytes.',
    'Fusion': 'Chains recorded as a graph against torch.compile: GELU written out as eight operations; dropout, a '
              'residual sum and layer normalisation. small: 256×1024, large: 4096×1024; step: forward and backward. '
              'Bytes: the inputs, the result and the gradients once.',
    'Reductions': 'small: 512×512, large: 4096×4096, gpu: 8192×8192.',
    'Float16': 'In memory, computed in float32: 2²² elements.',
    'Indices': 'rows, columns: an index for each element of a 1000×1000 matrix; index_select, index_add and '
               'embeddings: rows×columns of the table, indices.',
    'Random numbers': '2²⁰ numbers; multinomial: 64 rows of 1000 weights, 20 indices each without replacement (few) '
                      'and 100 with it; one index of 32000.',
    'Start': 'From the start of a process to the end of its first training step (CNN, batch 128): cold, without any '
             'compiled kernels, and warm.',
}


LIMITS = ('gflops_f32', 'gflops_f64', 'gbytes_per_s')


class Malformed(Exception):
    """A results file with invalid content."""


class Machine:
    """A machine: its "machine" lines, and for each benchmark the row of the fastest peer, in the first file's order."""

    def __init__(self):
        self.lines, self.best = [], {}

    def add(self, row):
        if row['name'] not in self.best or row['peer_s'] < self.best[row['name']]['peer_s']:
            self.best[row['name']] = row

    @property
    def line(self):
        """The first line, with the best of the measured limits: another program may have disturbed a measurement."""
        best = {key: max(line.get(key) or 0 for line in self.lines) for key in LIMITS} if self.lines else {}
        return {**self.lines[0], **best} if self.lines else {}

    @property
    def gpu(self):
        """The GPU's name, or None."""
        return self.line.get('device') if self.line.get('device_type', 'cpu') != 'cpu' else None

    @property
    def heading(self):
        return f"{self.gpu} ({self.line['platform']}, driver {self.line['driver']})" if self.gpu else \
            f"{self.line.get('processor', 'this machine')}, {self.line['threads']} threads"

    @property
    def peers(self):
        return list(dict.fromkeys(line['peer'] for line in self.lines)) or \
            sorted({row['peer'] for row in self.best.values()})

    @staticmethod
    def key_of(line):
        """Identifies the machine of a result."""
        return line['device'] if line.get('device_type', 'cpu') != 'cpu' else (line.get('processor'), line['threads'])


def read(paths):
    """The machines in these files."""
    machines = {}
    for path in paths:
        key = None
        with open(path) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                    if row['name'] == 'machine':
                        key = Machine.key_of(row)
                        machines.setdefault(key, Machine()).lines.append({'peer': row['peer'], **row})
                        continue
                    candidate = dict(row, koine_s=float(row['koine_s']), peer_s=float(row['peer_s']),
                                     peer=row.get('peer', 'torch'))
                except (ValueError, KeyError, TypeError) as error:
                    raise Malformed(f'{path}:{number}: not a line of compare.py --json '
                                    f'({type(error).__name__}: {error})') from None
                candidate['ratio'] = candidate['koine_s'] / candidate['peer_s']
                machines.setdefault(key, Machine()).add(candidate)
    return [machine for machine in machines.values() if machine.best]


def read_notes(path):
    notes, heading = {}, None
    if path and os.path.exists(path):
        with open(path) as file:
            for line in file:
                if line.startswith('## '):
                    heading = line[3:].strip()
                    notes[heading] = ''
                elif heading:
                    notes[heading] += line
    return {heading: text.strip() for heading, text in notes.items()}


def belongs(name, prefixes):
    name = name[len('gpu/'):] if name.startswith('gpu/') else name
    for ending in ('/replayed', '/inference', '/autocast'):
        name = name[:-len(ending)] if name.endswith(ending) else name
    return any(name.startswith(prefix) if prefix.endswith('/') else name == prefix for prefix in prefixes)


def geometric_mean(ratios):
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))


def seconds(value):
    for unit, scale in (('s', 1), ('ms', 1e-3), ('µs', 1e-6)):
        if value >= scale:
            return f'{value / scale:.3g} {unit}' if value / scale < 999.5 else f'{value / scale:.0f} {unit}'
    return f'{value / 1e-6:.2g} µs'


def reached(row, bound, machine):
    """Koine's GFLOP/s or GB/s, and the share of the machine's measured limit."""
    work = row.get(bound) or 0
    if not work:
        return ''
    rate = work / row['koine_s'] * 1e-9
    if row.get('dtype') == 'float16' or row['name'].endswith('/tf32'):  # their peak is not measured
        return f'{rate:.3g}'
    flops = 'gflops_f64' if row.get('dtype') == 'float64' else 'gflops_f32'
    limit = machine.get('gbytes_per_s' if bound == 'bytes' else flops)
    return f'{rate:.3g} ({rate / limit:.0%})' if limit else f'{rate:.3g}'


def table(rows, bound, machine, several_peers):
    columns = ['benchmark', 'Koine', 'peer', 'ratio', 'first call: Koine', 'peer']
    columns += [COLUMNS[bound]] if bound else []
    columns += ['fastest peer'] if several_peers else []
    lines = ['| ' + ' | '.join(columns) + ' |', '| ' + ' | '.join(['---'] * len(columns)) + ' |']
    for row in rows:
        first = [seconds(row[key]) if key in row else '' for key in ('koine_first_s', 'peer_first_s')]
        cells = [f"`{row['name']}`", seconds(row['koine_s']), seconds(row['peer_s']), f"**{row['ratio']:.2f}**", *first]
        cells += [reached(row, bound, machine)] if bound else []
        cells += [row['peer']] if several_peers else []
        lines.append('| ' + ' | '.join(cells) + ' |')
    return lines


class Anchors:
    """The anchors of headings: the second of the same text ends in -1."""

    def __init__(self):
        self.count = {}

    def of(self, heading):
        slug = re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')
        self.count[slug] = self.count.get(slug, -1) + 1
        return f'{slug}-{self.count[slug]}' if self.count[slug] else slug


def summary(sections, anchors):
    lines = ['| | benchmarks | geometric mean | best | worst |', '| --- | --- | --- | --- | --- |']
    for heading, _, rows in sections:
        ratios = [row['ratio'] for row in rows]
        worst = max(rows, key=lambda row: row['ratio'])
        lines.append(f"| [{heading}](#{anchors.of(heading)}) | {len(rows)} | **{geometric_mean(ratios):.2f}** | "
                     f"{min(ratios):.2f} | {worst['ratio']:.2f} `{worst['name']}` |")
    return lines


METHOD = """\
Ratios are Koine's time divided by the peer's, measured alternately in the same run: below 1 Koine is faster. Absolute
times depend on the machine they were measured on.

```sh
sh tests/run.sh                                                     # builds
python3 -m venv ~/torch && ~/torch/bin/pip install torch numpy      # the newest PyTorch
apt-get install python3-torch libopenblas0-pthread gnuplot-nox      # Debian's, on OpenBLAS
sh bench/performance.sh ~/torch/bin/python3 /usr/bin/python3        # about 40 minutes; makes this page
python3 bench/compare.py --python ~/torch/bin/python3 --only conv/  # one group
sh bench/performance.sh --peer-device cuda ~/torch/bin/python3      # on a machine with an NVIDIA GPU: its section
PYTHONPATH=build/python-package ~/torch/bin/python3 bench/sweep.py  # other dtypes and layouts: where PyTorch is faster
PYTHONPATH=build/python-package ~/torch/bin/python3 bench/models.py # architectures in Python, the same code for both
PYTHONPATH=build/python-package ~/torch/bin/python3 bench/programs.py # optimizers, loaders, indices, vmap
```

Both sides are separate processes on the same cores with the same number of threads. Each benchmark starts from the same
values on both sides, and the result of its first repetition is compared with the peer's before anything is timed:
outputs and gradients to 10⁻⁴ of the largest magnitude (f64: 10⁻¹⁰); for networks the output (10⁻³), the loss (10⁻⁴)
and the loss after the step (5·10⁻³). First calls compile and plan; they have their own columns. Then the two take
turns. A turn is a burst of about 0.25 s of consecutive runs, as in a program's loop (Koine's calls enqueue, with one
wait for the device after the last; PyTorch's return when they are done), followed by a pause in which the peer's
spinning threads go to sleep. The tables have the medians of the time per run. `build/bin/koine-bench --only conv/`
measures Koine alone, one JSON object per line, with the share of the measured peak.

On a GPU PyTorch runs on CUDA (`--peer-device cuda`), where calls are asynchronous on both sides: a burst is 0.1 s of
runs, with one wait for the device after the last. Benchmarks called `gpu/...` have GPU sizes: convolutions of 128
images (32 of those from 112×112 pixels on), 256 MiB for memory-bound operations. f32 means f32: TF32 is allowed on both
sides only in rows called `.../tf32` (tolerance 2·10⁻³, as for f16, which both sides sum in f32). cuDNN chooses its
algorithms from its tables (`eager`) or by timing them (`--peer-mode benchmark`). A row called `.../replayed` is a
step that was recorded once and is replayed: by `kn_graph` here, as a CUDA graph by PyTorch. On a CPU PyTorch has no
equivalent, and such a row is compared with its eager step. The loss after a replay is compared with the loss after
PyTorch's second step."""


def limits_of(line):
    units = (('gflops_f32', 'GFLOP/s f32'), ('gflops_f64', 'GFLOP/s f64'),
             ('gbytes_per_s', 'GB/s read and written by a plain copy'))
    return ', '.join(f'{line[key]:.0f} {unit}' for key, unit in units if line.get(key))


def part(machine, notes, plot, anchors):
    """The machine's lines of the page, and its sections."""
    rows, several = machine.best.values(), len(machine.peers) > 1
    sections = [(heading, bound, [row for row in rows if belongs(row['name'], prefixes)])
                for heading, prefixes, bound in SECTIONS]
    sections = [section for section in sections if section[2]]
    lines = []
    if machine.line:
        anchors.of(machine.heading)
        peers = f"Peers: {', '.join(machine.peers)}" + ('; each row is compared with the fastest.' if several else '.')
        limits = f'Limits of the machine, measured by `koine-bench`: {limits_of(machine.line)}.'
        lines += [f'## {machine.heading}', '', textwrap.fill(f'{peers} {limits}', 120), '']
    lines += summary(sections, anchors) + ['']
    if plot:
        lines += [f'![Ratio of the times of each benchmark, by group]({os.path.basename(plot)})', '']
    for heading, bound, members in sections:
        note = notes.get(f'{heading}, {machine.gpu}' if machine.gpu else heading)
        lines += [f'### {heading}', '']
        lines += [textwrap.fill(DESCRIPTIONS[heading], 120), ''] if heading in DESCRIPTIONS else []
        lines += table(members, bound, machine.line, several) + ['']
        lines += [note, ''] if note else []
    return lines, sections


def plot_of(plot, machine, index):
    """The first machine's plot has the given name; the others also have the machine's name in it."""
    if not plot or index == 0:
        return plot
    stem, ending = os.path.splitext(plot)
    return f"{stem}-{re.sub('[^a-z0-9]+', '-', (machine.gpu or machine.heading).lower()).strip('-')}{ending}"


def power_of_two(exponent):
    return f'1/{2 ** -exponent}' if exponent < 0 else str(2 ** exponent)


def quoted(text):
    """Quotes a string for gnuplot: in single quotes only the quote itself is special, and is doubled."""
    return "'" + ' '.join(text.split()).replace("'", "''") + "'"


def draw(path, machine, sections):
    """A bar per group, from 1 to its geometric mean, and a dot per benchmark, on a logarithmic scale."""
    ratios = [row['ratio'] for _, _, rows in sections for row in rows]
    low, high = math.floor(math.log2(min(ratios + [0.9]))), math.ceil(math.log2(max(ratios + [1.1])))
    means = [geometric_mean([row['ratio'] for row in rows]) for _, _, rows in sections]
    names = ', '.join(f"{quoted(f'{heading} ({len(rows)})')} {-i}" for i, (heading, _, rows) in enumerate(sections))
    ticks = ', '.join(f'"{power_of_two(n)}" {2.0 ** n}' for n in range(low, high + 1))
    script = [f"set terminal svg size 900,{130 + 38 * len(sections)} name 'Koine' dynamic background rgb 'white' "
              "font 'Helvetica,13'",
              f"set output {quoted(path + '.part')}",
              'set title ' + quoted(f"Koine's time divided by PyTorch's; {machine.heading}"),
              'set border 1 lc rgb "#555555"', 'set tics nomirror out textcolor rgb "#333333"', 'set logscale x 2',
              f'set xrange [{0.95 * 2.0 ** low}:{1.05 * 2.0 ** high}]', f'set xtics ({ticks})',
              f'set yrange [{0.6 - len(sections)}:0.9]', f'set ytics scale 0 ({names})',
              'set grid xtics lc rgb "#e4e4e4" lw 1', 'unset key', 'set style fill solid noborder', 'set rmargin 8',
              "set arrow from 1, graph 0 to 1, graph 1 nohead front lc rgb '#555555' lw 1",
              "set label 'faster than PyTorch' at 1, 0.68 right offset -0.7, 0 textcolor rgb '#3b6ea8'",
              "set label 'slower' at 1, 0.68 left offset 0.7, 0 textcolor rgb '#d1662a'",
              "set xlabel 'bars: geometric means of the groups (number of benchmarks); dots: single benchmarks'",
              "plot '-' using 1:2:3:4:($2-0.3):($2+0.3):5 with boxxyerror lc rgb variable, "
              "'-' with points pt 7 ps 0.35 lc rgb '#444444', "
              "'-' using 1:2:3 with labels left offset 0.7, 0 textcolor rgb '#222222'"]
    script += [f"1 {-i} {min(mean, 1):.6g} {max(mean, 1):.6g} {0xa9c4e4 if mean < 1 else 0xf0bd9d}"
               for i, mean in enumerate(means)] + ['e']
    for i, (_, _, rows) in enumerate(sections):
        for k, row in enumerate(sorted(rows, key=lambda row: row['ratio'])):
            script.append(f"{row['ratio']:.6g} {-i + 0.5 * (0.5 - (k + 0.5) / len(rows)):.4f}")
    script += ['e'] + [f'{2.0 ** high:.6g} {-i} "{mean:.2f}"' for i, mean in enumerate(means)] + ['e', '']
    try:
        subprocess.run(['gnuplot'], input='\n'.join(script), text=True, check=True, capture_output=True)
    except FileNotFoundError:
        sys.exit('report.py: gnuplot is not installed: apt-get install gnuplot-nox, or omit --plot')
    except subprocess.CalledProcessError as error:
        sys.exit(f'report.py: gnuplot failed: {error.stderr.strip()}')
    os.replace(path + '.part', path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('results', nargs='+', metavar='RESULTS.jsonl')
    parser.add_argument('--plot', help='write the plot to this file, next to the page')
    parser.add_argument('--notes', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'notes.md'))
    arguments = parser.parse_args()
    try:
        machines = read(arguments.results)
    except (Malformed, OSError) as error:
        sys.exit(f'report.py: {error}')
    if not machines:
        sys.exit('report.py: no benchmark in ' + ', '.join(arguments.results))
    lines, anchors, notes = ['# Performance', '', METHOD, ''], Anchors(), read_notes(arguments.notes)
    for index, machine in enumerate(machines):
        plot = plot_of(arguments.plot, machine, index)
        own, sections = part(machine, notes, plot, anchors)
        lines += own
        if plot:
            draw(plot, machine, sections)
    print('\n'.join(lines), end='')


if __name__ == '__main__':
    main()
