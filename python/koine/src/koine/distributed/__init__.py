"""torch.distributed: processes that work together, which a launcher of MPI starts.

    mpirun -n 2 python3 program.py

    from koine import distributed as dist
    dist.init_process_group()                                        # without a launcher: a group of this process alone
    koine.set_device('gpu:%d' % dist.get_node_local_rank())          # or leave the choice to the library
    net = nn.parallel.DistributedDataParallel(net)                   # gradients are averaged over the ranks
    ...
    dist.destroy_process_group()

Every rank makes the same calls in the same order (docs/distributed.md). A group is used by one thread at a time."""
from .._groups import (ProcessGroup, destroy_process_group, get_backend, get_group_rank,  # noqa: F401
                      get_node_local_rank, get_process_group_ranks, get_rank, get_world_size, init_process_group,
                      is_available, is_initialized, is_mpi_available, new_group)
from . import optim  # noqa: F401
from ._collectives import (ReduceOp, Work, all_gather, all_gather_into_tensor, all_reduce, all_to_all,  # noqa: F401
                           all_to_all_single, barrier, broadcast, gather, reduce, reduce_scatter,
                           reduce_scatter_tensor, scatter)
from ._messages import P2POp, batch_isend_irecv, irecv, isend, recv, send  # noqa: F401
from ._objects import all_gather_object, broadcast_object_list, gather_object  # noqa: F401
