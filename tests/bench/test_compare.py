"""bench/compare.py against a fake peer: test_compare.py SOURCE_DIR KOINE_BENCH."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE, BENCH = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))


def compare(*arguments, program='fake_peer.py', **environment):
    command = [sys.executable, os.path.join(SOURCE, 'bench', 'compare.py'), '--koine-bench', BENCH,
               '--repetitions', '2', '--peer-program', os.path.join(HERE, program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **environment))


class Compare(unittest.TestCase):
    def test_a_row_holds_both_times_and_first_calls_apart(self):
        done = compare('--only', 'gemm/64', '--json')
        self.assertEqual(done.returncode, 0, done.stderr)
        machine, row = (json.loads(line) for line in done.stdout.splitlines())
        self.assertEqual((machine['name'], machine['peer']), ('machine', 'fake 1 eager'))
        self.assertGreater(machine['gflops_f32'], 0)
        self.assertEqual((row['name'], row['shape'], row['dtype'], row['peer']),
                         ('gemm/64x64x64', '64x64x64', 'float32', 'fake 1 eager'))
        self.assertEqual(row['peer_s'], 0.001)
        self.assertAlmostEqual(row['peer_first_s'], 0.251)
        self.assertAlmostEqual(row['ratio'], row['koine_s'] / 0.001)
        self.assertGreater(row['koine_first_s'], row['koine_s'])
        self.assertEqual((row['flops'], row['difference'], row['repetitions']), (2 * 64**3, 0, 2))

    def test_results_that_differ_are_not_timed(self):
        done = compare('--only', 'gemm/64', '--json', FAKE_DIFFERENCE='0.01')
        self.assertEqual(done.returncode, 1)
        self.assertIn('gemm/64x64x64: results differ: out by 0.01', done.stderr)
        self.assertNotIn('ratio', done.stdout)

    def test_results_that_are_nan_are_not_timed(self):
        self.assertEqual(compare('--only', 'gemm/64', '--json', FAKE_DIFFERENCE='nan').returncode, 1)

    def test_a_run_that_was_stopped_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'rows.jsonl')
            with open(out, 'w') as file:
                for row in ({'name': 'machine', 'peer': 'fake 1 eager'}, {'name': 'gemm/64x64x64', 'peer': 'another'}):
                    file.write(json.dumps(row) + '\n')
                file.write('{"name": "gem')
            for rows in (3, 3):
                done = compare('--only', 'gemm/64', '--out', out)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(out) as file:
                    self.assertEqual(len([json.loads(line) for line in file]), rows)

    def test_sizes_of_gpus_run_where_they_are_asked_for(self):
        names = subprocess.run([BENCH, '--list'], capture_output=True, text=True, check=True).stdout.split()
        sys.path.insert(0, os.path.join(SOURCE, 'bench'))
        import compare as module
        koine = module.Koine.__new__(module.Koine)
        koine.path = BENCH
        self.assertTrue(any(name.startswith('gpu/') for name in names))
        self.assertEqual([case['name'] for case in koine.cases(None, True)], names)
        self.assertEqual([case['name'] for case in koine.cases(None, False)],
                         [name for name in names if not name.startswith('gpu/')])
        self.assertEqual([case['name'] for case in koine.cases(['gpu/resnet18', 'gemm/64'], False)],
                         ['gpu/resnet18', 'gpu/resnet18/replayed', 'gemm/64x64x64'])

    def test_only_check(self):
        done = compare('--only', 'gemm/64', '--check')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('differs by 0e+00', done.stdout)

    def test_what_the_peer_has_not_is_left_out(self):
        done = compare('--only', 'elementwise/relu/small', '--json')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 1)

    def test_an_error_of_the_peer_names_the_benchmark(self):
        done = compare('--only', 'gemm/128')
        self.assertEqual(done.returncode, 1)
        self.assertIn('gemm/128x128x128: the peer: setup: it fails on purpose', done.stderr)

    def test_another_build_as_the_peer(self):
        done = subprocess.run([sys.executable, os.path.join(SOURCE, 'bench', 'compare.py'), '--koine-bench', BENCH,
                               '--peer', 'koine', '--peer-bench', BENCH, '--only', 'gemm/64', '--repetitions', '1',
                               '--json'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        row = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(row['difference'], 0)
        self.assertGreater(row['ratio'], 0)

    def test_the_other_build_must_be_named(self):
        done = subprocess.run([sys.executable, os.path.join(SOURCE, 'bench', 'compare.py'), '--peer', 'koine'],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn('--peer-bench', done.stderr)

    def test_a_peer_that_does_not_start(self):
        done = compare('--only', 'gemm/64', program='no_such_program.py')
        self.assertEqual(done.returncode, 1)
        self.assertIn('it needs torch', done.stderr)

    def test_a_koine_bench_that_is_not_there(self):
        done = compare('--koine-bench', '/nonexistent/koine-bench')
        self.assertEqual(done.returncode, 1)
        self.assertIn('build first', done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
