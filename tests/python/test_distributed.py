"""koine.distributed: on one rank, on two that mpirun starts, and what is wrong."""
import copy
import os
import shutil
import subprocess
import sys

import pytest

import koine
from koine import distributed as dist
from koine import nn

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'distributed_ranks.py')


def run(*launcher):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
                       OMPI_MCA_rmaps_base_oversubscribe='1')
    done = subprocess.run([*launcher, sys.executable, PROGRAM], capture_output=True, text=True, timeout=300,
                          env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_rank():
    assert 'rank 0 of 1: passed' in run()


@pytest.mark.skipif(not dist.is_mpi_available() or not shutil.which('mpirun'), reason='needs MPI')
def test_two_ranks():
    out = run('mpirun', '-n', '2')
    assert 'rank 0 of 2: passed' in out and 'rank 1 of 2: passed' in out


def test_errors():
    for wrong, message in ((lambda: dist.all_reduce(koine.ones(1)), 'call init_process_group first'),
                           (lambda: nn.parallel.DistributedDataParallel(nn.ReLU()), 'call init_process_group first'),
                           (lambda: dist.init_process_group('gloo'), 'start the program with mpirun'),
                           (lambda: dist.init_process_group('local', world_size=4), 'the launcher says 1')):
        with pytest.raises(ValueError, match=message):
            wrong()
    assert not dist.is_initialized() and dist.get_node_local_rank(0) == 0
    dist.init_process_group('local')
    try:
        with pytest.raises(ValueError, match='there is a group already'):
            dist.init_process_group()
        with pytest.raises(ValueError, match='rank 3 is not in this group'):
            dist.broadcast(koine.ones(1), 3)
        with pytest.raises(ValueError, match='tensor_list needs 1 tensors'):
            dist.all_gather([], koine.ones(1))
        with pytest.raises(TypeError, match='a koine.Tensor is needed, not int'):
            dist.all_reduce(1)
        with pytest.raises(ValueError, match='cannot have the parts'):
            dist.all_gather_into_tensor(koine.ones(3), koine.ones(2))
        with pytest.raises(TypeError, match='copy its module'):
            copy.deepcopy(nn.parallel.DistributedDataParallel(nn.Linear(2, 1)))
        with pytest.raises(ValueError, match='it must be from 0 to 1'):
            koine.data.DistributedSampler(range(3), num_replicas=2, rank=2)
    finally:
        dist.destroy_process_group()
