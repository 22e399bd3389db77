#!/usr/bin/python3
"""Train a small neural network with Horovod and PyTorch.

    mpirun -n 2 train_horovod.py
    horovodrun -np 2 --hostfile /etc/mpi/hostfile train_horovod.py
    horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script /etc/mpi/discover_hosts.sh train_horovod.py --elastic

The task is to tell whether a point is outside of a circle; the points are made from a seed, so nothing is downloaded. Rank 0
prints a JSON object for each epoch. Exit status: 0, and 1 if the last accuracy is below --target.
"""

import argparse
import json
import time
from pathlib import Path

import horovod.torch as hvd
import torch
from torch import nn

BATCH = 100


def points(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points of a plane, and for each whether it is outside of the circle."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 2, generator=generator)
    return x, (x.norm(dim=1) > 1).long()


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, epoch: int, data: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Train on this rank's share of the points, and return the mean loss of all ranks."""
    x, y = data
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
    share = len(x) // hvd.size()
    mine = order[hvd.rank() * share : (hvd.rank() + 1) * share]
    total = 0.0
    batches = mine.split(BATCH)
    for batch in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
        total += loss.item()
    return float(hvd.allreduce(torch.tensor(total / len(batches)), name="loss"))


def accuracy(model: nn.Module) -> float:
    """Return the share of points that the model tells right, of points that it has not seen: each rank tests others."""
    x, y = points(1000 + hvd.rank(), 2000)
    with torch.no_grad():
        right = (model(x).argmax(dim=1) == y).float().mean()
    return float(hvd.allreduce(right, name="accuracy"))


def main() -> int:
    """Train, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--target", type=float, default=0.95, help="the accuracy that the last epoch must reach")
    parser.add_argument("--checkpoint", type=Path, help="a folder that all pods mount: go on from the epoch that it has")
    parser.add_argument("--elastic", action="store_true", help="go on when workers are added or lost; needs horovodrun --min-np")
    parser.add_argument("--epoch-seconds", type=float, default=0, help="the least time of an epoch")
    options = parser.parse_args()

    hvd.init()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data = points(1, 6000)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2))
    base = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(base, named_parameters=model.named_parameters())
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0, accuracy=0.0)

    file = options.checkpoint / "horovod.pt" if options.checkpoint else None
    if file and file.exists():
        saved = torch.load(file)
        model.load_state_dict(saved["model"])
        state.epoch = saved["epoch"]
        if hvd.rank() == 0:
            print(json.dumps({"resumed": state.epoch}), flush=True)
    if not options.elastic:
        # In an elastic job, ranks that are added begin here while the others train: the state is synchronized by run.
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    def run(state: hvd.elastic.TorchState) -> None:
        for epoch in range(state.epoch + 1, options.epochs + 1):
            start = time.monotonic()
            loss = train_epoch(model, optimizer, epoch, data)
            state.accuracy = accuracy(model)
            time.sleep(max(0.0, start + options.epoch_seconds - time.monotonic()))
            state.epoch = epoch
            if hvd.rank() == 0:
                line = {"epoch": epoch, "loss": round(loss, 4), "accuracy": round(state.accuracy, 4), "ranks": hvd.size()}
                print(json.dumps(line), flush=True)
                if file:
                    torch.save({"model": model.state_dict(), "epoch": epoch}, file.with_suffix(".new"))
                    file.with_suffix(".new").replace(file)
            if options.elastic:
                state.commit()

    (hvd.elastic.run(run) if options.elastic else run)(state)
    if state.accuracy < options.target:
        if hvd.rank() == 0:
            print(f"train_horovod.py: the accuracy is {state.accuracy:.4f}, below {options.target}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
