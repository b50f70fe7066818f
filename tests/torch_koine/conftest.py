"""Tests of the PyTorch device; run.sh sets the paths."""
import os
import subprocess
import sys
import warnings

import pytest
import torch

warnings.filterwarnings('ignore', message='.*runs on the CPU.*')


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture
def run_python():
    """Runs a program, or a file, in a process of its own, with `import torch` alone; returns what it prints."""

    def run(program, status=0, environment=(), timeout=120, arguments=()):
        which = [program] if os.path.exists(program) else ['-c', program]
        result = subprocess.run([sys.executable, '-W', 'ignore', *which, *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=timeout,
                                env=dict(os.environ, **dict(environment)))
        assert result.returncode == status, (result.returncode, result.stdout, result.stderr)
        return result.stdout

    return run
