#!/usr/bin/python3
"""Train a small neural network with DeepSpeed on CPUs.

    mpirun -n 2 train_deepspeed.py
    deepspeed --launcher openmpi --no_ssh_check --hostfile /etc/mpi/hostfile train_deepspeed.py

The task is to tell whether a point is outside of a circle; the points are made from a seed, so nothing is downloaded. Rank 0
prints a JSON object for each epoch. Exit status: 0, and 1 if the last accuracy is below --target.
"""

import argparse
import json

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

BATCH = 100


def points(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points of a plane, and for each whether it is outside of the circle."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 2, generator=generator)
    return x, (x.norm(dim=1) > 1).long()


def mean_of_ranks(value: float) -> float:
    """Return the mean of what all ranks have."""
    total = torch.tensor(value)
    dist.all_reduce(total)
    return float(total) / dist.get_world_size()


def main() -> int:
    """Train, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--target", type=float, default=0.95, help="the accuracy that the last epoch must reach")
    parser.add_argument("--stage", type=int, default=1, help="the stage of ZeRO")
    parser.add_argument("--checkpoint", help="a folder that all pods mount: go on from the epoch that it has")
    parser.add_argument("--local_rank", type=int, default=0, help="set by the launchers of DeepSpeed")
    options = parser.parse_args()

    deepspeed.init_distributed(dist_backend="gloo", auto_mpi_discovery=True)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    x, y = points(1, 6000)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2))
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        config={
            "train_micro_batch_size_per_gpu": BATCH,
            "zero_optimization": {"stage": options.stage, "reduce_scatter": False},
            "zero_force_ds_cpu_optimizer": False,
            "zero_allow_untested_optimizer": True,
        },
    )
    first = 0
    if options.checkpoint:
        path, state = engine.load_checkpoint(options.checkpoint)
        if path:
            first = state["epoch"]
            if rank == 0:
                print(json.dumps({"resumed": first}), flush=True)

    right = 0.0
    for epoch in range(first + 1, options.epochs + 1):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        share = len(x) // size
        batches = order[rank * share : (rank + 1) * share].split(BATCH)
        total = 0.0
        for batch in batches:
            loss = nn.functional.cross_entropy(engine(x[batch]), y[batch])
            engine.backward(loss)
            engine.step()
            total += loss.item()
        test_x, test_y = points(1000 + rank, 2000)
        with torch.no_grad():
            right = mean_of_ranks(float((engine(test_x).argmax(dim=1) == test_y).float().mean()))
        mean = mean_of_ranks(total / len(batches))
        if rank == 0:
            print(json.dumps({"epoch": epoch, "loss": round(mean, 4), "accuracy": round(right, 4), "ranks": size}), flush=True)
        if options.checkpoint:
            engine.save_checkpoint(options.checkpoint, client_state={"epoch": epoch})
    dist.destroy_process_group()
    if right < options.target:
        if rank == 0:
            print(f"train_deepspeed.py: the accuracy is {right:.4f}, below {options.target}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
