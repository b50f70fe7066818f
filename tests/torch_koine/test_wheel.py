"""The wheels as a user has them: built by pip, installed into a virtual environment, away from the tree.

sh tests/run.sh --torch --full, with a Python that has pip and scikit-build-core."""
import importlib.util
import os
import subprocess
import sys
import venv

import pytest

pytestmark = [
    pytest.mark.skipif(not os.environ.get('KOINE_TEST_FULL'), reason='long: sh tests/run.sh --torch --full'),
    pytest.mark.skipif(not all(map(importlib.util.find_spec, ('pip', 'scikit_build_core'))),
                       reason='pip install scikit-build-core'),
]
TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
GRADIENT = '''
expected = 2 * x.detach().{host}().sum(0)
assert all((row.{host}() - expected).abs().max().item() < 1e-5 for row in x.grad)
import {module}
print({module}.__file__)
'''


def run(*command, **options):
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert made.returncode == 0, made.stdout
    return made.stdout


def users_environment(home):
    """Without what tests and developers set."""
    ours = ('KOINE_', 'TORCH_KOINE_', 'POCL_', 'PYTHON', 'LD_LIBRARY_PATH', 'COMPILER_PATH')
    return dict({name: value for name, value in os.environ.items() if not name.startswith(ours)}, HOME=str(home))


def readme_program(folder):
    with open(os.path.join(folder, 'README.md')) as file:
        return ''.join(line[4:] for line in file if line.startswith('    '))


@pytest.mark.parametrize('project, module, host, needs', [('python', 'torch_koine', 'cpu', ['torch']),
                                                          ('python/koine', 'koine', 'cpu', ['numpy', 'cffi'])])
def test_the_readme_with_the_installed_wheel(tmp_path, project, module, host, needs):
    if not all(map(importlib.util.find_spec, needs)):
        pytest.skip('pip install ' + ' '.join(needs))
    environment = users_environment(tmp_path)
    run(sys.executable, '-m', 'pip', 'wheel', '--no-build-isolation', '--no-deps', '--wheel-dir', str(tmp_path),
        os.path.join(TREE, project), env=environment, cwd=tmp_path, timeout=3600)
    wheel, = tmp_path.glob('*.whl')
    assert wheel.name.split('-')[2:4] == ['py3', 'none'], 'one wheel for all versions of Python'

    venv.create(tmp_path / 'venv', with_pip=True)
    python = str(tmp_path / 'venv' / 'bin' / 'python')
    run(python, '-m', 'pip', 'install', '--no-deps', '--no-index', str(wheel), env=environment, cwd=tmp_path)
    packages = run(python, '-c', 'import sysconfig; print(sysconfig.get_path("purelib"))', env=environment).strip()
    with open(os.path.join(packages, 'needs.pth'), 'w') as file:  # what pip would download, from here
        for need in needs:
            file.write(os.path.dirname(importlib.util.find_spec(need).submodule_search_locations[0]) + '\n')

    program = readme_program(os.path.join(TREE, project)) + GRADIENT.format(host=host, module=module)
    output = run(python, '-c', program, env=environment, cwd=tmp_path, timeout=600).splitlines()
    assert output[0].startswith('tensor(') and output[-1].startswith(str(tmp_path)), output
