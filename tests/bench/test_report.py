"""bench/report.py on made-up results: test_report.py SOURCE_DIR."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv[1]


def row(name, koine, peer, label, **more):
    return {'name': name, 'shape': '', 'dtype': 'float32', 'koine_s': koine, 'peer_s': peer, 'ratio': koine / peer,
            'koine_first_s': 1.5, 'peer_first_s': 0.25, 'peer': label, 'flops': 0, 'bytes': 0, **more}


def machine(label):
    return {'name': 'machine', 'peer': label, 'threads': 2, 'processor': 'A Processor', 'gflops_f32': 500,
            'gflops_f64': 250, 'gbytes_per_s': 40}


OLD = [machine('torch 1 eager'), row('matmul', 0.1, 0.4, 'torch 1 eager'),
       row('gemm/1x1x1', 0.002, 0.004, 'torch 1 eager', flops=5e8),
       row('gemm/1x1x1/f64', 0.002, 0.004, 'torch 1 eager', flops=2.5e8, dtype='float64'),
       row('reduce/sum/large', 0.001, 0.001, 'torch 1 eager', bytes=2e7)]
NEW = [machine('torch 2 eager'), row('matmul', 0.11, 0.2, 'torch 2 eager'),
       row('gemm/1x1x1', 0.003, 0.005, 'torch 2 eager', flops=5e8)]


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def report(self, *results, arguments=()):
        paths = []
        for i, rows in enumerate(results):
            paths.append(self.path(f'{i}.jsonl'))
            with open(paths[-1], 'w') as file:
                file.write(rows if isinstance(rows, str) else ''.join(json.dumps(r) + '\n' for r in rows))
        command = [sys.executable, os.path.join(SOURCE, 'bench', 'report.py'), *arguments, *paths]
        return subprocess.run(command, capture_output=True, text=True)

    def test_one_peer(self):
        done = self.report(OLD)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('| `matmul` | 100 ms | 400 ms | **0.25** | 1.5 s | 250 ms |\n', done.stdout)
        self.assertIn('| `gemm/1x1x1` | 2 ms | 4 ms | **0.50** | 1.5 s | 250 ms | 250 (50%) |\n', done.stdout)
        self.assertIn('| 125 (50%) |\n', done.stdout)  # f64 against the peak of f64
        self.assertIn('| `reduce/sum/large` | 1 ms | 1 ms | **1.00** | 1.5 s | 250 ms | 20 (50%) |\n', done.stdout)
        self.assertIn('| [Matrix products](#matrix-products) | 2 | **0.50** | 0.50 | 0.50 `gemm/1x1x1` |', done.stdout)
        self.assertIn('## A Processor, 2 threads', done.stdout)
        self.assertNotIn('fastest peer', done.stdout)
        self.assertNotIn('Convolution', done.stdout)

    def test_each_row_against_the_fastest_of_several_peers(self):
        for results in ((OLD, NEW), (NEW, OLD)):
            done = self.report(*results)
            self.assertIn('| `matmul` | 110 ms | 200 ms | **0.55** | 1.5 s | 250 ms | torch 2 eager |', done.stdout)
            self.assertIn('| `gemm/1x1x1` | 2 ms | 4 ms | **0.50** | 1.5 s | 250 ms | 250 (50%) | torch 1 eager |',
                          done.stdout)

    def test_each_machine_has_a_part(self):
        gpu = dict(machine('torch on cuda'), device='A GPU', device_type='gpu', platform='A Platform', driver='1.2')
        rows = [gpu, row('gpu/gemm/1x1x1/f16', 0.002, 0.004, 'torch on cuda', flops=5e8, dtype='float16'),
                row('cnn_step/replayed', 0.1, 0.2, 'torch on cuda'),
                row('gpu/resnet18/replayed', 0.1, 0.1, 'torch on cuda')]
        done = self.report(OLD, rows, NEW)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = done.stdout.split('## A GPU (A Platform, driver 1.2)')
        self.assertIn('| `matmul` | 110 ms | 200 ms | **0.55** |', first)  # of the third file: the machine of the first
        self.assertNotIn('cuda |', first)
        self.assertIn('| [Matrix products](#matrix-products) |', first)
        self.assertIn('| [Matrix products](#matrix-products-1) | 1 | **0.50** |', second)
        self.assertIn('| `gpu/gemm/1x1x1/f16` | 2 ms | 4 ms | **0.50** | 1.5 s | 250 ms | 250 |', second)
        self.assertIn('| `cnn_step/replayed` |', second.split('### Networks')[0])
        self.assertIn('| `gpu/resnet18/replayed` |', second.split('### Networks')[1])

    def test_notes_stand_in_their_section(self):
        with open(self.path('notes.md'), 'w') as file:
            file.write('# Notes\n\n## Matrix products\n\nWhy it stops there.\n\n## Convolution\n\nNot measured.\n')
        done = self.report(OLD, arguments=('--notes', self.path('notes.md')))
        self.assertIn('|\n\nWhy it stops there.\n\n### Reductions', done.stdout)
        self.assertNotIn('Not measured', done.stdout)

    @unittest.skipUnless(shutil.which('gnuplot'), 'no gnuplot')
    def test_the_picture(self):
        done = self.report(OLD, arguments=('--plot', self.path('ratios.svg')))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('](ratios.svg)', done.stdout)
        with open(self.path('ratios.svg')) as file:
            picture = file.read()
        self.assertIn('</svg>', picture)
        self.assertIn('Matrix products (2)', picture)
        self.assertIn('>0.50<', picture)  # the geometric mean, in words
        self.assertIn('A Processor, 2 threads', picture)

    @unittest.skipUnless(shutil.which('gnuplot'), 'no gnuplot')
    def test_nothing_in_a_name_is_a_command(self):
        marker = self.path('marker')
        name = f"A \"Processor\"`touch {marker}`'\nset output 'x'\n!touch {marker}"
        plot = self.path("it's a plot.svg")
        done = self.report([{**machine('torch'), 'processor': name}, row('matmul', 0.1, 0.4, 'torch')],
                           arguments=('--plot', plot))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(plot))
        self.assertFalse(os.path.exists(marker))

    def test_what_is_no_result(self):
        for text in ('nonsense\n', '{"name": "matmul"}\n', '[1]\n'):
            done = self.report(text)
            self.assertEqual(done.returncode, 1)
            self.assertIn('0.jsonl:1: not a line of compare.py', done.stderr)
            self.assertEqual(done.stdout, '')
        self.assertIn('no benchmark', self.report('').stderr)
        command = [sys.executable, os.path.join(SOURCE, 'bench', 'report.py'), '/nonexistent']
        self.assertIn('report.py:', subprocess.run(command, capture_output=True, text=True).stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
