"""Run by test_distributed.py on several ranks, or on one: every call, compared with what it must give."""
import copy

import numpy

import koine
from koine import distributed as dist
from koine import nn

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()


def tensor(*numbers):
    return koine.tensor([float(one) for one in numbers])


def reductions():
    ranks = range(1, size + 1)
    for op, expected in ((dist.ReduceOp.SUM, sum(ranks)), (dist.ReduceOp.AVG, sum(ranks) / size),
                         (dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1)):
        x = tensor(rank + 1, 0)
        dist.all_reduce(x, op)
        assert x.tolist() == [expected, 0], (op, x)
    x = tensor(rank + 1)
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and x.item() == sum(ranks)
    x = tensor(rank + 1)
    dist.reduce(x, size - 1)
    assert x.item() == (sum(ranks) if rank == size - 1 else rank + 1)
    parts = tensor(*range(2 * size)).view(size, 2)
    out = koine.zeros(2)
    dist.reduce_scatter_tensor(out, parts)
    assert out.tolist() == [2 * rank * size, (2 * rank + 1) * size]


def exchanges():
    x = tensor(rank, 5)
    dist.broadcast(x, size - 1)
    assert x.tolist() == [size - 1, 5]
    out = koine.zeros(2 * size)
    dist.all_gather_into_tensor(out, tensor(rank, -rank))
    assert out.view(size, 2).tolist() == [[r, -r] for r in range(size)]
    gathered = [koine.zeros(1) for _ in range(size)] if rank == 0 else None
    dist.gather(tensor(rank), gathered)
    assert gathered is None or [one.item() for one in gathered] == list(range(size))
    x = koine.zeros(1)
    dist.scatter(x, [tensor(10 + r) for r in range(size)] if rank == 0 else None)
    assert x.item() == 10 + rank
    out = koine.zeros(size)
    dist.all_to_all_single(out, tensor(*(100 * rank + r for r in range(size))))
    assert out.tolist() == [100 * r + rank for r in range(size)]
    if size > 1:
        other, x = (rank + 1) % size, koine.zeros(1)
        for is_sender in (rank == 0, rank != 0):  # a ring, in which rank 0 sends first
            if is_sender:
                dist.isend(tensor(rank), other, tag=7).wait()
            else:
                assert dist.recv(x, tag=7) == x.item() == (rank - 1) % size
        sent, received = [koine.full((1 << 20,), 10.0 * rank + i) for i in range(2)], koine.zeros(2, 1 << 20)
        works = dist.batch_isend_irecv([
            *(dist.P2POp(dist.isend, one, other, tag=i) for i, one in enumerate(sent)),
            *(dist.P2POp(dist.irecv, one, (rank - 1) % size, tag=i) for i, one in enumerate(received))])
        assert all(one.wait() for one in works)
        assert [one[-1].item() for one in received] == [10 * ((rank - 1) % size) + i for i in range(2)]
    dist.barrier()


def objects():
    found = []
    dist.all_gather_object(found, {'rank': rank, 'text': 'x' * rank})
    assert [one['rank'] for one in found] == list(range(size)) and found[-1]['text'] == 'x' * (size - 1)
    found = [rank, None]
    dist.broadcast_object_list(found, 0)
    assert found == [0, None]
    found = [] if rank == 0 else None
    dist.gather_object(rank, found)
    assert found is None or found == list(range(size))


def groups():
    last = dist.new_group([size - 1])
    assert dist.get_rank(last) == (0 if rank == size - 1 else -1)
    assert dist.get_process_group_ranks(last) == [size - 1]
    if rank == size - 1:
        x = tensor(3)
        dist.broadcast(x, size - 1, last)  # ranks are those of all processes
        assert x.item() == 3
    else:
        try:
            dist.barrier(last)
            raise AssertionError('no error')
        except ValueError as error:
            assert 'not in the group' in str(error)


def network():
    koine.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def training():
    """On all ranks together what one process computes from the joint batch."""
    x = koine.tensor(numpy.random.default_rng(0).standard_normal((3, 4 * size, 4)).astype('float32'))
    alone, net = network(), nn.SyncBatchNorm.convert_sync_batchnorm(network())
    assert isinstance(net[1], nn.SyncBatchNorm)
    copied = copy.deepcopy(net)
    assert 'SyncBatchNorm' in repr(copied[1]) and 'SyncBatchNorm' in repr(nn.SyncBatchNorm(3))
    ddp = nn.parallel.DistributedDataParallel(net)
    assert ddp.module is net and 'module.0.weight' in ddp.state_dict()
    reference = koine.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
    optimizer = dist.optim.ZeroRedundancyOptimizer(ddp.parameters(), koine.optim.SGD, lr=0.1,
                                                   momentum=0.9)
    for batch in x:
        for one, module, data in ((reference, alone, batch), (optimizer, ddp, batch[4 * rank:4 * rank + 4])):
            one.zero_grad()
            module(data).square().mean().backward()
            one.step()
    for ours, theirs in zip(net.parameters(), alone.parameters()):
        numpy.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-5)
    ddp.check()
    optimizer.consolidate_state_dict(0)
    assert rank != 0 or len(optimizer.state_dict()['state']) == 6

    plain = nn.parallel.DistributedDataParallel(nn.Linear(2, 1, bias=False))
    with plain.no_sync():
        plain(tensor(rank, 1).view(1, 2)).sum().backward()
        assert plain.module.weight.grad.tolist() == [[rank, 1]]
    plain(tensor(0, 1).view(1, 2)).sum().backward()
    assert plain.module.weight.grad.tolist() == [[(size - 1) / 2, 2]]
    plain.zero_grad()
    with plain.join():  # rank r has r + 1 batches
        for _ in range(rank + 1):
            plain(tensor(1, 1).view(1, 2)).sum().backward()


def sampling():
    sampler = koine.data.DistributedSampler(range(5))
    sampler.set_epoch(3)
    found = []
    dist.all_gather_object(found, list(sampler))
    assert len({len(one) for one in found}) == 1 and {i for one in found for i in one} == set(range(5))


reductions()
exchanges()
objects()
groups()
training()
sampling()
dist.destroy_process_group()
print('rank %d of %d: passed' % (rank, size))
